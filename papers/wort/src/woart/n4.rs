//! WOART's N4 (WORT §3.5, Fig. 5): partial keys and slot array in one word, which commits.
//!
//! ```text
//!  63      32 31       0
//! +----------+----------+
//! |  4 keys  | 4 slots  |   key i, in ascending order, is that of the child in slot i of the array;
//! +----------+----------+   a slot's number is counted from 1 and doubled, zero is none
//! ```
//!
//! I1 The word names a slot at most once, and a byte at most once.
//! I2 A slot that the word does not name may hold anything: a removed child, or a link that a crash has left there
//!    before the word named it. It is reused.

use crate::adaptive::Publish;
use crate::adaptive::branch::{Branch, Common, link_for, slot_fault};
use art::{Inner, Kind, child_tag, draft_leaf};
use heap::{Access, Error};
use pmem::{CommitWord, Link, Media, PSlot, Purpose, persist_scope, persistent};
use std::ops::Range;

persistent! {
    /// Up to 4 children.
    #[derive(Debug)]
    pub struct N4 [size: 64, align: 64] {
        common: Common,
        word: CommitWord, // partial keys and slot array
        slots: [PSlot; 4],
    }
}

/// A decoded value of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Names {
    len: usize,
    /// Partial key and slot of each child.
    list: [(u8, u8); 4],
}

impl Names {
    fn of(word: u64) -> Names {
        let bytes = word.to_le_bytes();
        let mut names = Names {
            len: 0,
            list: [(0, 0); 4],
        };
        for (&slot, &key) in bytes[..4].iter().zip(&bytes[4..]) {
            if let Some(slot) = (slot >> 1).checked_sub(1) {
                names.list[names.len] = (key, slot);
                names.len += 1;
            }
        }
        names
    }

    fn as_slice(&self) -> &[(u8, u8)] {
        &self.list[..self.len]
    }

    fn to_word(self) -> u64 {
        let mut bytes = [0; 8];
        for (i, &(key, slot)) in self.as_slice().iter().enumerate() {
            bytes[i] = (slot + 1) << 1;
            bytes[4 + i] = key;
        }
        u64::from_le_bytes(bytes)
    }

    /// The names with one more; there must be at most three.
    fn with(mut self, key: u8, slot: u8) -> Names {
        self.list[self.len] = (key, slot);
        self.len += 1;
        self.list[..self.len].sort_unstable();
        self
    }

    fn without(mut self, key: u8) -> Names {
        let kept = self.list.into_iter().take(self.len).filter(|name| name.0 != key);
        let mut list = [(0, 0); 4];
        self.len = kept.zip(&mut list).map(|(name, place)| *place = name).count();
        self.list = list;
        self
    }

    /// A slot that is not named, if there is one.
    fn vacant(&self) -> Option<u8> {
        if self.len == 4 {
            return None;
        }
        (0..4).find(|slot| self.as_slice().iter().all(|name| name.1 != *slot))
    }
}

/// The slot that a word names for a partial key.
#[inline(always)]
fn named(word: u64, key: u8) -> Option<usize> {
    let bytes = word.to_le_bytes();
    (0..4)
        .find(|&i| bytes[4 + i] == key && bytes[i] > 1)
        .map(|i| usize::from(bytes[i] >> 1) - 1)
}

impl Inner for N4 {
    const KIND: Kind = Kind::N4;
    type Head = Common;

    fn head_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn fill(&mut self, i: usize, byte: u8) -> &mut PSlot {
        let names = Names::of(self.word.private());
        self.word = CommitWord::new(names.with(byte, i as u8).to_word());
        &mut self.slots[i]
    }
}

impl Branch for N4 {
    fn common(&self) -> &Common {
        &self.common
    }

    #[inline]
    fn find<M: Media>(&self, media: &M, byte: u8) -> Option<(&PSlot, Link)> {
        self.word.read_stable(media, |word| {
            let slot = self.slots.get(named(word, byte)?)?;
            Some((slot, link_for(media, slot, byte)))
        })
    }

    fn children<M: Media>(&self, media: &M, bytes: Range<usize>, mut each: impl FnMut(u8, Link)) {
        let (names, links) = self.word.read_stable(media, |word| {
            let names = Names::of(word);
            let links = names.list.map(|(byte, slot)| {
                let slot = self.slots.get(usize::from(slot));
                slot.map_or(Link::NULL, |slot| link_for(media, slot, byte))
            });
            (names, links)
        });
        for (&(byte, _), link) in names.as_slice().iter().zip(links) {
            if !link.is_null() && bytes.contains(&usize::from(byte)) {
                each(byte, link);
            }
        }
    }

    fn settle<M: Media>(&self, media: &M, _byte: u8) {
        self.word.settle(media);
    }

    /// Algorithm 3, `AddChild4`. Costs 3 write-backs and 2 fences: the first is for the leaf and the link to it, which
    /// no reader finds yet.
    fn add<M: Media>(&self, heap: &Access<M>, byte: u8, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let media = heap.media();
        let names = Names::of(self.word.settle(media));
        let Some(vacant) = names.vacant() else {
            return Ok(false); // line 14
        };
        let with_child = names.with(byte, vacant).to_word(); // lines 3, 4
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(heap, key, value, &batch)?.flush(&batch);
            let slot = &self.slots[usize::from(vacant)];
            media.site("woart: pointer");
            let placed = slot.place::<Publish, _, _>(leaf, child_tag(Kind::Leaf, byte, 0), &batch); // line 5
            let fenced = batch.fence(); // lines 6 to 8
            let _durable = placed.publish(&fenced, &self.word, with_child).commit(); // lines 9 to 12
            Ok(true)
        })
    }

    /// Costs 1 write-back and 1 fence.
    fn remove<M: Media>(&self, media: &M, byte: u8) -> bool {
        let names = Names::of(self.word.settle(media)).without(byte);
        let _durable = self.word.publish::<Publish, _>(media, names.to_word()).commit();
        true
    }

    fn fault<M: Media>(&self, media: &M) -> Option<&'static str> {
        let word = self.word.load(media);
        let names = Names::of(word);
        let list = names.as_slice();
        if names.to_word() != word || !list.is_sorted_by(|a, b| a.0 < b.0) {
            return Some("partial keys and slot array are invalid");
        }
        for (i, &(byte, slot)) in list.iter().enumerate() {
            let Some(at) = self.slots.get(usize::from(slot)) else {
                return Some("the slot array names a slot that does not exist");
            };
            if list[..i].iter().any(|name| name.1 == slot) {
                return Some("the slot array names a slot twice");
            }
            if at.load(media).is_null() {
                return Some("the slot array names an empty slot");
            }
            if let Some(fault) = slot_fault(media, at, byte) {
                return Some(fault);
            }
        }
        None
    }
}
