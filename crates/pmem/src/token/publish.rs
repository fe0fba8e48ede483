//! Publication policies: how others are kept from acting on a link that is not durable yet (ROART §2.3.1).

use super::PSlot;
use crate::{Link, Media};

/// How a publication keeps others from acting on it before it is durable (ROART §2.3.1).
///
/// # Safety
///
/// [`store`](Publication::store) stores the word, with the [mark](Publication::MARKS) or without, and
/// [`settle`](Publication::settle) changes no more than the mark: what the slot held before is retired when the
/// publication is through.
pub unsafe trait Publication: Send + Sync + 'static {
    /// Whether what is stored shows a mark until it is durable.
    const MARKS: bool;
    /// Whether the store passes the cache, so that it takes a fence and no write-back.
    const STREAMS: bool = false;
    /// Stores `word`.
    #[track_caller]
    fn store<M: Media>(media: &M, slot: &PSlot, word: u64);
    /// Takes away what the store has shown, now that `word` is durable.
    #[track_caller]
    fn settle<M: Media>(media: &M, slot: &PSlot, word: u64);
}

/// A mark in the slot until the store is durable; a reader that meets the mark persists the slot itself.
#[derive(Clone, Copy, Debug)]
pub struct LinkAndPersist;

// SAFETY: the word is stored with its mark, which alone is taken away.
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

/// Link-and-persist for slots into which several threads may publish at once, by [`PSlot::publish_if`]: when the store
/// is durable, another publication may already have followed it, which must stay.
///
/// The publisher holds a guard throughout, so that the object cannot be retired and its place be published anew
/// meanwhile.
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
        // It fails if another writer has settled the slot, and then perhaps published.
        let _ = media.compare_exchange_unpersisted(&slot.0, word | Link::MARK, word);
    }
}

/// A plain store into a slot that no reader looks at until another word makes it count (a counter, a child
/// index), as in append-only nodes.
///
/// Where that word is in the slot's line and stored afterwards, its own persist serves both, since the stores to a line
/// become durable in their order; the slot is then not committed by itself.
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

/// A store past the cache, which others see only when it is durable (ROART §3.4.1).
///
/// The processor orders it with no other store but by a fence or a locked instruction: what other threads must see before
/// it is stored in front of the fence that makes the object durable, and what they must see after it behind the commit.
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
