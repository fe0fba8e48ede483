//! Structure modifications of inserts: larger nodes and leaf arrays, and splits.
//!
//! Each builds its new objects, fences once, and swings one slot (fence 2). A replaced object is retired under its
//! own lock, its slots untouched: readers and the post-crash collection may still walk it. A node whose children live
//! on below its copy is obsolete before the copy can be reached: a writer that reached a child through the node sees
//! from the node's flag whether the child may have moved down since.

use crate::Variant;
use crate::array::{ArrayRef, MAX_LEAVES, ROOM, draft_enlarged};
use crate::fingerprint::fingerprint_in;
use crate::locate::{Parent, Place};
use crate::node::{children_of, draft_node};
use crate::subtree::{Built, Member, Subtrees, shared_by};
use crate::writer::{Writer, skip_between};
use art::{
    Child, Children, Kind, LeafRef, Tagged, child_tag, damaged, draft_checked_leaf, draft_leaf, prefetch_leaf,
};
use heap::Error;
use pmem::{Erased, Link, Locked, Media, PSlot, PersistBatch, Persisted, Purpose, persist_scope};

impl<'g, M: Media, V: Variant> Writer<'g, M, V> {
    /// Swings the parent's slot to a new object: the commit point.
    pub(crate) fn replace(&self, parent: &Parent<'_, M>, object: Persisted<'_, Erased>, kind: Kind, aux: u8) {
        let tag = child_tag(kind, parent.link.byte(), aux);
        let _durable = parent
            .slot
            .publish::<V::Publish, M, _>(self.heap.media(), object, tag)
            .commit();
    }

    /// Replaces a full node by a larger copy that contains the new leaf.
    pub(crate) fn grow(
        &self,
        place: &Place<'_>,
        mut locked: Locked<'_, M>,
        value: &[u8],
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let parent = self.lock_parent(place.at)?;
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(self.heap, self.key, value, &batch)?
                .flush(&batch)
                .erased();
            let mut children = children_of(&place.node, media);
            children.add(
                self.key.get(place.level).copied(),
                Child::New(leaf, Kind::Leaf, 0),
            );
            let (node, kind, _) = draft_node(self.heap, &batch, &self.key[..place.level], &mut children)?;
            // Before the fence, which alone orders this store with a publication that bypasses the cache
            // (`tests/streaming.rs`). Otherwise another thread could reach the copy while it still sees the node in
            // use.
            locked.condemn();
            let fenced = batch.fence();
            self.replace(&parent, node.persisted(&fenced), kind, parent.link.aux());
            Ok::<_, Error>(())
        })?;
        drop(parent);
        locked.retire();
        self.retire(place.at, place.node.size());
        Ok(())
    }

    /// Internal split (§3.3.2, minimally ordered): the key parts from the string of the inner node at `link` above
    /// its level. A new N4 above that node holds both; the node itself is not written, since its prefix is stored
    /// from its level backwards. Costs 3 write-backs and 2 fences.
    pub(crate) fn split_prefix(
        &self,
        slot: &PSlot,
        link: Link,
        slot_level: usize,
        (level, byte): (usize, u8),
        value: &[u8],
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let below = crate::node::Node::at(self.heap, link)?.header().level(media);
        let lower = link.with_tag(child_tag(link.kind(), byte, skip_between(level, below, link)?));
        let skip = skip_between(slot_level, level, link)?;
        if V::MO {
            return persist_scope(media, Purpose::Node, |batch| {
                let leaf = draft_leaf(self.heap, self.key, value, &batch)?.flush(&batch);
                let leaf = Child::New(leaf.erased(), Kind::Leaf, 0);
                self.hang_over(batch, (slot, link), lower, (level, skip), leaf)
            });
        }
        let leaf = persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(self.heap, self.key, value, &batch)?.flush(&batch);
            let fenced = batch.fence();
            Ok::<_, Error>(leaf.erased().persisted(&fenced))
        })?;
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = Child::Durable(leaf, Kind::Leaf, 0);
            self.hang_over(batch, (slot, link), lower, (level, skip), leaf)
        })
    }

    /// Completes the batch: `slot`, which holds `link`, gets a new N4 at `level`, over `lower`, whose byte there is
    /// in its tag, and the new leaf.
    fn hang_over<'e>(
        &self,
        batch: PersistBatch<'e, 'g, M>,
        (slot, link): (&PSlot, Link),
        lower: Link,
        (level, skip): (usize, u8),
        leaf: Child<'e, 'g>,
    ) -> Result<(), Error> {
        let mut children = Children::default();
        children.add(Some(lower.byte()), Child::Reachable(lower));
        children.add(self.key.get(level).copied(), leaf);
        let (node, kind, _) = draft_node(self.heap, &batch, &self.key[..level], &mut children)?;
        let fenced = batch.fence();
        let tag = child_tag(kind, link.byte(), skip);
        let _durable = slot
            .publish::<V::Publish, M, _>(self.heap.media(), node.persisted(&fenced), tag)
            .commit();
        Ok(())
    }

    /// Makes room in a full leaf array: the next size class, or a node over several arrays.
    pub(crate) fn enlarge_array(
        &self,
        place: &Place<'_>,
        array: &ArrayRef<'_>,
        locked: Locked<'_, M>,
        (check, value): (u64, &[u8]),
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let first = array.leaves(media).next();
        if let Some(first) = first {
            prefetch_leaf(self.heap, first, self.key);
        }
        let parent = self.lock_parent(place.link)?;
        if array.slots().len() == MAX_LEAVES {
            return self.split_array(parent, place.link, array, locked, value);
        }
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_checked_leaf(self.heap, (self.key, check), value, &batch)?.flush(&batch);
            let byte = self.key.get(place.level).copied();
            if let Some(first) = first
                && !self.belongs(LeafRef::at(self.heap, first)?.key(), place.level, byte)
            {
                return Err(damaged("leaf array's keys", place.link).into());
            }
            let (array, class) =
                draft_enlarged::<M, V>(self.heap, &batch, array, leaf, fingerprint_in(check))?;
            let fenced = batch.fence();
            self.replace(&parent, array.persisted(&fenced), Kind::Array, class);
            Ok::<_, Error>(())
        })?;
        drop(parent);
        locked.retire();
        self.retire(place.link, array.size());
        Ok(())
    }

    /// Splits a full leaf array (§3.2, Fig. 8(e) and 9) at the first byte where its keys, the new one included,
    /// diverge; if nearly all continue together there, once more below (`ROOM`). Costs 2 fences, and one write-back
    /// for each line of the new objects and for the slot's.
    fn split_array(
        &self,
        parent: Parent<'_, M>,
        link: Link,
        array: &ArrayRef<'_>,
        locked: Locked<'_, M>,
        value: &[u8],
    ) -> Result<(), Error> {
        let media = self.heap.media();
        array.prefetch_leaves(self.heap);
        // Below a small node, which such a split may have made, nearly all keys may continue together again and again:
        // their array gets room for further ones.
        let max = match parent.at.kind() {
            Kind::N4 | Kind::N16 => ROOM,
            _ => MAX_LEAVES - 1,
        };
        let subtrees = Subtrees::<M, V>::new(self.heap, max);
        let mut members = Vec::with_capacity(MAX_LEAVES + 1);
        for leaf in array.leaves(media) {
            members.push(subtrees.entry_member(leaf)?);
        }
        let among = shared_by(&members, 0);
        let new = Member::New(self.key, value);
        let level = members
            .first()
            .map_or(0, |first| first.shared(&new, 0))
            .min(among);
        members.push(new);
        // All old keys continue together: their array stays as it is.
        let stays = level < among;
        let depth = parent.level + 1;
        if level < depth {
            return Err(damaged("leaf's key", link).into());
        }
        let mut built = Built::default();
        let done = persist_scope(media, Purpose::Node, |batch| {
            let top = if stays {
                subtrees.draft_beside(&batch, depth, &self.key[..level], link, &members, &mut built)?
            } else {
                subtrees.draft_subtree(&batch, depth, Some(level), &members, &mut built)?
            };
            self.publish_top(&parent, top, batch);
            Ok(())
        });
        drop(parent);
        built.settle(self.heap, self.guard, done.is_ok());
        if done.is_ok() && !stays {
            locked.retire();
            self.retire(link, array.size());
        }
        done
    }
}
