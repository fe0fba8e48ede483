//! ART+CoW: the adaptive radix tree with copy-on-write (WORT §3.6).
//!
//! An N4 or N16 takes or gives up a child, and any node changes its prefix, in a copy; the change commits by the pointer
//! to the copy in the slot above (`small`, `prefix`). N48 and N256 change in place, as in WOART (`adaptive`); and so
//! does a slot of a small node that goes on being for the same byte.

mod prefix;
mod small;

use crate::adaptive::{Adaptive, Prefix, Scheme, Tree, node::NodeRef, walk::Place, walk::right_header};
use heap::{Error, Guard};
use pmem::{Fault, Hardware, Link, Media};

/// An ART+CoW in a heap, under a root of its own.
pub type ArtCow<M = Hardware> = art::Radix<Adaptive<ByCopy>, M>;

/// Small nodes and headers change by copies.
#[derive(Debug)]
pub struct ByCopy;

impl Scheme for ByCopy {
    const KIND: u32 = 5;
    type N4 = small::N4;
    type N16 = small::N16;

    /// Nothing is stored: only a merge in a full pool leaves such a header, and the next copy of the node has the right
    /// one.
    fn recover_header<M: Media>(
        tree: &Tree<Self, M>,
        place: &Place<'_>,
        _node: NodeRef<'_, Self>,
        found: Prefix,
    ) -> Result<Prefix, Fault> {
        right_header(tree, (place.link, place.depth), place.depth, found)
    }

    fn split_prefix<M: Media>(
        tree: &Tree<Self, M>,
        place: &Place<'_>,
        node: NodeRef<'_, Self>,
        parting: (usize, u8),
        key: &[u8],
        value: &[u8],
        guard: &Guard,
    ) -> Result<(), Error> {
        prefix::split(tree, place, node, parting, key, value, guard)
    }

    fn merge_prefix<M: Media>(
        tree: &Tree<Self, M>,
        place: &Place<'_>,
        child: Link,
        depth: usize,
        guard: &Guard,
    ) -> Result<(), Error> {
        prefix::merge(tree, place, child, depth, guard)
    }
}
