//! WOART's N16 (WORT §3.5, Fig. 5): partial keys and slots in parallel, and a bitmap, which commits.
//!
//! I1 Entry i counts if bit i + 1 of the bitmap's word is set (bit 0 is the mark of its commit). No two
//!    entries that count are for the same byte.
//! I2 Partial key and slot of an entry change only while it does not count.

use crate::adaptive::Publish;
use crate::adaptive::branch::{Branch, Common, link_for, slot_fault};
use art::{Inner, Kind, child_tag, draft_leaf, with_byte};
use heap::{Access, Error};
use pmem::{CommitWord, Link, Media, PSlot, PWord, Purpose, persist_scope, persistent};
use std::ops::Range;

persistent! {
    /// Up to 16 children.
    #[derive(Debug)]
    pub struct N16 [size: 3 * 64, align: 64] {
        common: Common,
        bitmap: CommitWord,
        keys: [PWord; 2],
        slots: [PSlot; 16],
        unused: [PWord; 2],
    }
}

/// The bitmap of the entries that count.
fn entries(word: u64) -> u16 {
    (word >> 1) as u16
}

/// The positions of the bits of a bitmap.
fn places(mut entries: u16) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = entries.trailing_zeros();
        entries &= entries.wrapping_sub(1);
        (place < 16).then_some(place as usize)
    })
}

impl N16 {
    /// The partial keys; those whose bits are set in the bitmap count. The others may not be durable yet.
    #[inline(always)]
    fn keys<M: Media>(&self, media: &M) -> [u8; 16] {
        let mut keys = [0; 16];
        for (word, bytes) in self.keys.iter().zip(keys.as_chunks_mut::<8>().0) {
            *bytes = word.peek(media).to_le_bytes();
        }
        keys
    }

    /// The entry that counts for a byte.
    #[inline(always)]
    fn entry<M: Media>(&self, media: &M, bitmap: u64, byte: u8) -> Option<usize> {
        let keys = self.keys(media);
        let mut same = 0u16;
        for (i, key) in keys.into_iter().enumerate() {
            same |= u16::from(key == byte) << i;
        }
        places(same & entries(bitmap)).next()
    }
}

impl Inner for N16 {
    const KIND: Kind = Kind::N16;
    type Head = Common;

    fn head_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn fill(&mut self, i: usize, byte: u8) -> &mut PSlot {
        let keys = &mut self.keys[i / 8];
        *keys = PWord::new(with_byte(keys.private(), i, byte));
        self.bitmap = CommitWord::new(self.bitmap.private() | 2 << i);
        &mut self.slots[i]
    }
}

impl Branch for N16 {
    fn common(&self) -> &Common {
        &self.common
    }

    #[inline]
    fn find<M: Media>(&self, media: &M, byte: u8) -> Option<(&PSlot, Link)> {
        self.bitmap.read_stable(media, |bitmap| {
            let slot = &self.slots[self.entry(media, bitmap, byte)?];
            Some((slot, link_for(media, slot, byte)))
        })
    }

    fn children<M: Media>(&self, media: &M, bytes: Range<usize>, mut each: impl FnMut(u8, Link)) {
        let (keys, links) = self.bitmap.read_stable(media, |bitmap| {
            let keys = self.keys(media);
            let mut links = [Link::NULL; 16];
            for entry in places(entries(bitmap)) {
                links[entry] = link_for(media, &self.slots[entry], keys[entry]);
            }
            (keys, links)
        });
        for (byte, link) in keys.into_iter().zip(links) {
            if !link.is_null() && bytes.contains(&usize::from(byte)) {
                each(byte, link);
            }
        }
    }

    fn settle<M: Media>(&self, media: &M, _byte: u8) {
        self.bitmap.settle(media);
    }

    /// Algorithm 4, `AddChild16`. Costs 4 write-backs, or 3 if the link lies in the line of the partial keys, and 2
    /// fences: the first is for the leaf, the link to it and the partial key, which no reader finds yet.
    fn add<M: Media>(&self, heap: &Access<M>, byte: u8, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        let media = heap.media();
        let bitmap = self.bitmap.settle(media);
        let Some(entry) = places(!entries(bitmap)).next() else {
            return Ok(false); // line 14
        };
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(heap, key, value, &batch)?.flush(&batch);
            let slot = &self.slots[entry];
            let placed = slot.place::<Publish, _, _>(leaf, child_tag(Kind::Leaf, byte, 0), &batch); // line 4
            let keys = &self.keys[entry / 8];
            media.site("woart: key byte");
            keys.store(with_byte(keys.load(media), entry, byte), &batch); // line 3
            let fenced = batch.fence(); // lines 5 to 8
            let _durable = placed
                .publish(&fenced, &self.bitmap, bitmap | 2 << entry)
                .commit(); // lines 9 to 12
            Ok(true)
        })
    }

    /// Costs 1 write-back and 1 fence.
    fn remove<M: Media>(&self, media: &M, byte: u8) -> bool {
        let bitmap = self.bitmap.settle(media);
        if let Some(entry) = self.entry(media, bitmap, byte) {
            let _durable = self
                .bitmap
                .publish::<Publish, _>(media, bitmap & !(2 << entry))
                .commit();
        }
        true
    }

    fn fault<M: Media>(&self, media: &M) -> Option<&'static str> {
        let bitmap = self.bitmap.load(media);
        if bitmap >> 17 != 0 {
            return Some("the bitmap has unused bits set");
        }
        let keys = self.keys(media);
        for entry in places(entries(bitmap)) {
            let before = places(entries(bitmap)).take_while(|other| *other < entry);
            if before.into_iter().any(|other| keys[other] == keys[entry]) {
                return Some("two children for one byte");
            }
            if self.slots[entry].load(media).is_null() {
                return Some("the bitmap names an empty slot");
            }
            if let Some(fault) = slot_fault(media, &self.slots[entry], keys[entry]) {
                return Some(fault);
            }
        }
        None
    }
}
