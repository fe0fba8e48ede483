//! Path compression by copies (WORT §3.6): a node whose prefix changes is replaced by a copy with the other prefix. No
//! depth tells of a change cut short, because there is none.

use super::ByCopy;
use crate::adaptive::build::{children_of, draft_node};
use crate::adaptive::node::NodeRef;
use crate::adaptive::walk::{Place, right_header, skip};
use crate::adaptive::write::{publish, publish_below, retire_node};
use crate::adaptive::{Prefix, Tree};
use art::{Child, Children, Kind, Node, draft_leaf, no_memory};
use heap::{Error, Guard};
use index::OnHeap;
use pmem::{Link, Media, Purpose, persist_scope};

/// A copy of `node` with a shorter prefix, and an N4 above it and the new leaf. 2 fences; a write-back for the leaf, the
/// N4, each line of the copy, and the slot.
pub(super) fn split<M: Media>(
    tree: &Tree<ByCopy, M>,
    place: &Place<'_>,
    node: NodeRef<'_, ByCopy>,
    (parts, byte): (usize, u8),
    key: &[u8],
    value: &[u8],
    guard: &Guard,
) -> Result<(), Error> {
    let heap = tree.heap();
    let media = heap.media();
    let shorter = right_header(tree, (place.link, place.depth), parts + 1, node.header(media))?;
    persist_scope(media, Purpose::Node, |batch| {
        let leaf = draft_leaf(heap, key, value, &batch)?.flush(&batch).erased();
        let (copy, copy_kind) =
            draft_node::<ByCopy, M>(heap, &batch, shorter, children_of(node, media, None))?;
        let mut children = Children::default();
        children.add(
            Some(byte),
            Child::New(copy, copy_kind, skip(parts + 1, shorter.level())),
        );
        children.add(key.get(parts).copied(), Child::New(leaf, Kind::Leaf, 0));
        let header = Prefix::of(key, place.depth, parts);
        let (above, kind) = draft_node::<ByCopy, M>(heap, &batch, header, children)?;
        let fenced = batch.fence();
        publish(
            tree,
            place,
            above.persisted(&fenced),
            kind,
            skip(place.depth, parts),
        );
        Ok::<_, Error>(())
    })?;
    retire_node(tree, guard, place.link, node);
    Ok(())
}

/// A copy of the child with a longer prefix takes the place of the node above; in a full pool the child itself, with the
/// prefix it has, which readers do not look at and writers compute anew. 2 fences; a write-back for each line of the
/// copy, and for the slot.
pub(super) fn merge<M: Media>(
    tree: &Tree<ByCopy, M>,
    place: &Place<'_>,
    child: Link,
    depth: usize,
    guard: &Guard,
) -> Result<(), Error> {
    let heap = tree.heap();
    let media = heap.media();
    let node = NodeRef::<ByCopy>::at(heap, child)?;
    let level = node.level(heap, child, depth)?;
    let aux = skip(place.depth, level);
    let longer = right_header(tree, (child, depth), place.depth, node.header(media))?;
    let done = persist_scope(media, Purpose::Node, |batch| {
        let (copy, kind) = draft_node::<ByCopy, M>(heap, &batch, longer, children_of(node, media, None))?;
        let fenced = batch.fence();
        publish(tree, place, copy.persisted(&fenced), kind, aux);
        Ok(())
    });
    if no_memory(done)? {
        return publish_below(tree, place, child, depth);
    }
    retire_node(tree, guard, child, node);
    Ok(())
}
