//! Publication policies: how readers are kept from acting on a link that is not durable yet (ROART §2.3.1).

use crate::{Link, Media, PSlot};

/// Keeps readers from acting on a publication before it is durable (ROART §2.3.1).
///
/// # Safety
///
/// [`store`](Publication::store) stores the word, with the [mark](Publication::MARKS) or without, and
/// [`settle`](Publication::settle) changes no more than the mark: the slot's previous object is retired after the
/// publication is complete.
pub unsafe trait Publication: Send + Sync + 'static {
    /// Whether a stored link carries a mark until it is durable.
    const MARKS: bool;
    /// Whether the store bypasses the cache, so that it takes a fence and no write-back.
    const STREAMS: bool = false;
    /// Stores `word`.
    #[track_caller]
    fn store<M: Media>(media: &M, slot: &PSlot, word: u64);
    /// Clears the mark that the store may have set, now that `word` is durable.
    #[track_caller]
    fn settle<M: Media>(media: &M, slot: &PSlot, word: u64);
}

/// Sets a mark in the slot until the store is durable; a reader that meets the mark persists the slot itself.
#[derive(Clone, Copy, Debug)]
pub struct LinkAndPersist;

// SAFETY: the word is stored with its mark, and only the mark is cleared.
unsafe impl Publication for LinkAndPersist {
    const MARKS: bool = true;

    #[inline]
    fn store<M: Media>(media: &M, slot: &PSlot, word: u64) {
        media.store(&slot.0, word | Link::MARK);
    }

    #[inline]
    fn settle<M: Media>(media: &M, slot: &PSlot, word: u64) {
        // The slot's writer holds the lock on it, so no other thread has stored to it meanwhile.
        media.store_unpersisted(&slot.0, word);
    }
}

/// Link-and-persist for slots into which several threads may publish at once, by [`PSlot::publish_if`]: when the
/// store is durable, another publication may already have replaced it, and that one must stay.
///
/// The publisher holds a guard from before its store until it has cleared the mark. So the object cannot be retired,
/// its chunk reused, and a link to the chunk published in the same slot meanwhile.
#[derive(Clone, Copy, Debug)]
pub struct Contended;

// SAFETY: as for `LinkAndPersist`.
unsafe impl Publication for Contended {
    const MARKS: bool = true;

    #[inline]
    fn store<M: Media>(media: &M, slot: &PSlot, word: u64) {
        LinkAndPersist::store(media, slot, word);
    }

    #[inline]
    fn settle<M: Media>(media: &M, slot: &PSlot, word: u64) {
        // The exchange fails if another writer has settled the slot, and then perhaps published into it.
        let _ = media.compare_exchange_unpersisted(&slot.0, word | Link::MARK, word);
    }
}

/// A plain store into a slot that no reader uses until another word makes it count (a counter, a child index), as in
/// append-only nodes.
///
/// If that word lies in the slot's line and is stored afterwards, its own persist serves both, since the stores to a
/// line become durable in order; the slot is then not committed by itself.
#[derive(Clone, Copy, Debug)]
pub struct Uncounted;

// SAFETY: the word is stored as it is.
unsafe impl Publication for Uncounted {
    const MARKS: bool = false;

    #[inline]
    fn store<M: Media>(media: &M, slot: &PSlot, word: u64) {
        media.store(&slot.0, word);
    }

    #[inline]
    fn settle<M: Media>(_media: &M, _slot: &PSlot, _word: u64) {}
}

/// A store that bypasses the cache, so that other threads see it no sooner than it is on its way to memory (ROART
/// §3.4.1). aarch64 has no such store: there readers may act on a link that is not durable yet (see
/// [`Hardware`](crate::Hardware)).
///
/// Only a fence or a locked instruction orders it with other stores. So stores that other threads must see before it
/// go before the fence that makes the object durable; stores that they must see after it go after the commit.
#[derive(Clone, Copy, Debug)]
pub struct NonTemporal;

// SAFETY: the word is stored as it is.
unsafe impl Publication for NonTemporal {
    const MARKS: bool = false;
    const STREAMS: bool = true;

    #[inline]
    fn store<M: Media>(media: &M, slot: &PSlot, word: u64) {
        media.store_nt(&slot.0, word);
    }

    #[inline]
    fn settle<M: Media>(_media: &M, _slot: &PSlot, _word: u64) {}
}
