//! A reference to a node of any kind: the readers' view.

use super::branch::{Branch, Common};
use super::n48::N48;
use super::n256::N256;
use super::{Adaptive, Prefix, Scheme};
use art::{
    InnerRef, Kind, Kinds, LONG_SKIP, NodeSite, Tagged, address, child_tag, damaged, each_kind, prefetch,
    prefetch_range,
};
use heap::{Access, Error};
use pmem::{Fault, Link, Media, PSlot};
use std::ops::Range;

/// A reference to a node.
pub struct Node<'g, S: Scheme>(pub(crate) InnerRef<'g, Adaptive<S>>);

impl<S: Scheme> Clone for Node<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Scheme> Copy for Node<'_, S> {}

impl<S: Scheme> Kinds for Adaptive<S> {
    type Head = Common;
    type N4 = S::N4;
    type N16 = S::N16;
    type N48 = N48;
    type N256 = N256;
}

impl<'g, S: Scheme> Node<'g, S> {
    pub(crate) fn common(&self) -> &'g Common {
        each_kind!(self.0, node => node.common())
    }

    pub(crate) fn header<M: Media>(&self, media: &M) -> Prefix {
        Prefix::from_word(self.common().header.load(media))
    }

    pub(crate) fn kind(&self) -> Kind {
        self.0.kind()
    }

    pub(crate) fn find<M: Media>(&self, media: &M, byte: u8) -> Option<(&'g PSlot, Link)> {
        each_kind!(self.0, node => node.find(media, byte))
    }

    pub(crate) fn settle<M: Media>(&self, media: &M, byte: u8) {
        each_kind!(self.0, node => node.settle(media, byte));
    }

    pub(crate) fn add<M: Media>(
        &self,
        heap: &Access<M>,
        byte: u8,
        key: &[u8],
        value: &[u8],
    ) -> Result<bool, Error> {
        each_kind!(self.0, node => node.add(heap, byte, key, value))
    }

    pub(crate) fn remove<M: Media>(&self, media: &M, byte: u8) -> bool {
        each_kind!(self.0, node => node.remove(media, byte))
    }

    pub(crate) fn count_up_to<M: Media>(&self, media: &M, max: usize) -> usize {
        each_kind!(self.0, node => node.count_up_to(media, max))
    }

    pub(crate) fn all<M: Media>(&self, media: &M, mut each: impl FnMut(u8, Link)) {
        each_kind!(self.0, node => node.children(media, 0..256, &mut each));
    }
}

impl<'g, S: Scheme> art::Node<'g> for Node<'g, S> {
    #[inline]
    fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<Self, Fault> {
        InnerRef::at(heap, link).map(Node)
    }

    #[inline(always)]
    fn level<M: Media>(&self, heap: &'g Access<M>, link: Link, depth: usize) -> Result<usize, Fault> {
        match link.aux() {
            LONG_SKIP => {
                let level = self.header(heap.media()).level();
                if level < depth {
                    return Err(damaged("node's level", link));
                }
                Ok(level)
            }
            skip => Ok(depth + usize::from(skip)),
        }
    }

    fn own_level<M: Media>(&self, heap: &'g Access<M>, link: Link, depth: usize) -> Result<usize, Fault> {
        let level = self.header(heap.media()).level();
        if level < depth || level != self.level(heap, link, depth)? {
            return Err(damaged("node's level", link));
        }
        Ok(level)
    }

    #[inline(always)]
    fn child<M: Media>(&self, heap: &'g Access<M>, digit: u8) -> Link {
        self.find(heap.media(), digit)
            .map_or(Link::NULL, |(_, link)| link)
    }

    #[inline]
    fn ends<M: Media>(&self, heap: &'g Access<M>) -> Link {
        self.common().ends.load(heap.media())
    }

    fn children<M: Media>(&self, heap: &'g Access<M>, digits: Range<usize>, mut each: impl FnMut(u8, Link)) {
        each_kind!(self.0, node => node.children(heap.media(), digits, &mut each));
    }

    fn stride(&self) -> usize {
        match self.0 {
            InnerRef::N256(_) => 32,
            _ => 256,
        }
    }

    fn size(&self) -> usize {
        Adaptive::<S>::size(self.kind())
    }

    fn fault<M: Media>(&self, heap: &'g Access<M>, site: NodeSite<'_>) -> Option<&'static str> {
        let media = heap.media();
        let header = self.header(media);
        // A depth that does not match the place is no fault: the next writer recovers the header.
        if !header.is_clean() {
            return Some("the node's header has unused bits set");
        }
        let right = site
            .key
            .map(|key| Prefix::of(key, header.depth(), header.level()));
        if right.is_some_and(|right| right != header) {
            return Some("the node's prefix does not match the keys below");
        }
        let ends = self.common().ends.load(media);
        if !ends.is_null() && ends.tag() != child_tag(Kind::Leaf, 0, 0) {
            return Some("the link to the key that ends at the node has unused bits set");
        }
        let mut count = usize::from(!ends.is_null());
        self.all(media, |_, _| count += 1);
        if count < 2 {
            return Some("a node with fewer than two children");
        }
        each_kind!(self.0, node => node.fault(media))
    }

    #[inline(always)]
    fn prefetch<M: Media>(heap: &Access<M>, link: Link, digit: u8) {
        let start = address(heap, link);
        match link.kind() {
            Kind::N256 => prefetch(start.wrapping_add(N256::slot_at(digit))),
            Kind::N48 => prefetch(start.wrapping_add(N48::index_at(digit))),
            Kind::N16 => prefetch_range(start, size_of::<S::N16>()),
            _ => prefetch(start),
        }
    }
}
