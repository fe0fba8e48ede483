//! ART+CoW's N4 and N16: ART's, with partial keys and slots in parallel, sorted (WORT §3.6).
//!
//! I1 Partial keys never change. A slot that had a child at first always holds a link for its byte, unless a remove has
//!    emptied it because there was no memory for a copy; then it stays empty.

use crate::adaptive::branch::{Branch, Common, link_for, slot_fault};
use art::{Inner, Kind, byte_at, with_byte};
use heap::{Access, Error};
use pmem::{Link, Media, PSlot, PWord, persistent};
use std::ops::Range;

persistent! {
    /// Up to `SLOTS` children; `KEYS` words of partial keys.
    #[derive(Debug)]
    pub struct Small<const SLOTS: usize, const KEYS: usize, const UNUSED: usize>
        [size: 24 + 8 * (KEYS + SLOTS + UNUSED), align: 64]
    {
        common: Common,
        keys: [PWord; KEYS],
        slots: [PSlot; SLOTS],
        unused: [PWord; UNUSED],
    }
}

/// Up to 4 children.
pub type N4 = Small<4, 1, 0>;

/// Up to 16 children.
pub type N16 = Small<16, 2, 3>;

impl<const SLOTS: usize, const KEYS: usize, const UNUSED: usize> Small<SLOTS, KEYS, UNUSED> {
    fn key<M: Media>(&self, media: &M, i: usize) -> u8 {
        byte_at(self.keys[i / 8].load(media), i)
    }

    /// The slots in use, in ascending order, with their bytes and links.
    fn entries<M: Media>(&self, media: &M) -> impl Iterator<Item = (u8, &PSlot, Link)> {
        self.slots.iter().enumerate().filter_map(|(i, slot)| {
            let byte = self.key(media, i);
            let link = link_for(media, slot, byte);
            (!link.is_null()).then_some((byte, slot, link))
        })
    }
}

impl<const SLOTS: usize, const KEYS: usize, const UNUSED: usize> Inner for Small<SLOTS, KEYS, UNUSED> {
    const KIND: Kind = if SLOTS == 4 { Kind::N4 } else { Kind::N16 };
    type Head = Common;

    fn head_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn fill(&mut self, i: usize, byte: u8) -> &mut PSlot {
        let word = &mut self.keys[i / 8];
        *word = PWord::new(with_byte(word.private(), i, byte));
        &mut self.slots[i]
    }
}

impl<const SLOTS: usize, const KEYS: usize, const UNUSED: usize> Branch for Small<SLOTS, KEYS, UNUSED> {
    fn common(&self) -> &Common {
        &self.common
    }

    #[inline]
    fn find<M: Media>(&self, media: &M, byte: u8) -> Option<(&PSlot, Link)> {
        let slots = self
            .slots
            .iter()
            .enumerate()
            .filter(|(i, _)| self.key(media, *i) == byte);
        let mut used = slots.map(|(_, slot)| (slot, link_for(media, slot, byte)));
        used.find(|(_, link)| !link.is_null())
    }

    fn children<M: Media>(&self, media: &M, bytes: Range<usize>, mut each: impl FnMut(u8, Link)) {
        for (byte, _, link) in self.entries(media) {
            if bytes.contains(&usize::from(byte)) {
                each(byte, link);
            }
        }
    }

    fn settle<M: Media>(&self, _media: &M, _byte: u8) {}

    /// A child is added only by a copy.
    fn add<M: Media>(&self, _: &Access<M>, _: u8, _: &[u8], _: &[u8]) -> Result<bool, Error> {
        Ok(false)
    }

    /// A child is removed only by a copy.
    fn remove<M: Media>(&self, _: &M, _: u8) -> bool {
        false
    }

    fn fault<M: Media>(&self, media: &M) -> Option<&'static str> {
        if !self.entries(media).is_sorted_by(|a, b| a.0 < b.0) {
            return Some("the partial keys are not sorted");
        }
        let used = self.slots.iter().filter(|slot| !slot.load(media).is_null());
        if used.count() != self.entries(media).count() {
            return Some("a slot holds a link for another byte");
        }
        self.entries(media)
            .find_map(|(byte, slot, _)| slot_fault(media, slot, byte))
    }
}
