//! P-ART's nodes as readers see them.
//!
//! A reader takes the level from the node and skips the bytes in between: so a prefix that does not fit does not
//! affect any reader ("a read … compares level field with the sum of the depth and the prefix length …; if there is a
//! mismatch, the read simply ignores a part of the prefix", RECIPE §6.4). The whole key is compared at the leaf.

use super::AppendOnly;
use super::node::Node;
use art::{InnerRef, Kind, Kinds, NodeSite, Tagged, address, damaged, index_word, prefetch, prefetch_range};
use heap::Access;
use pmem::{Fault, Link, Media, PSlot};
use std::ops::Range;

impl<'g> art::Node<'g> for Node<'g> {
    #[inline]
    fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<Self, Fault> {
        Node::at(heap, link)
    }

    #[inline]
    fn level<M: Media>(&self, heap: &'g Access<M>, link: Link, depth: usize) -> Result<usize, Fault> {
        let level = Node::level(self, heap.media());
        if level < depth {
            return Err(damaged("node's level", link));
        }
        Ok(level)
    }

    #[inline]
    fn child<M: Media>(&self, heap: &'g Access<M>, digit: u8) -> Link {
        self.find(heap.media(), digit)
            .map_or(Link::NULL, |(_, link)| link)
    }

    #[inline]
    fn ends<M: Media>(&self, heap: &'g Access<M>) -> Link {
        self.header().ends.load(heap.media())
    }

    fn children<M: Media>(&self, heap: &'g Access<M>, digits: Range<usize>, each: impl FnMut(u8, Link)) {
        self.each_child(heap.media(), digits, each);
    }

    fn stride(&self) -> usize {
        match self.0 {
            InnerRef::N4(_) | InnerRef::N16(_) => 256,
            InnerRef::N48(_) | InnerRef::N256(_) => 16,
        }
    }

    fn size(&self) -> usize {
        AppendOnly::size(self.kind())
    }

    fn fault<M: Media>(&self, heap: &'g Access<M>, site: NodeSite<'_>) -> Option<&'static str> {
        let media = heap.media();
        if !self.meta(media).is_of(self.kind()) {
            return Some("the node's kind, counter or key bytes are invalid");
        }
        // It may be too long or too short, but must agree with the key (`repair`).
        if let Some(key) = site.key
            && !self.prefix(media).agrees(key, site.level)
        {
            return Some("the node's prefix does not match the keys below");
        }
        let of_its_byte = |byte: u8, slot: &PSlot| {
            let link = slot.load(media);
            link.is_null() || (link.byte() == byte && link.aux() == 0)
        };
        let sound = match self.0 {
            InnerRef::N4(_) | InnerRef::N16(_) => self
                .counted(media)
                .enumerate()
                .all(|(entry, (byte, slot))| of_its_byte(byte, slot) || self.is_torn(media, entry, byte)),
            InnerRef::N48(node) => {
                let mut named = [false; 256];
                (0..=255).all(|byte| {
                    let entry = art::byte_at(node.index[index_word(byte)].load(media), byte.into());
                    let slot = node.slots.get(usize::from(entry >> 1).wrapping_sub(1));
                    let twice = std::mem::replace(&mut named[usize::from(entry)], true);
                    entry == 0 || (!twice && slot.is_some_and(|slot| of_its_byte(byte, slot)))
                })
            }
            InnerRef::N256(node) => (0..=255)
                .zip(&node.slots)
                .all(|(byte, slot)| of_its_byte(byte, slot)),
        };
        if !sound {
            return Some("a child is under another byte, or under two");
        }
        let ends = self.header().ends.load(media);
        (!ends.is_null() && (ends.byte(), ends.aux()) != (0, 0))
            .then_some("the key that ends at a node has a byte")
    }

    #[inline(always)]
    fn prefetch<M: Media>(heap: &Access<M>, link: Link, digit: u8) {
        let start = address(heap, link);
        prefetch(start);
        match link.kind() {
            Kind::N16 => prefetch_range(start.wrapping_add(64), 128),
            Kind::N48 => prefetch(start.wrapping_add(64 + usize::from(digit))),
            Kind::N256 => prefetch(start.wrapping_add(64 + usize::from(digit) * size_of::<u64>())),
            _ => {}
        }
    }
}
