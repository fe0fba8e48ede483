//! ART+CoW's N4 and N16: ART's, with partial keys and slots in parallel, sorted (WORT §3.6).
//!
//! I1 Keys and count never change. A slot goes on holding a link for its byte, but for one that a remove has emptied
//!    because there was no memory for a copy.

use crate::adaptive::node::{Common, Inner, link_for, slot_fault};
use art::Kind;
use heap::{Error, Heap};
use pmem::{Link, Media, PSlot, PWord, Persistent};
use std::ops::Range;

/// Up to `SLOTS` children; `KEYS` words of partial keys.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct Small<const SLOTS: usize, const KEYS: usize, const UNUSED: usize> {
    common: Common,
    count: PWord,
    keys: [PWord; KEYS],
    slots: [PSlot; SLOTS],
    unused: [PWord; UNUSED],
}

/// Up to 4 children.
pub type N4 = Small<4, 1, 0>;

/// Up to 16 children.
pub type N16 = Small<16, 2, 3>;

const _: () = assert!(size_of::<N4>() == 64);
const _: () = assert!(size_of::<N16>() == 3 * 64);

// SAFETY: `repr(C)` of words only, without padding (the size is the sum, for the two that there are).
unsafe impl<const S: usize, const K: usize, const U: usize> Persistent for Small<S, K, U> {}

impl<const SLOTS: usize, const KEYS: usize, const UNUSED: usize> Small<SLOTS, KEYS, UNUSED> {
    fn count<M: Media>(&self, media: &M) -> usize {
        SLOTS.min(self.count.load(media) as usize)
    }

    fn key<M: Media>(&self, media: &M, i: usize) -> u8 {
        (self.keys[i / 8].load(media) >> (i % 8 * 8)) as u8
    }

    /// The slots in use, in ascending order, with their bytes.
    #[inline(always)]
    fn entries<M: Media>(&self, media: &M) -> impl Iterator<Item = (u8, &PSlot)> {
        let used = &self.slots[..self.count(media)];
        used.iter()
            .enumerate()
            .map(|(i, slot)| (self.key(media, i), slot))
    }
}

impl<const SLOTS: usize, const KEYS: usize, const UNUSED: usize> Inner for Small<SLOTS, KEYS, UNUSED> {
    const KIND: Kind = if SLOTS == 4 { Kind::N4 } else { Kind::N16 };

    fn new(common: Common) -> Self {
        Small {
            common,
            count: PWord::new(0),
            keys: [const { PWord::new(0) }; KEYS],
            slots: [const { PSlot::null() }; SLOTS],
            unused: [const { PWord::new(0) }; UNUSED],
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn ends_mut(&mut self) -> &mut PSlot {
        &mut self.common.ends
    }

    fn fill(&mut self, i: usize, byte: u8) -> &mut PSlot {
        let word = &mut self.keys[i / 8];
        *word = PWord::new(word.private() | u64::from(byte) << (i % 8 * 8));
        self.count = PWord::new(i as u64 + 1);
        &mut self.slots[i]
    }

    #[inline]
    fn find<M: Media>(&self, media: &M, byte: u8) -> Option<(&PSlot, Link)> {
        let (_, slot) = self.entries(media).find(|(key, _)| *key == byte)?;
        Some((slot, link_for(media, slot, byte)))
    }

    fn children<M: Media>(&self, media: &M, bytes: Range<usize>, mut each: impl FnMut(u8, Link)) {
        for (byte, slot) in self.entries(media) {
            let link = link_for(media, slot, byte);
            if !link.is_null() && bytes.contains(&usize::from(byte)) {
                each(byte, link);
            }
        }
    }

    fn settle<M: Media>(&self, _media: &M, _byte: u8) {}

    /// By a copy only.
    fn add<M: Media>(&self, _: &Heap<M>, _: u8, _: &[u8], _: &[u8]) -> Result<bool, Error> {
        Ok(false)
    }

    /// By a copy only.
    fn remove<M: Media>(&self, _: &M, _: u8) -> bool {
        false
    }

    fn fault<M: Media>(&self, media: &M) -> Option<&'static str> {
        if self.count.load(media) > SLOTS as u64 {
            return Some("the count is more than there are slots");
        }
        if !self.entries(media).is_sorted_by(|a, b| a.0 < b.0) {
            return Some("the partial keys are not sorted");
        }
        let mut used = self
            .entries(media)
            .filter(|(_, slot)| !slot.load(media).is_null());
        used.find_map(|(byte, slot)| slot_fault(media, slot, byte))
    }
}
