//! Path compression by copies (WORT §3.6): a node whose prefix changes is replaced by a copy with the other prefix. A
//! crash cannot leave such a change half done, so a node's depth differs from the one at which it is reached only after
//! a merge in a full pool.

use super::{ByCopy, small};
use crate::adaptive::build::{children_of, draft_node};
use crate::adaptive::locate::Writer;
use crate::adaptive::locate::{Place, skip};
use crate::adaptive::node::Node;
use crate::adaptive::{Adaptive, Prefix, Scheme};
use crate::recover::right_header;
use art::{Child, Children, Kind, Node as _, draft_leaf, no_memory};
use heap::Error;
use pmem::{Fault, Link, Media, Purpose, persist_scope};

// SAFETY: it retires replaced objects under the writer's guard, after it has unlinked them.
unsafe impl Scheme for ByCopy {
    const KIND: u32 = 5;
    type N4 = small::N4;
    type N16 = small::N16;

    /// Stores nothing: only a merge in a full pool leaves such a header, and the next copy of the node has the right
    /// one.
    fn recover_header<M: Media>(
        writer: &Writer<'_, Self, M>,
        place: &Place<'_>,
        _node: Node<'_, Self>,
        found: Prefix,
    ) -> Result<Prefix, Fault> {
        right_header::<Adaptive<Self>, M>(writer.heap, (place.link, place.depth), place.depth, found)
    }

    /// Makes a copy of `node` with a shorter prefix, and an N4 above it and the new leaf. Costs 2 fences; a
    /// write-back for the leaf, the N4, each line of the copy, and the slot.
    fn split_prefix<M: Media>(
        writer: &Writer<'_, Self, M>,
        place: &Place<'_>,
        node: Node<'_, Self>,
        (parts, byte): (usize, u8),
        value: &[u8],
    ) -> Result<(), Error> {
        let (heap, key) = (writer.heap, writer.key);
        let media = heap.media();
        let found = node.header(media);
        let shorter =
            right_header::<Adaptive<Self>, M>(writer.heap, (place.link, place.depth), parts + 1, found)?;
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(heap, key, value, &batch)?.flush(&batch).erased();
            let (copy, copy_kind) =
                draft_node::<Self, M>(heap, &batch, shorter, children_of(node, media, None))?;
            let mut children = Children::default();
            let below = skip(parts + 1, shorter.level());
            children.add(Some(byte), Child::New(copy, copy_kind, below));
            children.add(key.get(parts).copied(), Child::New(leaf, Kind::Leaf, 0));
            let header = Prefix::of(key, place.depth, parts);
            let (above, kind) = draft_node::<Self, M>(heap, &batch, header, children)?;
            let fenced = batch.fence();
            writer.publish(place, above.persisted(&fenced), kind, skip(place.depth, parts));
            Ok::<_, Error>(())
        })?;
        writer.retire_node(place.link, node);
        Ok(())
    }

    /// Puts a copy of the child with a longer prefix in the place of its parent; in a full pool the child itself,
    /// with its present prefix, which readers do not use and writers recompute. Costs 2 fences; a write-back for each
    /// line of the copy, and for the slot.
    fn merge_prefix<M: Media>(
        writer: &Writer<'_, Self, M>,
        place: &Place<'_>,
        child: Link,
        depth: usize,
    ) -> Result<(), Error> {
        let heap = writer.heap;
        let media = heap.media();
        let node = Node::<Self>::at(heap, child)?;
        let level = node.level(heap, child, depth)?;
        let aux = skip(place.depth, level);
        let longer =
            right_header::<Adaptive<Self>, M>(writer.heap, (child, depth), place.depth, node.header(media))?;
        let done = persist_scope(media, Purpose::Node, |batch| {
            let (copy, kind) = draft_node::<Self, M>(heap, &batch, longer, children_of(node, media, None))?;
            let fenced = batch.fence();
            writer.publish(place, copy.persisted(&fenced), kind, aux);
            Ok(())
        });
        if no_memory(done)? {
            return writer.publish_below(place, child, depth);
        }
        writer.retire_node(child, node);
        Ok(())
    }
}
