//! Further layers: for two keys that share a slice and continue after it.
//!
//! There is a new border, a layer of its own, for each further slice that they share, and one in which they part. All
//! of them are durable before the one store that commits: the entry's link, which led to the old key's leaf, then leads
//! to the uppermost border. The leaf stays as it is, since it contains the whole key.

use super::insert::in_place;
use super::link::{leaf_tag, node_tag};
use super::locate::{Layer, Writer};
use super::node::{Held, LINK, Node};
use super::slice::Slice;
use art::{damaged, draft_leaf};
use heap::Error;
use pmem::{Link, LinkAndPersist, Media, PSlot, Purpose, persist_scope};

impl<M: Media> Writer<'_, M> {
    /// Puts the key, and that of the leaf at `link`, into a layer below `slot`, whose lock the caller holds. If they
    /// part in the next slice, this costs 3 write-backs (and 1 for each line of a leaf) and 2 fences; one write-back
    /// more for each slice that they share.
    pub(super) fn add_layer(
        &self,
        layer: &Layer,
        slot: &PSlot,
        (link, old): (Link, &[u8]),
        value: &[u8],
    ) -> Result<(), Error> {
        let media = self.media();
        let first = layer.depth() + 1;
        if old.get(..8 * first) != self.key.get(..8 * first) {
            return Err(damaged("key of a leaf", link).into());
        }
        let slices = |depth| (Slice::of(old, depth), Slice::of(self.key, depth));
        let mut last = first;
        while slices(last).0 == slices(last).1 {
            last += 1;
        }
        let (old_slice, slice) = slices(last);
        let node = || Node::new(self.heap.generation(), 0, LINK);
        persist_scope(media, Purpose::Node, |batch| {
            let new = match in_place(slice, value) {
                Some(word) => Ok(word),
                None => Err(draft_leaf(self.heap, self.key, value, &batch)?.flush(&batch)),
            };
            let mut parting = self.heap.draft(node(), 0, &batch)?;
            let mut nodes = Vec::new();
            for depth in first..last {
                nodes.push((depth, self.heap.draft(node(), 0, &batch)?));
            }
            // Nothing can fail any more.
            let old_held = Held::Link(link.with_tag(leaf_tag(old_slice.len)));
            let new_held = new
                .as_ref()
                .map_or(Held::Link(Link::NULL), |&word| Held::Value(word));
            let mut pairs = [(old_slice, old_held), (slice, new_held)];
            pairs.sort_by_key(|(slice, _)| *slice);
            for (slice, held) in pairs {
                parting.push(slice, held);
            }
            if let Err(leaf) = new {
                let at = usize::from(slice > old_slice);
                let tag = leaf_tag(slice.len);
                parting.adopt(|node| node.entries[at].word.slot_mut(), leaf, tag);
            }
            let mut top = parting;
            while let Some((depth, mut node)) = nodes.pop() {
                node.push(Slice::of(self.key, depth), Held::Link(Link::NULL));
                let used = top.used();
                let below = top.flush_parts([used], &batch);
                node.adopt(|node| node.entries[0].word.slot_mut(), below, node_tag(0));
                top = node;
            }
            let used = top.used();
            let top = top.flush_parts([used], &batch).persisted(&batch.fence());
            media.comes_to("new layer");
            let _durable = slot
                .publish::<LinkAndPersist, M, _>(media, top, node_tag(0))
                .commit();
            Ok(())
        })
    }
}
