//! The common parts of all kinds of node, and the readers' view of them.
//!
//! I1 A node begins with its header and the slot of the key that ends at its level.
//! I2 A child counts when its slot holds a link with its byte *and*, except in an N256, the node's own words name the
//!    slot for that byte. A reader that has reached a slot through a commit word checks the word again (`CommitWord`,
//!    I3).
//! I3 After a restart there is nothing to rebuild. The one volatile word of a node records whether it was replaced in
//!    this generation, so that a node is not freed twice if a damaged pool leads to it twice.

use super::n48::N48;
use super::n256::N256;
use super::{Adaptive, Prefix, Scheme};
use art::{
    Head, Inner, InnerRef, Kind, Kinds, LONG_SKIP, Site, Tagged, address, child_tag, damaged, each_kind,
    prefetch, prefetch_range,
};
use heap::{Access, Error};
use pmem::{Fault, Link, Media, PSlot, PWord, VWord, persistent};
use std::ops::Range;

persistent! {
    /// The common beginning of all nodes.
    #[derive(Debug)]
    pub struct Common [size: 24] {
        /// A [`Prefix`].
        pub(crate) header: PWord,
        /// The leaf of the key that ends at the node's level.
        pub(crate) ends: PSlot,
        /// The generation in which the node was replaced, followed by a 1 bit.
        retired: VWord,
    }
}

impl Common {
    pub(crate) fn new(header: Prefix) -> Common {
        Common {
            header: PWord::new(header.to_word()),
            ends: PSlot::null(),
            retired: VWord::new(0),
        }
    }

    /// Whether the node was replaced in this generation.
    pub(crate) fn is_retired<M: Media>(&self, heap: &Access<M>) -> bool {
        self.retired.load(heap.media()) == Self::retired_in(heap)
    }

    /// Records that the node was replaced; returns `false` if it was before.
    pub(crate) fn retire<M: Media>(&self, heap: &Access<M>) -> bool {
        let first = !self.is_retired(heap);
        self.retired.store(Self::retired_in(heap), heap.media());
        first
    }

    fn retired_in<M: Media>(heap: &Access<M>) -> u64 {
        u64::from(heap.generation()) << 32 | 1
    }
}

/// A kind of node: how its children are found, and change in place. Those of a draft come in ascending order.
pub trait Branch: Inner<Head = Common> {
    /// The common part.
    fn common(&self) -> &Common;

    /// The slot for `byte`, and its link, which may be null. For readers, and for the writer.
    fn find<M: Media>(&self, media: &M, byte: u8) -> Option<(&PSlot, Link)>;

    /// Passes each child whose byte is in the range to `each`, in any order.
    fn children<M: Media>(&self, media: &M, bytes: Range<usize>, each: impl FnMut(u8, Link));

    /// Clears the mark that a crash may have left in the commit word for `byte`. For the writer.
    fn settle<M: Media>(&self, media: &M, byte: u8);

    /// Adds a leaf for `byte`, which has no slot; returns `false` if the node cannot do so in place.
    ///
    /// # Errors
    ///
    /// If the pool is full.
    fn add<M: Media>(&self, heap: &Access<M>, byte: u8, key: &[u8], value: &[u8]) -> Result<bool, Error>;

    /// Makes the slot for `byte`, if there is one, no longer count; returns `false` if the node cannot do so in
    /// place.
    fn remove<M: Media>(&self, media: &M, byte: u8) -> bool;

    /// The number of children, or `max` if there are more.
    fn count_up_to<M: Media>(&self, media: &M, max: usize) -> usize {
        let mut count = 0;
        self.children(media, 0..256, |_, _| count += 1);
        count.min(max)
    }

    /// The fault in how the node names its slots, if there is one.
    fn fault<M: Media>(&self, media: &M) -> Option<&'static str>;
}

/// The fault in a slot for `byte`, if there is one.
pub(crate) fn slot_fault<M: Media>(media: &M, slot: &PSlot, byte: u8) -> Option<&'static str> {
    let link = slot.load(media);
    match link.kind() {
        Kind::Leaf if link.tag() != child_tag(Kind::Leaf, byte, 0) => {
            Some("a link to a leaf has unused bits set")
        }
        _ if link.byte() != byte => Some("a slot holds a link for another byte"),
        _ => None,
    }
}

/// The link that a slot holds for `byte`, or null: the slot may be used for another byte by now.
#[inline(always)]
pub(crate) fn link_for<M: Media>(media: &M, slot: &PSlot, byte: u8) -> Link {
    let link = slot.load(media);
    if link.byte() == byte { link } else { Link::NULL }
}

/// A reference to a node.
pub struct Node<'g, S: Scheme>(pub(crate) InnerRef<'g, Adaptive<S>>);

impl<S: Scheme> Clone for Node<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S: Scheme> Copy for Node<'_, S> {}

impl Head for Common {
    fn ends_mut(&mut self) -> &mut PSlot {
        &mut self.ends
    }
}

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

    fn fault<M: Media>(&self, heap: &'g Access<M>, site: Site<'_>) -> Option<&'static str> {
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
