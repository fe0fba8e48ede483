//! Path compression in place, as WORT does it (WORT §3.4, Algorithms 1 and 2).
//!
//! A split shortens the node's prefix, and a merge lengthens it, before the pointer above is swung. Whoever comes between, or after a crash there, finds a depth other than the one at which he arrives. Readers do not
//! look; the writer recovers the header.

use super::InPlace;
use crate::adaptive::build::{Child, Children, draft_node};
use crate::adaptive::node::NodeRef;
use crate::adaptive::walk::{Place, right_header, skip};
use crate::adaptive::write::{publish, publish_link};
use crate::adaptive::{Prefix, Tree};
use art::{Kind, Node, draft_leaf};
use heap::Error;
use index::OnHeap;
use pmem::{Fault, Link, Media, Purpose, persist_scope};

/// Algorithm 1, `SplitCmp`: 4 write-backs, 2 fences.
pub(super) fn split<M: Media>(
    tree: &Tree<InPlace, M>,
    place: &Place<'_>,
    node: NodeRef<'_, InPlace>,
    (parts, byte): (usize, u8),
    key: &[u8],
    value: &[u8],
) -> Result<(), Error> {
    let heap = tree.heap();
    let level = node.header(heap.media()).level();
    let shorter = right_header(
        tree,
        (place.link, place.depth),
        parts + 1,
        node.header(heap.media()),
    )?; // lines 5, 6
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let leaf = draft_leaf(heap, key, value, &batch)?.flush(&batch).erased(); // line 2
        let mut children = Children::default();
        children.add_reachable(Some(byte), place.link, skip(parts + 1, level)); // line 4
        children.add(key.get(parts).copied(), Child::New(leaf, Kind::Leaf, 0));
        let header = Prefix::of(key, place.depth, parts); // line 3
        let (above, kind) = draft_node::<InPlace, M>(heap, &batch, header, children)?;
        node.common().header.store(shorter.to_word(), &batch); // line 7
        let fenced = batch.fence(); // lines 8 to 12
        publish(
            tree,
            place,
            above.persisted(&fenced),
            kind,
            skip(place.depth, parts),
        ); // lines 14 to 17
        Ok(())
    })
}

/// The reverse, in the same order. 2 write-backs, 2 fences.
pub(super) fn merge<M: Media>(
    tree: &Tree<InPlace, M>,
    place: &Place<'_>,
    child: Link,
    depth: usize,
) -> Result<(), Error> {
    let heap = tree.heap();
    let node = NodeRef::<InPlace>::at(heap, child)?;
    let level = node.level(heap, child, depth)?;
    let longer = right_header(tree, (child, depth), place.depth, node.header(heap.media()))?;
    store(tree, node, longer);
    publish_link(tree, place, child, skip(place.depth, level));
    Ok(())
}

/// Algorithm 2, `RecoverHeader`: 1 write-back, 1 fence.
pub(super) fn recover<M: Media>(
    tree: &Tree<InPlace, M>,
    place: &Place<'_>,
    node: NodeRef<'_, InPlace>,
    found: Prefix,
) -> Result<Prefix, Fault> {
    let header = right_header(tree, (place.link, place.depth), place.depth, found)?; // lines 3 to 8
    store(tree, node, header); // lines 9 to 12
    Ok(header)
}

fn store<M: Media>(tree: &Tree<InPlace, M>, node: NodeRef<'_, InPlace>, header: Prefix) {
    persist_scope(tree.heap().media(), Purpose::Node, |batch| {
        node.common().header.store(header.to_word(), &batch);
        let _durable = batch.fence().durable();
    });
}
