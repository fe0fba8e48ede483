//! The one kind of node (WORT §3.2, Fig. 2 and 3).
//!
//! ```text
//!  0       header   depth, prefix length, prefix (`header`)
//!  8       ends     the leaf of the key that ends at the node's level
//! 16       children one slot for each half-byte
//! ```
//!
//! I1 A link in a slot that a walk can reach leads to a durable object.
//! I2 A published node has at least two children, the leaf in `ends` counted.
//! I3 An unlinked node keeps its slots as they were: readers and the post-crash collection may still be in it.

use crate::header;
use art::{HalfByte, Kind, Tagged, child_tag, damaged};
use heap::Access;
use pmem::{Fault, Link, Media, PSlot, PWord, Tag, persistent};

/// A header that counts half-bytes.
pub(crate) type Header = header::Header<HalfByte>;

persistent! {
    /// A node: three lines.
    #[derive(Debug)]
    pub struct Node [size: 144] {
        pub(crate) header: PWord,
        pub(crate) ends: PSlot,
        pub(crate) children: [PSlot; 16],
    }
}

/// The tag of a link to a node.
pub(crate) const NODE: Tag = child_tag(Kind::N16, 0, 0);
/// The tag of a link to a leaf.
pub(crate) const LEAF: Tag = child_tag(Kind::Leaf, 0, 0);

impl Node {
    /// A node without children, for a draft.
    pub(crate) fn new(header: Header) -> Node {
        Node {
            header: PWord::new(header.to_word()),
            ends: PSlot::null(),
            children: [const { PSlot::null() }; 16],
        }
    }

    /// The node that `link` leads to.
    #[inline(always)]
    pub(crate) fn at<M: Media>(heap: &Access<M>, link: Link) -> Result<&Node, Fault> {
        match link.offset() {
            Some(offset) if link.kind() == Kind::N16 => heap.at(offset),
            _ => Err(damaged("link to a node", link)),
        }
    }

    /// The header.
    #[inline(always)]
    pub(crate) fn header<M: Media>(&self, media: &M) -> Header {
        Header::from_word(self.header.load(media))
    }

    /// The slot for a digit, or for the key that ends here.
    #[inline(always)]
    pub(crate) fn slot(&self, digit: Option<u8>) -> &PSlot {
        match digit {
            Some(digit) => &self.children[usize::from(digit & 15)],
            None => &self.ends,
        }
    }

    /// The slot of a draft.
    pub(crate) fn slot_mut(&mut self, digit: Option<u8>) -> &mut PSlot {
        match digit {
            Some(digit) => &mut self.children[usize::from(digit & 15)],
            None => &mut self.ends,
        }
    }

    /// All slots, in the order of the keys below them.
    pub(crate) fn slots(&self) -> impl DoubleEndedIterator<Item = &PSlot> {
        std::iter::once(&self.ends).chain(&self.children)
    }
}
