//! The interface to persistent memory: stores, write-backs and fences.
//!
//! Every persistent store, compare-and-swap, non-temporal store, write-back and fence goes through a [`Media`], which
//! learns the call site through `#[track_caller]`. The machine itself ([`Hardware`]) compiles to plain atomics and
//! one instruction each; other media count, delay or record the calls.
//!
//! Stores into a private draft are the exception: they are plain stores, and one call reports them to the media,
//! [`Media::drafted`], before the draft's lines are written back. Constant fields are read by plain loads, announced
//! by [`Media::touched`].
//!
//! [`Hardware`]: crate::Hardware

use crate::{PSlot, candidates};
use std::panic::Location;
use std::sync::atomic::AtomicU64;

/// The unit of a write-back, in bytes.
pub const LINE: usize = 64;

/// The purpose of a write-back or a fence, so that counts can be split as the papers split them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Nodes, leaves and values of an index.
    Node,
    /// The heap's own metadata (page offset, root directory, pool header).
    Alloc,
    /// Log records.
    Log,
}

/// How far a store must travel to survive the crash that a pool's level is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersistenceDomain {
    /// To memory: its line must be written back, and the write-back fenced.
    Memory,
    /// To the processor's caches: it must be fenced.
    Caches,
    /// Nowhere: all that a process has stored survives its end, in program order.
    Process,
}

/// A memory whose stores become durable by a write-back of their line followed by a fence.
///
/// Loads acquire, stores release, and a compare-and-swap does both. The `volatile` calls concern words that live
/// in persistent nodes but mean something only within the current generation: they are never written back for
/// their own sake.
///
/// # Safety
///
/// `load`, `store`, `compare_exchange` and the volatile calls must act on the given word with at least the ordering
/// stated, as must their `unpersisted` forms; `store_nt` must make the word visible to other threads no later than
/// the next `fence` of this thread; `candidates` must name the slots that it documents; after a write-back of a line
/// and then `fence()` on one thread every store of that thread to the line before the write-back is durable as far as
/// the media promises durability at all.
pub unsafe trait Media: Send + Sync + 'static {
    /// Whether threads take turns at the calls of the media, so that a thread that blocks in the system blocks them
    /// all. Locks held across such calls are then awaited through [`wait`](Media::wait).
    const TAKES_TURNS: bool = false;

    /// Whether freed memory is reused as soon as possible: an allocator then hands out one chunk at a time, the one
    /// freed last first, so that a run hits a premature free within a few operations.
    const REUSES_AT_ONCE: bool = false;

    /// Loads a persistent word (acquire).
    #[track_caller]
    fn load(&self, word: &AtomicU64) -> u64;

    /// Loads a persistent word for a hint that correctness does not depend on (acquire).
    #[inline(always)]
    #[track_caller]
    fn peek(&self, word: &AtomicU64) -> u64 {
        self.load(word)
    }

    /// Narrows a search for links with the highest 16 bits `top` among the first 64 slots: returns a bit for each
    /// slot that the caller has to [load](PSlot::load). That is each slot with such a link, each marked one, and
    /// perhaps others. Slots left out were loaded (acquire) and were neither. A media that has to see each load keeps
    /// this default, which names all slots.
    #[inline(always)]
    fn candidates(&self, slots: &[PSlot], top: u16) -> u64 {
        let _ = top;
        candidates::all(slots.len())
    }

    /// Declares that nothing depends on the value that the caller has loaded from a persistent word: a later load of
    /// another word has made the value invalid.
    #[inline(always)]
    fn disregard(&self, word: &AtomicU64) {
        let _ = word;
    }

    /// Stores a persistent word (release).
    #[track_caller]
    fn store(&self, word: &AtomicU64, value: u64);

    /// Replaces `old` by `new` in a persistent word (acquire, release); the error is the word's other value.
    #[track_caller]
    fn compare_exchange(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64>;

    /// Stores a persistent word past the cache.
    #[track_caller]
    fn store_nt(&self, word: &AtomicU64, value: u64);

    /// Stores a persistent word whose old and new value differ only in bits that recovery ignores, so that neither
    /// this store nor a later reader needs to persist it (release).
    #[inline]
    #[track_caller]
    fn store_unpersisted(&self, word: &AtomicU64, value: u64) {
        self.store(word, value);
    }

    /// Replaces `old` by `new`, which differ only in bits that recovery ignores (acquire, release); the error is the
    /// word's other value.
    #[inline]
    #[track_caller]
    fn compare_exchange_unpersisted(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.compare_exchange(word, old, new)
    }

    /// Announces that bytes among the `len` from `start` are about to be read by plain loads.
    #[inline]
    #[track_caller]
    fn touched(&self, start: *const u8, len: usize) {
        let _ = (start, len);
    }

    /// Reports that the `len` bytes from `start`, taken out of use by the caller at `site`, were freed: nothing may
    /// read or store them before the next draft there. Called only where [`REUSES_AT_ONCE`](Media::REUSES_AT_ONCE).
    #[inline]
    fn freed(&self, start: *const u8, len: usize, site: &'static Location<'static>) {
        let _ = (start, len, site);
    }

    /// Whether an allocator may take the next chunk or pages. If not, the pool counts as full this one time. Called
    /// only where [`REUSES_AT_ONCE`](Media::REUSES_AT_ONCE).
    #[inline]
    fn has_room(&self) -> bool {
        true
    }

    /// Announces that a draft of `len` bytes from `start` begins: plain stores into them follow.
    #[inline]
    fn drafting(&self, start: *const u8, len: usize) {
        let _ = (start, len);
    }

    /// Reports that the `len` bytes from `start`, private until now, hold a finished draft that will be persisted.
    #[track_caller]
    fn drafted(&self, start: *const u8, len: usize) {
        let _ = (start, len);
    }

    /// Whether a write-back has any effect. Where it has none, batches hold back no lines.
    #[inline]
    fn writes_back(&self) -> bool {
        true
    }

    /// Whether a fence has any effect. Where it has none, several writes gain nothing by sharing one.
    #[inline]
    fn fences(&self) -> bool {
        true
    }

    /// Writes back the line that holds `word`.
    #[inline(always)]
    #[track_caller]
    fn write_back(&self, word: &AtomicU64, purpose: Purpose) {
        // SAFETY: a borrowed word is mapped.
        unsafe { self.write_back_joined(word.as_ptr().cast_const().cast(), purpose) };
    }

    /// Reports that the lines of `len` bytes from `at` join a batch: `#[track_caller]` names the code that needs them
    /// durable.
    #[inline]
    #[track_caller]
    fn joined(&self, at: *const u8, len: usize) {
        let _ = (at, len);
    }

    /// Writes back a line that has [joined](Media::joined) a batch.
    ///
    /// # Safety
    ///
    /// The line that holds `at` is mapped: the instruction faults on unmapped memory.
    #[track_caller]
    unsafe fn write_back_joined(&self, at: *const u8, purpose: Purpose);

    /// Orders this thread's write-backs and non-temporal stores before its later stores.
    #[track_caller]
    fn fence(&self, purpose: Purpose);

    /// Loads a word of the current generation only (acquire).
    #[track_caller]
    fn load_volatile(&self, word: &AtomicU64) -> u64;

    /// Stores a word of the current generation only (release).
    #[track_caller]
    fn store_volatile(&self, word: &AtomicU64, value: u64);

    /// Replaces `old` by `new` in a word of the current generation only (acquire, release).
    #[track_caller]
    fn compare_exchange_volatile(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64>;

    /// A pool calls this, before any other use, with how far its stores must travel; the media may omit what would
    /// take them further.
    fn stores_survive_in(&mut self, domain: PersistenceDomain) {
        let _ = domain;
    }

    /// Reports that the first bytes of a pool's file are on its medium: the `len` bytes mapped at `start`, as they were
    /// before the pool had them written there.
    #[inline]
    #[track_caller]
    fn synced(&self, start: *const u8, len: usize) {
        let _ = (start, len);
    }

    /// Reports that a larger change has reached the step of this name, for media that record the steps of a run.
    #[inline(always)]
    fn comes_to(&self, step: &'static str) {
        let _ = step;
    }

    /// Names the persists that the caller's source file requests from here up to its next fence on this thread (not the
    /// write-backs requested before), for media that report what a run has persisted.
    #[inline(always)]
    #[track_caller]
    fn site(&self, name: &'static str) {
        let _ = name;
    }

    /// Called in each turn of a loop that waits for another thread.
    #[track_caller]
    fn wait(&self, turn: u32) {
        if turn < 64 {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

#[cfg(test)]
mod tests;
