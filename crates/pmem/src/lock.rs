//! A lock whose word carries the generation in which it was taken.
//!
//! A lock whose word is of another generation than the pool's is free, whatever its flags say. So a lock held at a
//! crash is free after it, without a pass over the pool. The first thread that takes such a lock learns that the
//! node's volatile metadata is stale, and repairs it while it holds the lock (ROART §3.3.1: NGN, GGN and the latch
//! for recovery are this one word).
//!
//! ```text
//!  63              32 31              3   2          1         0
//! +------------------+-----------------+-----------+----------+--------+
//! |    generation    |        0        | repairing | obsolete | locked |
//! +------------------+-----------------+-----------+----------+--------+
//! ```
//!
//! I1 A word's generation is never above the pool's: a thread stores only its own generation, or 0.
//! I2 An obsolete object never changes again in this generation. After a crash the flag means nothing, because the
//!    object is then either unreachable or was never replaced.
//! I3 A process killed while it held a lock leaves the word of its generation with *locked* set, until a later
//!    generation takes the lock: the stores made under it are visible and perhaps not durable. After a power loss the
//!    flag means nothing, because all that is visible then is durable.

use crate::{Media, Persistent, VWord};

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
const REPAIRING: u64 = 4;

/// The lock of a persistent object.
#[repr(transparent)]
#[derive(Debug)]
pub struct GenerationLock(VWord);

// SAFETY: one atomic word; any bits are valid.
unsafe impl Persistent for GenerationLock {
    const WORDS_ONLY: bool = true;
}

/// The object was replaced: look for its successor from further up.
#[derive(Debug, PartialEq, Eq)]
pub struct Obsolete;

impl GenerationLock {
    /// A free lock of `generation`, for a draft.
    #[inline]
    pub const fn new(generation: u32) -> GenerationLock {
        GenerationLock(VWord::new((generation as u64) << 32))
    }

    /// Whether the object's volatile metadata belongs to `generation` and is complete.
    #[inline]
    #[track_caller]
    pub fn is_current<M: Media>(&self, media: &M, generation: u32) -> bool {
        let word = self.0.load(media);
        (word >> 32) as u32 == generation && word & REPAIRING == 0
    }

    /// Runs `check`, which only reads, on an object whose lock word is of another generation: in a damaged pool that
    /// word may be anything, and would count as a free lock. If another thread has repaired the object meanwhile, an
    /// error of the check is dropped, since the bytes that the check read may have changed.
    ///
    /// # Errors
    ///
    /// The error of `check`.
    #[inline(always)]
    #[track_caller]
    pub fn check_stale<M: Media, E>(
        &self,
        media: &M,
        generation: u32,
        check: impl FnOnce() -> Result<(), E>,
    ) -> Result<(), E> {
        if self.is_current(media, generation) {
            return Ok(());
        }
        match check() {
            Err(_) if self.is_current(media, generation) => Ok(()),
            checked => checked,
        }
    }

    /// Whether the object was replaced within `generation`, or is [about to be](Locked::condemn).
    #[inline]
    #[track_caller]
    pub fn is_obsolete<M: Media>(&self, media: &M, generation: u32) -> bool {
        let word = self.0.load(media);
        (word >> 32) as u32 == generation && word & OBSOLETE != 0
    }

    /// Whether a thread of `generation` holds the lock.
    #[inline]
    #[track_caller]
    pub fn is_locked<M: Media>(&self, media: &M, generation: u32) -> bool {
        let word = self.0.load(media);
        (word >> 32) as u32 == generation && word & LOCKED != 0
    }

    /// Takes the lock, waiting for it; fails once the object is obsolete.
    #[inline]
    #[track_caller]
    pub fn lock<'a, M: Media>(&'a self, media: &'a M, generation: u32) -> Result<Locked<'a, M>, Obsolete> {
        let mut turn = 0;
        loop {
            match self.try_lock(media, generation) {
                Ok(Some(locked)) => return Ok(locked),
                Ok(None) => media.wait(turn),
                Err(obsolete) => return Err(obsolete),
            }
            turn = turn.saturating_add(1);
        }
    }

    /// Takes the lock if it is free; returns `None` if not.
    #[inline]
    #[track_caller]
    pub fn try_lock<'a, M: Media>(
        &'a self,
        media: &'a M,
        generation: u32,
    ) -> Result<Option<Locked<'a, M>>, Obsolete> {
        let word = self.0.load(media);
        let mine = u64::from(generation) << 32;
        let stale = (word >> 32) as u32 != generation;
        let taken = if stale {
            mine | LOCKED | REPAIRING
        } else if word & OBSOLETE != 0 {
            return Err(Obsolete);
        } else if word & LOCKED != 0 {
            return Ok(None);
        } else {
            mine | LOCKED
        };
        if self.0.compare_exchange(media, word, taken).is_err() {
            return Ok(None);
        }
        Ok(Some(Locked {
            lock: self,
            media,
            free: mine,
            stale,
            left: stale && word & LOCKED != 0,
        }))
    }
}

/// A held lock; dropping it releases the lock.
#[derive(Debug)]
#[must_use]
pub struct Locked<'a, M: Media> {
    lock: &'a GenerationLock,
    media: &'a M,
    free: u64,
    stale: bool,
    left: bool,
}

impl<M: Media> Locked<'_, M> {
    /// Whether `lock` is the one held.
    #[inline]
    pub fn is_of(&self, lock: &GenerationLock) -> bool {
        std::ptr::eq(self.lock, lock)
    }

    /// Whether the object's volatile metadata is of an older generation and must be rebuilt before it is used.
    #[inline]
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Whether an earlier process may have been killed while it held the lock: what that process stored under the lock
    /// may not be durable. A holder that gives up its repair leaves no trace of this for the next one, so it persists
    /// those stores before any step that can fail.
    #[inline]
    pub fn was_left(&self) -> bool {
        self.left
    }

    /// Marks the volatile metadata as rebuilt: other threads rely on it from now on.
    #[track_caller]
    pub fn repaired(&mut self) {
        self.stale = false;
        self.lock.0.store(self.free | LOCKED, self.media);
    }

    /// Marks the object as about to be replaced, for good: no thread of this generation takes the lock after this
    /// holder.
    #[inline]
    #[track_caller]
    pub fn condemn(&mut self) {
        self.free |= OBSOLETE;
        self.lock.0.store(self.free | LOCKED, self.media);
    }

    /// Releases the lock of a replaced object: no thread of this generation takes it again.
    #[inline]
    #[track_caller]
    pub fn retire(self) {
        self.lock.0.store(self.free | OBSOLETE, self.media);
        std::mem::forget(self);
    }
}

impl<M: Media> Drop for Locked<'_, M> {
    #[inline]
    fn drop(&mut self) {
        // A panic during a repair leaves the object stale, so that the next holder repairs it.
        let word = if self.stale { 0 } else { self.free };
        self.lock.0.store(word, self.media);
    }
}

#[cfg(test)]
mod tests;
