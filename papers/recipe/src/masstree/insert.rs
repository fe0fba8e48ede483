//! Entries: written into a free place, and then added to the permutation (Condition #1).

use super::link::leaf_tag;
use super::locate::{Layer, LockedNode, Writer};
use super::node::{LINK, NodeRef};
use super::slice::Slice;
use art::{damaged, draft_leaf};
use heap::Error;
use pmem::{Link, LinkAndPersist, Media, Purpose, persist_scope};

/// The value, if an entry holds it in place.
pub(super) fn in_place(slice: Slice, value: &[u8]) -> Option<u64> {
    if slice.continues() {
        return None;
    }
    value.try_into().ok().map(u64::from_le_bytes)
}

impl<'a, M: Media> Writer<'a, M> {
    /// Adds an entry for the key, in place of the existing one if there is one (`old`). Without a split this costs 2
    /// write-backs, plus those of the leaf if there is one, plus one if the entry was used for another kind; and 2
    /// fences.
    pub(super) fn put(
        &self,
        mut layer: Layer,
        border: LockedNode<'a, M>,
        old: Option<usize>,
        value: &[u8],
    ) -> Result<(), Error> {
        let media = self.media();
        let slice = self.slice(&layer);
        persist_scope(media, Purpose::Node, |batch| {
            // First, so that nothing has changed if the pool is full.
            let new = match in_place(slice, value) {
                Some(word) => Ok(word),
                None => Err(draft_leaf(self.heap, self.key, value, &batch)?.flush(&batch)),
            };
            let LockedNode { node, locked: _held } = self.with_room(&mut layer, border, slice.bytes)?;
            let order = node.order(media);
            let (place, _) = node.search(media, order, slice);
            let free = order
                .free()
                .ok_or_else(|| damaged("order of a node", node.link))?;
            let order = match old {
                Some(_) => order.without(place),
                None => order,
            };
            let order = order.with(place, free).word();
            // (i) The entry, in a place that no reader uses yet.
            node.overwrites(media);
            let entry = &node.node.entries[free];
            entry.slice.store(slice.bytes, &batch);
            let is = if new.is_ok() { slice.len } else { LINK };
            node.store_kind(free, is, &batch);
            // (ii) Commit: the permutation.
            let _durable = match new {
                Ok(word) => {
                    entry.word.store(word, &batch);
                    batch.fence();
                    node.node
                        .order
                        .publish::<LinkAndPersist, M>(media, order)
                        .commit()
                }
                Err(leaf) => {
                    let slot = entry.word.slot();
                    let placed = slot.place::<LinkAndPersist, M, _>(leaf, leaf_tag(slice.len), &batch);
                    let fenced = batch.fence();
                    placed.publish(&fenced, &node.node.order, order).commit()
                }
            };
            Ok(())
        })
    }

    /// Adds a child to an inner node that has room. The caller holds the lock. Costs 2 write-backs and 2 fences.
    pub(super) fn put_child(&self, node: NodeRef<'a>, low: u64, child: Link) -> Result<(), Error> {
        let media = self.media();
        let order = node.order(media);
        let place = node.before(media, order, low);
        let free = order
            .free()
            .ok_or_else(|| damaged("order of a node", node.link))?;
        persist_scope(media, Purpose::Node, |batch| {
            node.overwrites(media);
            let entry = &node.node.entries[free];
            entry.slice.store(low, &batch);
            entry.word.store_link(child, &batch);
            batch.fence();
        });
        let order = order.with(place, free).word();
        media.site("masstree: separator");
        let _durable = node
            .node
            .order
            .publish::<LinkAndPersist, M>(media, order)
            .commit();
        Ok(())
    }
}
