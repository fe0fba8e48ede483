//! Path compression in place, as in WORT (WORT §3.4, Algorithms 1 and 2).
//!
//! A split shortens the node's prefix before the pointer to the node above is swung, and a merge leaves it too short.
//! A thread that arrives in between, or after a crash there, or after a merge, finds a depth other than its own.
//! Readers ignore it; the writer recovers the header. Headers of nodes in use need no write-back (`header`, I4).

use super::{InPlace, n4, n16};
use crate::adaptive::build::draft_node;
use crate::adaptive::locate::Writer;
use crate::adaptive::locate::{Place, skip};
use crate::adaptive::node::Node;
use crate::adaptive::{Adaptive, Prefix, Scheme};
use crate::recover::right_header;
use art::{Child, Children, Kind, draft_leaf};
use heap::Error;
use pmem::{Fault, Link, Media, Purpose, persist_scope};

// SAFETY: it retires replaced objects under the writer's guard, after it has unlinked them.
unsafe impl Scheme for InPlace {
    const KIND: u32 = 4;
    type N4 = n4::N4;
    type N16 = n16::N16;

    /// Algorithm 2, `RecoverHeader`.
    fn recover_header<M: Media>(
        writer: &Writer<'_, Self, M>,
        place: &Place<'_>,
        node: Node<'_, Self>,
        found: Prefix,
    ) -> Result<Prefix, Fault> {
        let header =
            right_header::<Adaptive<Self>, M>(writer.heap, (place.link, place.depth), place.depth, found)?; // lines 3 to 8
        store(writer, node, header); // line 9
        Ok(header)
    }

    /// Algorithm 1, `SplitCmp`: 3 write-backs, 2 fences.
    fn split_prefix<M: Media>(
        writer: &Writer<'_, Self, M>,
        place: &Place<'_>,
        node: Node<'_, Self>,
        (parts, byte): (usize, u8),
        value: &[u8],
    ) -> Result<(), Error> {
        let (heap, key) = (writer.heap, writer.key);
        let found = node.header(heap.media());
        let shorter =
            right_header::<Adaptive<Self>, M>(writer.heap, (place.link, place.depth), parts + 1, found)?; // lines 5, 6
        persist_scope(heap.media(), Purpose::Node, |batch| {
            let leaf = draft_leaf(heap, key, value, &batch)?.flush(&batch).erased(); // line 2
            let mut children = Children::default();
            children.add_reachable(Some(byte), place.link, skip(parts + 1, found.level())); // line 4
            children.add(key.get(parts).copied(), Child::New(leaf, Kind::Leaf, 0));
            let header = Prefix::of(key, place.depth, parts); // line 3
            let (above, kind) = draft_node::<Self, M>(heap, &batch, header, children)?;
            let fenced = batch.fence(); // lines 9, 10 and 12
            store(writer, node, shorter); // line 7, later than in the paper
            let skip = skip(place.depth, parts);
            writer.publish(place, above.persisted(&fenced), kind, skip); // lines 14, 16 and 17
            Ok(())
        })
    }

    /// Moves the child itself: its depth then shows that its prefix is too short. Costs 1 write-back and 1 fence.
    fn merge_prefix<M: Media>(
        writer: &Writer<'_, Self, M>,
        place: &Place<'_>,
        child: Link,
        depth: usize,
    ) -> Result<(), Error> {
        writer.publish_below(place, child, depth)
    }
}

fn store<M: Media>(writer: &Writer<'_, InPlace, M>, node: Node<'_, InPlace>, header: Prefix) {
    let word = &node.common().header;
    word.store_unpersisted(header.to_word(), writer.heap.media());
}
