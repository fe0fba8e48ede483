//! Path compression in place, as WORT does it (WORT §3.4, Algorithms 1 and 2).
//!
//! A split shortens the node's prefix before the pointer to the node above is swung, and a merge leaves it too short.
//! Whoever comes between, or after a crash there, or after a merge, finds a depth other than the one at which he arrives.
//! Readers do not look; the writer recovers the header. Headers of nodes in use need no write-back (`header`, I4).

use super::InPlace;
use crate::adaptive::build::draft_node;
use crate::adaptive::node::NodeRef;
use crate::adaptive::walk::{Place, right_header, skip};
use crate::adaptive::write::publish;
use crate::adaptive::{Prefix, Tree};
use art::{Child, Children, Kind, draft_leaf};
use heap::Error;
use index::OnHeap;
use pmem::{Fault, Media, Purpose, persist_scope};

/// Algorithm 1, `SplitCmp`: 3 write-backs, 2 fences.
pub(super) fn split<M: Media>(
    tree: &Tree<InPlace, M>,
    place: &Place<'_>,
    node: NodeRef<'_, InPlace>,
    (parts, byte): (usize, u8),
    key: &[u8],
    value: &[u8],
) -> Result<(), Error> {
    let heap = tree.heap();
    let media = heap.media();
    let found = node.header(media);
    let shorter = right_header(tree, (place.link, place.depth), parts + 1, found)?; // lines 5, 6
    persist_scope(media, Purpose::Node, |batch| {
        let leaf = draft_leaf(heap, key, value, &batch)?.flush(&batch).erased(); // line 2
        let mut children = Children::default();
        children.add_reachable(Some(byte), place.link, skip(parts + 1, found.level())); // line 4
        children.add(key.get(parts).copied(), Child::New(leaf, Kind::Leaf, 0));
        let header = Prefix::of(key, place.depth, parts); // line 3
        let (above, kind) = draft_node::<InPlace, M>(heap, &batch, header, children)?;
        let fenced = batch.fence(); // lines 8 to 12
        store(tree, node, shorter); // line 7
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

/// Algorithm 2, `RecoverHeader`.
pub(super) fn recover<M: Media>(
    tree: &Tree<InPlace, M>,
    place: &Place<'_>,
    node: NodeRef<'_, InPlace>,
    found: Prefix,
) -> Result<Prefix, Fault> {
    let header = right_header(tree, (place.link, place.depth), place.depth, found)?; // lines 3 to 8
    store(tree, node, header); // line 9
    Ok(header)
}

fn store<M: Media>(tree: &Tree<InPlace, M>, node: NodeRef<'_, InPlace>, header: Prefix) {
    let word = &node.common().header;
    word.store_unpersisted(header.to_word(), tree.heap().media());
}
