//! N48, in both schemes (WORT §3.5): a child index of a byte for each key byte, and 48 slots.
//!
//! I1 The index's byte for a key byte is its slot's number (`art::named`). The lowest bit of an index word is the
//!    mark of its commit.
//! I2 Only the index determines which slots are in use (§3.5): a link that a crash has left in a slot before the
//!    index named it does not occupy the slot.

use super::Publish;
use super::branch::{Branch, Common, link_for, slot_fault};
use art::{Inner, Kind, byte_at, child_tag, draft_leaf, index_word, named, naming};
use heap::{Access, Error};
use pmem::{CommitWord, Link, Media, PSlot, PWord, Purpose, persist_scope, persistent};
use std::ops::Range;

persistent! {
    /// Up to 48 children.
    #[derive(Debug)]
    pub struct N48 [size: 11 * 64, align: 64] {
        common: Common,
        index: [CommitWord; 32],
        slots: [PSlot; 48],
        unused: [PWord; 5],
    }
}

impl N48 {
    /// The offset in the node of the index's byte for a key byte.
    pub(crate) const fn index_at(byte: u8) -> usize {
        std::mem::offset_of!(N48, index) + byte as usize
    }

    fn word(&self, byte: u8) -> &CommitWord {
        &self.index[index_word(byte)]
    }

    /// The slots that the index names, one bit for each.
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
    type Head = Common;

    fn head_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn fill(&mut self, i: usize, byte: u8) -> &mut PSlot {
        let word = &mut self.index[index_word(byte)];
        *word = CommitWord::new(naming(word.private(), byte, Some(i)));
        &mut self.slots[i]
    }
}

impl Branch for N48 {
    fn common(&self) -> &Common {
        &self.common
    }

    #[inline]
    fn find<M: Media>(&self, media: &M, byte: u8) -> Option<(&PSlot, Link)> {
        self.word(byte).read_stable(media, |word| {
            let slot = self.slots.get(named(word, byte)?)?;
            Some((slot, link_for(media, slot, byte)))
        })
    }

    fn children<M: Media>(&self, media: &M, bytes: Range<usize>, mut each: impl FnMut(u8, Link)) {
        for (i, word) in self.index.iter().enumerate() {
            if bytes.end <= i * 8 || bytes.start >= i * 8 + 8 {
                continue;
            }
            let bytes_of_word: [u8; 8] = std::array::from_fn(|at| (i * 8 + at) as u8);
            let links = word.read_stable(media, |word| {
                bytes_of_word.map(|byte| {
                    let slot = named(word, byte).and_then(|slot| self.slots.get(slot));
                    slot.map_or(Link::NULL, |slot| link_for(media, slot, byte))
                })
            });
            for (byte, link) in bytes_of_word.into_iter().zip(links) {
                if !link.is_null() && bytes.contains(&usize::from(byte)) {
                    each(byte, link);
                }
            }
        }
    }

    fn settle<M: Media>(&self, media: &M, byte: u8) {
        self.word(byte).settle(media);
    }

    /// The link first, then the index (§3.5). Costs 3 write-backs and 2 fences.
    fn add<M: Media>(&self, heap: &Access<M>, byte: u8, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let media = heap.media();
        let vacant = self.used(media).trailing_ones() as usize;
        let Some(slot) = self.slots.get(vacant) else {
            return Ok(false);
        };
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(heap, key, value, &batch)?.flush(&batch);
            let placed = slot.place::<Publish, _, _>(leaf, child_tag(Kind::Leaf, byte, 0), &batch);
            let fenced = batch.fence();
            let word = self.word(byte);
            let index = naming(word.settle(media), byte, Some(vacant));
            let _durable = placed.publish(&fenced, word, index).commit();
            Ok(true)
        })
    }

    /// Costs 1 write-back and 1 fence.
    fn remove<M: Media>(&self, media: &M, byte: u8) -> bool {
        let word = self.word(byte);
        let index = naming(word.settle(media), byte, None);
        let _durable = word.publish::<Publish, _>(media, index).commit();
        true
    }

    fn fault<M: Media>(&self, media: &M) -> Option<&'static str> {
        let mut used = 0u64;
        for byte in 0..=255 {
            let word = self.word(byte).load(media);
            let Some(name) = named(word, byte) else { continue };
            let Some(slot) = self.slots.get(name) else {
                return Some("the child index names a slot that does not exist");
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
        let odd = |byte: u8| byte_at(self.word(byte).load(media), byte.into()) & 1 != 0;
        if (0..=255).any(odd) {
            return Some("the child index has unused bits set");
        }
        None
    }
}
