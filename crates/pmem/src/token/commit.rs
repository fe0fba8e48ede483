//! Commit words: words other than links whose single store commits a change of a node.
//!
//! In some nodes one word says which of their slots count: a slot array, a bitmap, a child index (WORT §3.5). Such a
//! node takes a child in two steps. First the link is [placed](PSlot::place) into a slot that does not count yet, in
//! the batch of the object that it leads to. After the fence, the word that makes the slot count is stored and made
//! durable.
//!
//! I1 Whatever a commit word makes count was durable before the word was stored, or was stored before it in the same
//!    line, and so becomes durable no later ([`Uncounted`](super::Uncounted)).
//! I2 Bit 0 is the mark of link-and-persist, with the same meaning for the word as for a slot. It is also set while a
//!    value beside the word may not be durable ([`CommitWord::mark`]).
//! I3 A reader trusts what it has read in a slot only if it finds the word unchanged afterwards: since it read the
//!    word, the slot may have been emptied and reused ([`CommitWord::read_stable`]).

use super::{Brand, Durable, Fenced, Flushed, PersistBatch, Publication, Published};
use crate::{Link, Media, PSlot, Persistent, Tag};

/// A persistent word of 63 bits, 1 to 63, whose store commits a change.
///
/// One thread at a time publishes into it; any thread may load it.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct CommitWord(PSlot);

// SAFETY: one atomic word; any bits are valid.
unsafe impl Persistent for CommitWord {
    const WORDS_ONLY: bool = true;
}

impl CommitWord {
    /// The bits that are the user's.
    pub const BITS: u64 = !Link::MARK;

    /// A word for a draft. Bit 0 is dropped.
    #[inline]
    pub const fn new(value: u64) -> CommitWord {
        CommitWord(PSlot(std::sync::atomic::AtomicU64::new(value & Self::BITS)))
    }

    /// The value of a word that no other thread can reach yet.
    #[inline]
    pub fn private(&self) -> u64 {
        self.0.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// The value (acquire), persisted by the reader itself if need be.
    #[inline(always)]
    #[track_caller]
    pub fn load<M: Media>(&self, media: &M) -> u64 {
        self.0.load(media).bits()
    }

    /// Whether the word has its mark: it, or a value [beside it](CommitWord::mark), may not be durable, or a crash came
    /// before its publisher knew that it was.
    #[inline]
    #[track_caller]
    pub fn is_marked<M: Media>(&self, media: &M) -> bool {
        media.peek(&self.0.0) & Link::MARK != 0
    }

    /// Returns what `read` finds in slots, given the word's value, which was unchanged afterwards (I3).
    #[inline(always)]
    #[track_caller]
    pub fn read_stable<M: Media, R>(&self, media: &M, mut read: impl FnMut(u64) -> R) -> R {
        loop {
            let word = self.load(media);
            let found = read(word);
            if self.load(media) == word {
                return found;
            }
        }
    }

    /// Like [`load`](CommitWord::load), and clears the mark. The caller holds the lock on the word.
    #[track_caller]
    pub fn settle<M: Media>(&self, media: &M) -> u64 {
        self.0.settle(media).bits()
    }

    /// Stores `value`, whose bit 0 is dropped. A slot that it makes count must satisfy I1: its link was committed
    /// before, or stored in the word's line. For an object that is not durable yet, use [`Placed::publish`].
    #[inline]
    #[track_caller]
    pub fn publish<'a, P: Publication, M: Media>(&'a self, media: &'a M, value: u64) -> Published<'a, P, M> {
        self.0.put(media, value & Self::BITS)
    }
}

impl CommitWord {
    /// Sets the mark and leaves the value. For a caller that holds the word's lock and is about to change, in this
    /// batch, a value beside the word in place. A reader that loads the marked word persists the word's line; a reader
    /// of a value in another line persists that line itself.
    #[inline]
    #[track_caller]
    pub fn mark<'a, 'e, M: Media>(&'a self, batch: &PersistBatch<'e, 'a, M>) -> Marked<'a, 'e, M> {
        let media = batch.media();
        let value = media.peek(&self.0.0) & Self::BITS;
        media.store_unpersisted(&self.0.0, value | Link::MARK);
        Marked {
            word: self,
            value,
            media,
            brand: std::marker::PhantomData,
        }
    }
}

/// A commit word that is marked for a value that its holder stores beside it.
#[derive(Debug)]
#[must_use = "the word keeps its mark"]
pub struct Marked<'a, 'e, M: Media> {
    word: &'a CommitWord,
    value: u64,
    media: &'a M,
    brand: Brand<'e>,
}

impl<'e, M: Media> Marked<'_, 'e, M> {
    /// Clears the mark: the value stored beside the word is durable.
    #[inline]
    #[track_caller]
    pub fn durable(self, _fenced: &Fenced<'e>) -> Durable {
        self.media.store_unpersisted(&self.word.0.0, self.value);
        Durable(())
    }
}

impl PSlot {
    /// Stores a link to `object` into a slot that does not count yet, marked; slot and object become durable
    /// together. The object belongs to the slot from now on: if nothing is published, the next post-crash collection
    /// reclaims it.
    #[inline]
    #[track_caller]
    pub fn place<'a, 'e, P: Publication, M: Media, T: Persistent>(
        &'a self,
        object: Flushed<'e, '_, T>,
        tag: Tag,
        batch: &PersistBatch<'e, 'a, M>,
    ) -> Placed<'a, 'e, P, M> {
        let word = object.release().get() | tag.get();
        let stored = self.put(batch.media(), word);
        if P::MARKS {
            batch.join(&self.0);
        }
        Placed {
            stored,
            word,
            brand: std::marker::PhantomData,
        }
    }
}

/// A link in a slot that does not count yet.
#[derive(Debug)]
#[must_use = "nothing finds the object yet"]
pub struct Placed<'a, 'e, P: Publication, M: Media> {
    stored: Published<'a, P, M>,
    word: u64,
    brand: super::Brand<'e>,
}

impl<'a, 'e, P: Publication, M: Media> Placed<'a, 'e, P, M> {
    /// Stores `value` into the word that makes the slot count (the store of the commit point).
    #[inline]
    #[track_caller]
    pub fn publish(self, _fenced: &Fenced<'e>, word: &'a CommitWord, value: u64) -> Published<'a, P, M> {
        let Published { slot, media, .. } = self.stored;
        if P::MARKS {
            // The link is durable; only its mark is cleared.
            media.store_unpersisted(&slot.0, self.word);
        }
        word.publish(media, value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toy::Toy;
    use crate::{LinkAndPersist, NonTemporal, Purpose, persist_scope};

    fn insert<P: Publication>(toy: &Toy, slot: &PSlot, word: &CommitWord, value: u64) -> crate::Counts {
        let media = toy.media();
        let before = media.counts();
        persist_scope(media, Purpose::Node, |batch| {
            let node = toy.draft(7, &batch).flush(&batch);
            let placed = slot.place::<P, _, _>(node, Tag::new(3 << 48), &batch);
            let fenced = batch.fence();
            let _durable = placed.publish(&fenced, word, value).commit();
        });
        media.counts() - before
    }

    /// A child in a slot of its own, and the word that makes it count: three lines, two fences.
    #[test]
    fn placing_and_committing_costs_two_fences() {
        let toy = Toy::new();
        let (slot, word) = (PSlot::null(), CommitWord::new(1));
        assert_eq!(word.load(toy.media()), 0);
        let counts = insert::<LinkAndPersist>(&toy, &slot, &word, 5 << 8 | 1);
        assert_eq!((counts.node.write_backs, counts.node.fences), (3, 2));
        assert_eq!(slot.load(toy.media()).tag(), Tag::new(3 << 48));
        assert_eq!(word.load(toy.media()), 5 << 8);
        let counts = insert::<NonTemporal>(&toy, &slot, &word, 6 << 8);
        assert_eq!(
            (counts.node.write_backs, counts.non_temporal, counts.node.fences),
            (1, 2, 2)
        );
        assert_eq!(word.load(toy.media()), 6 << 8);
        assert!(toy.given_back.lock().expect("no panic").is_empty());
    }

    /// After a change of the word, the reader reads everything anew.
    #[test]
    fn what_a_changed_word_said_is_not_believed() {
        let toy = Toy::new();
        let media = toy.media();
        let word = CommitWord::new(2);
        let mut seen = Vec::new();
        let found = word.read_stable(media, |value| {
            seen.push(value);
            if seen.len() < 3 {
                let _durable = word.publish::<LinkAndPersist, _>(media, value + 2).commit();
            }
            value
        });
        assert_eq!((found, seen), (6, vec![2, 4, 6]));
    }

    /// A reader that meets a word not known to be durable persists it, until its holder settles it.
    #[test]
    fn marked_words_are_persisted_by_their_readers() {
        let toy = Toy::new();
        let media = toy.media();
        let word = CommitWord::new(0);
        let published = word.publish::<LinkAndPersist, _>(media, 8);
        let before = media.counts();
        assert_eq!(word.load(media), 8);
        let cost = media.counts() - before;
        assert_eq!((cost.node.write_backs, cost.node.fences), (1, 1));
        drop(published); // as a crash would
        assert_eq!(word.settle(media), 8);
        let before = media.counts();
        assert_eq!((word.settle(media), word.load(media)), (8, 8));
        assert_eq!(media.counts() - before, crate::Counts::default());
    }

    /// A word that is marked for a value beside it costs that value's line, and keeps its own value.
    #[test]
    fn a_value_beside_a_marked_word_costs_its_line() {
        let toy = Toy::new();
        let media = toy.media();
        let (word, value) = (CommitWord::new(8), crate::PWord::new(1));
        let before = media.counts();
        persist_scope(media, Purpose::Node, |batch| {
            let marked = word.mark(&batch);
            assert!(word.is_marked(media));
            value.store(2, &batch);
            let Durable(()) = marked.durable(&batch.fence());
        });
        let cost = media.counts() - before;
        assert_eq!((cost.node.write_backs, cost.node.fences), (1, 1));
        assert_eq!((word.is_marked(media), word.load(media)), (false, 8));
    }
}
