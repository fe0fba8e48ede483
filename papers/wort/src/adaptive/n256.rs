//! N256, in both schemes (WORT §3.5): a slot for each byte, as in the original radix tree.

use super::Publish;
use super::branch::{Branch, Common, link_for, slot_fault};
use art::{Inner, Kind};
use heap::{Access, Error};
use pmem::{Link, Media, PSlot, PWord, persistent};
use std::ops::Range;

persistent! {
    /// A child for each byte.
    #[derive(Debug)]
    pub struct N256 [size: 33 * 64, align: 64] {
        common: Common,
        unused: [PWord; 5],
        slots: [PSlot; 256],
    }
}

impl N256 {
    /// The offset in the node of the slot for a byte.
    pub(crate) const fn slot_at(byte: u8) -> usize {
        std::mem::offset_of!(N256, slots) + byte as usize * size_of::<PSlot>()
    }
}

impl Inner for N256 {
    const KIND: Kind = Kind::N256;
    type Head = Common;

    fn head_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn fill(&mut self, _i: usize, byte: u8) -> &mut PSlot {
        &mut self.slots[usize::from(byte)]
    }
}

impl Branch for N256 {
    fn common(&self) -> &Common {
        &self.common
    }

    #[inline(always)]
    fn find<M: Media>(&self, media: &M, byte: u8) -> Option<(&PSlot, Link)> {
        let slot = &self.slots[usize::from(byte)];
        Some((slot, link_for(media, slot, byte)))
    }

    fn children<M: Media>(&self, media: &M, bytes: Range<usize>, mut each: impl FnMut(u8, Link)) {
        for byte in bytes.start..bytes.end.min(256) {
            let link = link_for(media, &self.slots[byte], byte as u8);
            if !link.is_null() {
                each(byte as u8, link);
            }
        }
    }

    fn settle<M: Media>(&self, _media: &M, _byte: u8) {}

    /// There is a slot for every byte: the writer publishes into it.
    fn add<M: Media>(&self, _: &Access<M>, _: u8, _: &[u8], _: &[u8]) -> Result<bool, Error> {
        Ok(false)
    }

    /// Costs 1 write-back and 1 fence.
    fn remove<M: Media>(&self, media: &M, byte: u8) -> bool {
        let slot = &self.slots[usize::from(byte)];
        let _durable = slot.publish_link::<Publish, M>(media, Link::NULL).commit();
        true
    }

    fn count_up_to<M: Media>(&self, media: &M, max: usize) -> usize {
        let used = self.slots.iter().filter(|slot| !slot.load(media).is_null());
        used.take(max).count()
    }

    fn fault<M: Media>(&self, media: &M) -> Option<&'static str> {
        (0..=255)
            .zip(&self.slots)
            .filter(|(_, slot)| !slot.load(media).is_null())
            .find_map(|(byte, slot)| slot_fault(media, slot, byte))
    }
}
