//! Slots: the words through which objects become reachable.
//!
//! I1 A link in a slot names an object that was durable before the link was stored. The exception is a
//!    [placed](PSlot::place) link: no reader follows it before the object is durable.
//! I2 A marked link may not be durable in the slot itself; a thread that loads it makes it durable before acting on
//!    it.
//! I3 A reader leaves the mark alone. Between its persist and its next step the slot may have held other links and
//!    hold the same one again (null; an object that hung here before), newly published and not durable yet. The
//!    publisher clears the mark; the first holder of the slot's lock after a crash clears a mark that the crash left.

use super::{Brand, Contended, Durable, Fenced, PersistBatch, Persisted, Publication};
use crate::{Link, Media, PSlot, Persistent, Purpose, Tag, candidates};
use std::marker::PhantomData;

// SAFETY: one atomic word; any bits are valid.
unsafe impl Persistent for PSlot {
    const WORDS_ONLY: bool = true;
}

impl PSlot {
    /// The link (acquire), durable in this slot: the reader persists it if need be.
    #[inline(always)]
    #[track_caller]
    pub fn load<M: Media>(&self, media: &M) -> Link {
        let word = media.load(&self.0);
        if word & Link::MARK != 0 {
            self.persist(media);
        }
        // If the slot holds another word by now, the word read here has been replaced, and was durable just before:
        // the reader's result is ordered before the replacement.
        Link::from_word(word)
    }

    /// Like [`load`](PSlot::load), and clears the mark. The caller holds the lock on the slot, so that no other
    /// thread is publishing into it; or, if threads publish into it only by [`publish_if`](PSlot::publish_if), holds a
    /// guard, so that a link that was replaced does not come back to the slot meanwhile.
    #[track_caller]
    pub fn settle<M: Media>(&self, media: &M) -> Link {
        let word = media.load(&self.0);
        if word & Link::MARK != 0 {
            self.persist(media);
            let _ = media.compare_exchange_unpersisted(&self.0, word, word & !Link::MARK);
        }
        Link::from_word(word)
    }

    /// Like [`load`](PSlot::load), but does not make the link durable: for hints and prefetching.
    #[inline(always)]
    #[track_caller]
    pub fn peek<M: Media>(&self, media: &M) -> Link {
        Link::from_word(media.peek(&self.0))
    }

    /// Yields those of at most 64 slots that may hold a link with the highest 16 bits of `tag`, or one that is not
    /// durable yet; on hardware that can search, few others. The caller [loads](PSlot::load) them one by one: no
    /// other slot holds such a link.
    #[inline(always)]
    pub fn candidates<'s, M: Media>(
        slots: &'s [PSlot],
        tag: Tag,
        media: &M,
    ) -> impl Iterator<Item = &'s PSlot> + use<'s, M> {
        assert!(
            slots.len() <= candidates::MAX,
            "more slots than one search covers"
        );
        let mut left = media.candidates(slots, (tag.get() >> 48) as u16);
        std::iter::from_fn(move || {
            let slot = slots.get(left.trailing_zeros() as usize)?;
            left &= left - 1;
            Some(slot)
        })
    }

    /// Makes the link that was loaded durable. Every reader's guarantee rests on this write-back and this fence.
    #[cold]
    #[inline(never)]
    fn persist<M: Media>(&self, media: &M) {
        media.site("link: met under way");
        media.write_back(&self.0, Purpose::Node);
        media.fence(Purpose::Node);
    }

    /// Stores a link to `object` (the store of the commit point).
    #[inline]
    #[track_caller]
    pub fn publish<'a, P: Publication, M: Media, T: Persistent>(
        &'a self,
        media: &'a M,
        object: Persisted<'_, T>,
        tag: Tag,
    ) -> Published<'a, P, M> {
        let offset = object.release();
        self.put(media, offset.get() | tag.get())
    }

    /// Stores a link to an object that is reachable already, or null.
    #[inline]
    #[track_caller]
    pub fn publish_link<'a, P: Publication, M: Media>(
        &'a self,
        media: &'a M,
        link: Link,
    ) -> Published<'a, P, M> {
        self.put(media, link.bits())
    }

    /// Stores a link in a dormant slot: one that neither readers nor recovery follow until a later store, made after
    /// the batch's fence, activates it (the unused half of metadata kept twice; the tail of a log). Durable once the
    /// batch is fenced.
    #[inline]
    #[track_caller]
    pub fn store<'m, M: Media>(&'m self, link: Link, batch: &PersistBatch<'_, 'm, M>) {
        batch.media().store(&self.0, link.bits());
        batch.join(&self.0);
    }

    /// Writes back a link that another process or thread stored and may not have persisted; durable once the batch is
    /// fenced.
    #[inline]
    #[track_caller]
    pub fn persist_seen<'m, M: Media>(&'m self, batch: &PersistBatch<'_, 'm, M>) {
        batch.join(&self.0);
    }

    /// Publishes `object` if the slot still holds `current`, as [settled](PSlot::settle); otherwise hands the object
    /// back.
    #[track_caller]
    pub fn publish_if<'a, 'h, M: Media, T: Persistent>(
        &'a self,
        media: &'a M,
        current: Link,
        object: Persisted<'h, T>,
        tag: Tag,
    ) -> Result<Published<'a, Contended, M>, Persisted<'h, T>> {
        let word = object.offset().get() | tag.get();
        match media.compare_exchange(&self.0, current.bits(), word | Link::MARK) {
            Ok(_) => {
                let _ = object.release();
                Ok(Published {
                    slot: self,
                    word,
                    media,
                    policy: PhantomData,
                })
            }
            Err(_) => Err(object),
        }
    }

    /// Stores a link to an object that is reachable already, if the slot still holds `current`, as
    /// [settled](PSlot::settle); returns `None` if it does not.
    ///
    /// The slot has not held `link` since the oldest guard now held was pinned, or means the same with `link` as with
    /// each link since: another publisher of `link` that has not committed yet may clear the mark before this
    /// publication is durable.
    #[track_caller]
    pub fn publish_link_if<'a, M: Media>(
        &'a self,
        media: &'a M,
        current: Link,
        link: Link,
    ) -> Option<Published<'a, Contended, M>> {
        let word = link.bits();
        let stored = media.compare_exchange(&self.0, current.bits(), word | Link::MARK);
        stored.is_ok().then_some(Published {
            slot: self,
            word,
            media,
            policy: PhantomData,
        })
    }

    #[inline]
    #[track_caller]
    pub(super) fn put<'a, P: Publication, M: Media>(
        &'a self,
        media: &'a M,
        word: u64,
    ) -> Published<'a, P, M> {
        P::store(media, self, word);
        Published {
            slot: self,
            word,
            media,
            policy: PhantomData,
        }
    }
}

/// Stored, but not durable yet.
#[derive(Debug)]
#[must_use = "the link itself is not durable until committed"]
pub struct Published<'a, P: Publication, M: Media> {
    pub(super) slot: &'a PSlot,
    word: u64,
    pub(super) media: &'a M,
    policy: PhantomData<P>,
}

impl<'a, P: Publication, M: Media> Published<'a, P, M> {
    /// Persists the slot: one write-back (or the non-temporal store made already) and one fence.
    #[inline]
    #[track_caller]
    pub fn commit(self) -> Durable {
        if !P::STREAMS {
            self.media.write_back(&self.slot.0, Purpose::Node);
        }
        self.media.fence(Purpose::Node);
        P::settle(self.media, self.slot, self.word);
        Durable(())
    }

    /// Persists the slot together with others, by the fence of a batch. A publisher that holds a lock on the slot
    /// keeps it until [`Joined::durable`].
    #[inline]
    #[track_caller]
    pub fn join<'e, 'm>(self, batch: &PersistBatch<'e, 'm, M>) -> Joined<'a, 'e, P, M>
    where
        'a: 'm,
    {
        if !P::STREAMS {
            batch.join(&self.slot.0);
        }
        Joined {
            published: self,
            brand: PhantomData,
        }
    }
}

/// Stored, as part of a batch that is not fenced yet.
#[derive(Debug)]
#[must_use = "the slot keeps its mark"]
pub struct Joined<'a, 'e, P: Publication, M: Media> {
    published: Published<'a, P, M>,
    brand: Brand<'e>,
}

impl<'e, P: Publication, M: Media> Joined<'_, 'e, P, M> {
    /// The batch's fence has completed.
    #[inline]
    #[track_caller]
    pub fn durable(self, _fenced: &Fenced<'e>) -> Durable {
        let Published {
            slot, word, media, ..
        } = self.published;
        P::settle(media, slot, word);
        Durable(())
    }
}
