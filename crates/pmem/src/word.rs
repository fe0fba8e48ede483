//! Words: the only way to access shared persistent state.
//!
//! I1 A persistent word is 8 bytes, aligned, and changes by one store.
//! I2 A [`VWord`] means something only while its node's generation is the pool's: after a crash it may hold
//!    anything.
//!
//! Not here: the contents of a word that leads to an object (`link`), and the words through which objects are
//! published (`token`).

use crate::{Link, Media, PSlot, PersistBatch, Persistent};
use std::sync::atomic::AtomicU64;

/// Eight persistent bytes that change by one store.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct PWord(AtomicU64);

// SAFETY: one atomic word; any bits are valid.
unsafe impl Persistent for PWord {
    const WORDS_ONLY: bool = true;
}

impl PWord {
    /// A word for a draft.
    #[inline]
    pub const fn new(value: u64) -> PWord {
        PWord(AtomicU64::new(value))
    }

    /// The value of a word that no other thread can reach yet.
    #[inline]
    pub fn private(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The value (acquire).
    #[inline]
    #[track_caller]
    pub fn load<M: Media>(&self, media: &M) -> u64 {
        media.load(&self.0)
    }

    /// The value (acquire), of which readers use only the part that a commit word makes count. That part was durable
    /// before the commit word was stored; the rest may not be durable, and nothing depends on it.
    #[inline]
    #[track_caller]
    pub fn peek<M: Media>(&self, media: &M) -> u64 {
        media.peek(&self.0)
    }

    /// Declares that nothing depends on the value that the caller has [loaded](PWord::load) from here, because a
    /// later load of another word made it invalid: a media that detects dirty reads may ignore that the value may not
    /// be durable.
    #[inline]
    pub fn disregard<M: Media>(&self, media: &M) {
        media.disregard(&self.0);
    }

    /// Stores `value` in place (release); durable once the batch is fenced.
    #[inline]
    #[track_caller]
    pub fn store<'m, M: Media>(&'m self, value: u64, batch: &PersistBatch<'_, 'm, M>) {
        batch.media().store(&self.0, value);
        batch.join(&self.0);
    }

    /// Stores `value` past the cache, so that other threads see it no sooner than it is on its way to memory (ROART
    /// §3.4.1; not on aarch64, see [`Hardware`](crate::Hardware)); durable once the batch is fenced.
    #[inline]
    #[track_caller]
    pub fn store_nt<M: Media>(&self, value: u64, batch: &PersistBatch<'_, '_, M>) {
        batch.media().store_nt(&self.0, value);
    }

    /// Stores `value` without persisting it: it differs from the present value only in bits that recovery ignores, or
    /// recovery works with either value.
    #[inline]
    #[track_caller]
    pub fn store_unpersisted<M: Media>(&self, value: u64, media: &M) {
        media.store_unpersisted(&self.0, value);
    }

    /// Replaces `seen`, if still present, by `settled`, which differs only in bits that recovery ignores, without
    /// persisting it.
    #[inline]
    #[track_caller]
    pub fn settle<M: Media>(&self, seen: u64, settled: u64, media: &M) {
        let _ = media.compare_exchange_unpersisted(&self.0, seen, settled);
    }

    /// Writes back a value that another thread stored and may not have persisted.
    #[inline]
    #[track_caller]
    pub fn persist_seen<'m, M: Media>(&'m self, batch: &PersistBatch<'_, 'm, M>) {
        batch.join(&self.0);
    }
}

/// Eight persistent bytes that hold either a value or a link; the owner knows by other means which of the two, and
/// accesses it accordingly.
///
/// For arrays of pairs where short values are stored in place and longer ones behind a link. A link read from a word
/// that holds a value points to an arbitrary place: its use is bounds-checked, as for any link.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct PEither(PSlot);

// SAFETY: one atomic word; any bits are valid.
unsafe impl Persistent for PEither {
    const WORDS_ONLY: bool = true;
}

impl PEither {
    /// A word for a draft, holding a value.
    #[inline]
    pub const fn value(value: u64) -> PEither {
        PEither(PSlot(AtomicU64::new(value)))
    }

    /// A word for a draft, holding a link to a durable object.
    #[inline]
    pub const fn link(link: Link) -> PEither {
        PEither(PSlot(AtomicU64::new(link.bits())))
    }

    /// All bits (acquire).
    #[inline]
    #[track_caller]
    pub fn load<M: Media>(&self, media: &M) -> u64 {
        media.load(&self.0.0)
    }

    /// Declares that nothing depends on the value that the caller has loaded from here, as [`PWord::disregard`] does.
    #[inline]
    pub fn disregard<M: Media>(&self, media: &M) {
        media.disregard(&self.0.0);
    }

    /// The word as a link (acquire), for a word that holds one. The mark is dropped, and the word is not persisted; to
    /// load a link that may be marked, use the [slot](PEither::slot).
    #[inline]
    #[track_caller]
    pub fn load_link<M: Media>(&self, media: &M) -> Link {
        Link::from_word(media.load(&self.0.0))
    }

    /// Stores a value in place (release); durable once the batch is fenced.
    #[inline]
    #[track_caller]
    pub fn store<'m, M: Media>(&'m self, value: u64, batch: &PersistBatch<'_, 'm, M>) {
        batch.media().store(&self.0.0, value);
        batch.join(&self.0.0);
    }

    /// Stores a link in place (release); durable once the batch is fenced. No reader acts on it before that: see
    /// [`PSlot::store`](crate::PSlot::store).
    #[inline]
    #[track_caller]
    pub fn store_link<'m, M: Media>(&'m self, link: Link, batch: &PersistBatch<'_, 'm, M>) {
        self.store(link.bits(), batch);
    }

    /// The slot, if it holds a link or is about to hold one: for publishing into it.
    #[inline]
    pub const fn slot(&self) -> &PSlot {
        &self.0
    }

    /// The slot of a draft, for adopting into it.
    #[inline]
    pub const fn slot_mut(&mut self) -> &mut PSlot {
        &mut self.0
    }

    /// Writes back a value that another thread stored and may not have persisted.
    #[inline]
    #[track_caller]
    pub fn persist_seen<'m, M: Media>(&'m self, batch: &PersistBatch<'_, 'm, M>) {
        batch.join(&self.0.0);
    }
}

/// Eight bytes inside a persistent node that mean something only within the current generation.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct VWord(AtomicU64);

// SAFETY: one atomic word; any bits are valid.
unsafe impl Persistent for VWord {
    const WORDS_ONLY: bool = true;
}

impl VWord {
    /// A word for a draft.
    #[inline]
    pub const fn new(value: u64) -> VWord {
        VWord(AtomicU64::new(value))
    }

    /// The value of a word that no other thread can reach yet.
    #[inline]
    pub fn private(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The value (acquire).
    #[inline]
    #[track_caller]
    pub fn load<M: Media>(&self, media: &M) -> u64 {
        media.load_volatile(&self.0)
    }

    /// Stores `value` (release).
    #[inline]
    #[track_caller]
    pub fn store<M: Media>(&self, value: u64, media: &M) {
        media.store_volatile(&self.0, value);
    }

    /// Stores `value` like a persistent word's and writes it back with the batch: for designs that persist such
    /// metadata (the ablation of selective metadata persistence, ROART §3.3.1).
    #[inline]
    #[track_caller]
    pub fn store_persistent<'m, M: Media>(&'m self, value: u64, batch: &PersistBatch<'_, 'm, M>) {
        batch.media().store(&self.0, value);
        batch.join(&self.0);
    }

    #[inline]
    #[track_caller]
    pub(crate) fn compare_exchange<M: Media>(&self, media: &M, old: u64, new: u64) -> Result<u64, u64> {
        media.compare_exchange_volatile(&self.0, old, new)
    }
}

#[cfg(test)]
mod tests;
