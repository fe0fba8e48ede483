//! A node that takes no further child in place is replaced by a copy with it: by the next larger kind if it was full, or
//! by one of its own kind, if that is the scheme (ART+CoW's N4 and N16).

use super::build::{children_of, draft_node};
use super::walk::Passed;
use super::write::{publish, retire_node};
use super::{Scheme, Tree};
use art::{Child, Kind, Tagged, draft_leaf};
use heap::{Error, Guard};
use index::OnHeap;
use pmem::{Media, Purpose, persist_scope};

/// Replaces the node by a copy with a new leaf in it. 2 fences; a write-back for the leaf, for each line of the copy,
/// and for the slot.
pub(super) fn add_to_copy<S: Scheme, M: Media>(
    tree: &Tree<S, M>,
    passed: &Passed<'_, S>,
    byte: u8,
    key: &[u8],
    value: &[u8],
    guard: &Guard,
) -> Result<(), Error> {
    let heap = tree.heap();
    let Passed { node, place, .. } = passed;
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let leaf = draft_leaf(heap, key, value, &batch)?.flush(&batch).erased();
        let mut children = children_of(*node, heap.media(), None);
        children.add(Some(byte), Child::New(leaf, Kind::Leaf, 0));
        let header = node.header(heap.media());
        let (copy, kind) = draft_node::<S, M>(heap, &batch, header, children)?;
        let fenced = batch.fence();
        publish(tree, place, copy.persisted(&fenced), kind, place.link.aux());
        Ok::<_, Error>(())
    })?;
    retire_node(tree, guard, place.link, *node);
    Ok(())
}
