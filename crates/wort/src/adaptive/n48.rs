//! N48, in both schemes (WORT §3.5): a child index of a byte for each key byte, and 48 slots.
//!
//! I1 The index's byte for a key byte is twice the number of its slot, counted from 1; zero: no child. The lowest bit of
//!    an index word is the mark of its commit.
//! I2 Which slots are in use is told by the index alone (§3.5): a link that a crash has left in a slot before the index
//!    named it does not keep the slot.

use super::Publish;
use super::node::{Common, Inner, link_for, slot_fault};
use art::{Kind, child_tag, draft_leaf};
use heap::{Error, Heap};
use pmem::{CommitWord, Link, Media, PSlot, PWord, Persistent, Purpose, persist_scope};
use std::ops::Range;

/// Up to 48 children.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct N48 {
    common: Common,
    index: [CommitWord; 32],
    slots: [PSlot; 48],
    unused: [PWord; 5],
}

const _: () = assert!(size_of::<N48>() == 11 * 64);

// SAFETY: `repr(C)` of words only, without padding (the size is the sum).
unsafe impl Persistent for N48 {
    const WORDS_ONLY: bool = true;
}

/// Where in an index word the byte for a key byte is.
const fn shift(byte: u8) -> u32 {
    (byte & 7) as u32 * 8
}

/// What an index word says of `byte`: the slot's number, counted from 0.
fn named(word: u64, byte: u8) -> Option<usize> {
    usize::from((word >> shift(byte)) as u8 >> 1).checked_sub(1)
}

fn with(word: u64, byte: u8, name: u64) -> u64 {
    word & !(0xff << shift(byte)) | name << (shift(byte) + 1)
}

impl N48 {
    /// Where in the node the index's byte for a key byte is.
    pub(crate) const fn index_at(byte: u8) -> usize {
        std::mem::offset_of!(N48, index) + byte as usize
    }

    fn word(&self, byte: u8) -> &CommitWord {
        &self.index[usize::from(byte >> 3)]
    }

    /// The slots that the index names, a bit for each.
    fn used<M: Media>(&self, media: &M) -> u64 {
        let mut used = 0;
        for word in &self.index {
            let word = word.load(media);
            for byte in 0..8 {
                used |= named(word, byte).map_or(0, |slot| 1 << (slot & 63));
            }
        }
        used
    }
}

impl Inner for N48 {
    const KIND: Kind = Kind::N48;

    fn new(common: Common) -> Self {
        N48 {
            common,
            index: [const { CommitWord::new(0) }; 32],
            slots: [const { PSlot::null() }; 48],
            unused: [const { PWord::new(0) }; 5],
        }
    }

    fn common(&self) -> &Common {
        &self.common
    }

    fn ends_mut(&mut self) -> &mut PSlot {
        &mut self.common.ends
    }

    fn fill(&mut self, i: usize, byte: u8) -> &mut PSlot {
        let word = &mut self.index[usize::from(byte >> 3)];
        *word = CommitWord::new(with(word.private(), byte, i as u64 + 1));
        &mut self.slots[i]
    }

    #[inline]
    fn find<M: Media>(&self, media: &M, byte: u8) -> Option<(&PSlot, Link)> {
        loop {
            let name = named(self.word(byte).load(media), byte)?;
            let slot = self.slots.get(name)?;
            let link = link_for(media, slot, byte);
            if named(self.word(byte).load(media), byte) == Some(name) {
                return Some((slot, link));
            }
        }
    }

    fn children<M: Media>(&self, media: &M, bytes: Range<usize>, mut each: impl FnMut(u8, Link)) {
        for (i, word) in self.index.iter().enumerate() {
            if bytes.end <= i * 8 || bytes.start >= i * 8 + 8 {
                continue;
            }
            let mut links = [Link::NULL; 8];
            loop {
                let value = word.load(media);
                for (byte, link) in (0..).zip(&mut links) {
                    let slot = named(value, byte).and_then(|slot| self.slots.get(slot));
                    *link = slot.map_or(Link::NULL, |slot| link_for(media, slot, i as u8 * 8 + byte));
                }
                if word.load(media) == value {
                    break;
                }
            }
            for (byte, link) in (i * 8..).zip(links) {
                if !link.is_null() && bytes.contains(&byte) {
                    each(byte as u8, link);
                }
            }
        }
    }

    fn settle<M: Media>(&self, media: &M, byte: u8) {
        self.word(byte).settle(media);
    }

    /// The link first, then the index (§3.5). 3 write-backs, 2 fences.
    fn add<M: Media>(&self, heap: &Heap<M>, byte: u8, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let media = heap.media();
        let name = self.used(media).trailing_ones();
        let Some(slot) = self.slots.get(name as usize) else {
            return Ok(false);
        };
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(heap, key, value, &batch)?.flush(&batch);
            let placed = slot.place::<Publish, _, _>(leaf, child_tag(Kind::Leaf, byte, 0), &batch);
            let fenced = batch.fence();
            let word = self.word(byte);
            let index = with(word.settle(media), byte, u64::from(name) + 1);
            let _durable = placed.publish(&fenced, word, index).commit();
            Ok(true)
        })
    }

    /// 1 write-back, 1 fence.
    fn remove<M: Media>(&self, media: &M, byte: u8) -> bool {
        let word = self.word(byte);
        let index = with(word.settle(media), byte, 0);
        let _durable = word.publish::<Publish, _>(media, index).commit();
        true
    }

    fn fault<M: Media>(&self, media: &M) -> Option<&'static str> {
        let mut used = 0u64;
        for byte in 0..=255 {
            let word = self.word(byte).load(media);
            let Some(name) = named(word, byte) else { continue };
            let Some(slot) = self.slots.get(name) else {
                return Some("the child index names a slot that there is not");
            };
            if used & 1 << name != 0 {
                return Some("the child index names a slot twice");
            }
            used |= 1 << name;
            if slot.load(media).is_null() {
                return Some("the child index names an empty slot");
            }
            if let Some(fault) = slot_fault(media, slot, byte) {
                return Some(fault);
            }
        }
        let odd = |byte: u8| self.word(byte).load(media) >> shift(byte) & 1 != 0;
        if (0..=255).any(odd) {
            return Some("the child index has bits that mean nothing");
        }
        None
    }
}
