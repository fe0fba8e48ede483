//! WOART: the write optimal adaptive radix tree (WORT §3.5).
//!
//! ART whose every change commits by one 8-byte store in place: an N4 by its word of partial keys and slot array (`n4`,
//! Algorithm 3), an N16 by its bitmap (`n16`, Algorithm 4), an N48 by its child index, an N256 by the pointer
//! (`adaptive`), and a split or a merge of prefixes by the pointer to the node, its header changing beside as in WORT
//! (`prefix`, Algorithms 1 and 2).

mod n16;
mod n4;
mod prefix;

use crate::adaptive::{Adaptive, Prefix, Scheme, Tree, node::NodeRef, walk::Place, write::publish_below};
use heap::{Error, Guard};
use pmem::{Fault, Hardware, Link, Media};

/// A WOART in a heap, under a root of its own.
pub type Woart<M = Hardware> = art::Radix<Adaptive<InPlace>, M>;

/// Nodes and headers change in place.
#[derive(Debug)]
pub struct InPlace;

impl Scheme for InPlace {
    const KIND: u32 = 4;
    type N4 = n4::N4;
    type N16 = n16::N16;

    fn recover_header<M: Media>(
        tree: &Tree<Self, M>,
        place: &Place<'_>,
        node: NodeRef<'_, Self>,
        found: Prefix,
    ) -> Result<Prefix, Fault> {
        prefix::recover(tree, place, node, found)
    }

    fn split_prefix<M: Media>(
        tree: &Tree<Self, M>,
        place: &Place<'_>,
        node: NodeRef<'_, Self>,
        parting: (usize, u8),
        key: &[u8],
        value: &[u8],
        _guard: &Guard,
    ) -> Result<(), Error> {
        prefix::split(tree, place, node, parting, key, value)
    }

    /// The child itself: its depth then tells that its prefix is too short. 1 write-back, 1 fence.
    fn merge_prefix<M: Media>(
        tree: &Tree<Self, M>,
        place: &Place<'_>,
        child: Link,
        depth: usize,
        _guard: &Guard,
    ) -> Result<(), Error> {
        publish_below(tree, place, child, depth)
    }
}
