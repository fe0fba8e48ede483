//! The common parts of all kinds of node.
//!
//! I1 A node begins with its header and the slot of the key that ends at its level.
//! I2 A child counts when its slot holds a link with its byte *and*, except in an N256, the node's own words name the
//!    slot for that byte. A reader that has reached a slot through a commit word checks the word again (`CommitWord`,
//!    I3).
//! I3 After a restart there is nothing to rebuild. The one volatile word of a node records whether it was replaced in
//!    this generation, so that a node is not freed twice if a damaged pool leads to it twice.

use super::Prefix;
use art::{Head, Inner, Kind, Tagged, child_tag};
use heap::{Access, Error};
use pmem::{Link, Media, PSlot, PWord, VWord, persistent};
use std::ops::Range;

persistent! {
    /// The common beginning of all nodes.
    #[derive(Debug)]
    pub struct Common [size: 24] {
        /// A [`Prefix`].
        pub(crate) header: PWord,
        /// The leaf of the key that ends at the node's level.
        pub(crate) ends: PSlot,
        /// The generation in which the node was replaced, in the upper half, and a 1 in the lowest bit; 0 at first.
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

impl Head for Common {
    fn ends_mut(&mut self) -> &mut PSlot {
        &mut self.ends
    }
}

/// A kind of node: how its children are found, and change in place. A draft is filled with its children in ascending
/// order.
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
