//! Structure modifications of inserts: larger nodes and leaf arrays, and splits.
//!
//! Each builds its new objects, fences once, and swings one slot (fence 2). What is replaced is retired under its
//! own lock, its slots untouched: readers and the post-crash collection may still walk it. A node whose children live
//! on below its copy is obsolete before the copy can be reached: a writer that came to a child by way of the node sees
//! from the node's flag whether the child may have moved down since.

use crate::array::{ArrayRef, Entry, MOST, draft_array};
use crate::locate::{Parent, Place};
use crate::node::{Child, Children, draft_node, node_size};
use crate::write::skip_between;
use crate::{Roart, Variant};
use art::{Kind, LeafRef, Tagged, child_tag, common_prefix, draft_leaf, fingerprint, leaf_tag};
use heap::{Error, Guard};
use pmem::{Batch, Erased, Flushed, Link, Locked, Media, PSlot, Persisted, Purpose, persist_scope};

impl<M: Media, V: Variant> Roart<M, V> {
    /// Swings the parent's slot to a new object: the commit point.
    pub(crate) fn replace(&self, parent: &Parent<'_, M>, object: Persisted<'_, Erased>, kind: Kind, aux: u8) {
        let tag = child_tag(kind, parent.link.byte(), aux);
        let _durable = parent
            .slot
            .publish::<V::Publish, M, _>(self.heap.media(), object, tag)
            .commit();
    }

    /// Replaces a full node by a larger copy with the new leaf in it.
    pub(crate) fn grow(
        &self,
        place: &Place<'_>,
        mut locked: Locked<'_, M>,
        key: &[u8],
        value: &[u8],
        guard: &Guard,
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let parent = self.lock_parent(key, place.at)?;
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(&self.heap, key, value, &batch)?.flush(&batch).erased();
            let mut children = Children::of(&place.node, media);
            children.add(key.get(place.level).copied(), Child::New(leaf, Kind::Leaf, 0));
            let (node, kind) = draft_node(&self.heap, &batch, &key[..place.level], children)?;
            let fenced = batch.fence();
            locked.condemn();
            self.replace(&parent, node.persisted(&fenced), kind, parent.link.aux());
            Ok::<_, Error>(())
        })?;
        drop(parent);
        locked.retire();
        self.retire(guard, place.at, node_size(place.node.kind()));
        Ok(())
    }

    /// Internal split (§3.3.2, minimally ordered): the key parts from the string of the inner node at `link` above
    /// its level. A new N4 above that node holds both; the node itself is not written, since its prefix is kept
    /// from its level backwards. 3 write-backs, 2 fences.
    pub(crate) fn split_prefix(
        &self,
        slot: &PSlot,
        link: Link,
        slot_level: usize,
        (level, byte): (usize, u8),
        key: &[u8],
        value: &[u8],
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let below = crate::node::Node::at(&self.heap, link)?.header().level(media);
        let lower = link.with_tag(child_tag(link.kind(), byte, skip_between(level, below, link)?));
        let skip = skip_between(slot_level, level, link)?;
        let key_byte = key.get(level).copied();
        let publish = |node: Persisted<'_, Erased>, kind| {
            let tag = child_tag(kind, link.byte(), skip);
            let _durable = slot.publish::<V::Publish, M, _>(media, node, tag).commit();
        };
        if V::MO {
            return persist_scope(media, Purpose::Node, |batch| {
                let leaf = draft_leaf(&self.heap, key, value, &batch)?.flush(&batch).erased();
                let mut children = Children::default();
                children.add(Some(byte), Child::Reachable(lower));
                children.add(key_byte, Child::New(leaf, Kind::Leaf, 0));
                let (node, kind) = draft_node(&self.heap, &batch, &key[..level], children)?;
                let fenced = batch.fence();
                publish(node.persisted(&fenced), kind);
                Ok(())
            });
        }
        let leaf = persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(&self.heap, key, value, &batch)?.flush(&batch).erased();
            let fenced = batch.fence();
            Ok::<_, Error>(leaf.persisted(&fenced))
        })?;
        persist_scope(media, Purpose::Node, |batch| {
            let mut children = Children::default();
            children.add(Some(byte), Child::Reachable(lower));
            children.add(key_byte, Child::Durable(leaf, Kind::Leaf, 0));
            let (node, kind) = draft_node(&self.heap, &batch, &key[..level], children)?;
            let fenced = batch.fence();
            publish(node.persisted(&fenced), kind);
            Ok(())
        })
    }

    /// Makes room in a full leaf array: the next size class, or a node over several arrays.
    pub(crate) fn enlarge_array(
        &self,
        place: &Place<'_>,
        array: &ArrayRef<'_>,
        locked: Locked<'_, M>,
        key: &[u8],
        value: &[u8],
        guard: &Guard,
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let parent = self.lock_parent(key, place.link)?;
        if array.slots().len() == MOST {
            return self.split_array(parent, place.link, array, locked, key, value, guard);
        }
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(&self.heap, key, value, &batch)?.flush(&batch);
            let mut entries = Vec::with_capacity(MOST);
            entries.extend(array.leaves(media).map(Entry::Reachable));
            entries.push(Entry::New(leaf, fingerprint(key)));
            let (array, class) = draft_array(&self.heap, &batch, entries)?;
            let fenced = batch.fence();
            self.replace(&parent, array.persisted(&fenced), Kind::Array, class);
            Ok::<_, Error>(())
        })?;
        drop(parent);
        locked.retire();
        self.retire(guard, place.link, array.size());
        Ok(())
    }

    /// Splits a full leaf array (§3.2, Fig. 8(e) and 9) at the first byte where its keys, the new one included,
    /// diverge. 2 fences, and as many write-backs as the new objects have lines, and the slot's.
    #[expect(clippy::too_many_arguments, reason = "the parts of one place, all locked")]
    fn split_array(
        &self,
        parent: Parent<'_, M>,
        link: Link,
        array: &ArrayRef<'_>,
        locked: Locked<'_, M>,
        key: &[u8],
        value: &[u8],
        guard: &Guard,
    ) -> Result<(), Error> {
        let media = self.heap.media();
        array.prefetch_leaves(&self.heap);
        let mut leaves = Vec::with_capacity(MOST);
        for link in array.leaves(media) {
            leaves.push((LeafRef::at(&self.heap, link)?.key(), link));
        }
        let Some(((first, _), others)) = leaves.split_first() else {
            return Err(art::damaged("full leaf array", link).into());
        };
        let among = others
            .iter()
            .map(|(other, _)| common_prefix(first, other))
            .min()
            .unwrap_or(0);
        let level = common_prefix(first, key).min(among);
        let skip = skip_between(parent.level, level, link)?;
        let stays = level < among;
        // The new leaf, once it belongs to an array: who then fails gives back the array without it.
        let mut adopted = None;
        let done = persist_scope(media, Purpose::Node, |batch| {
            let mut leaf = draft_leaf(&self.heap, key, value, &batch)?;
            let drafted = (leaf.offset(), heap::footprint::<art::Leaf>(leaf.tail_mut().len()));
            let leaf = leaf.flush(&batch);
            let children = if stays {
                // All old keys go on together: their array stays as it is.
                let mut children = Children::default();
                children.add_reachable(first.get(level).copied(), link);
                children.add(key.get(level).copied(), Child::New(leaf.erased(), Kind::Leaf, 0));
                children
            } else {
                self.partition(&batch, level, &leaves, key, leaf, &mut || adopted = Some(drafted))?
            };
            let (node, kind) = draft_node(&self.heap, &batch, &key[..level], children)?;
            let fenced = batch.fence();
            self.replace(&parent, node.persisted(&fenced), kind, skip);
            Ok::<_, Error>(())
        });
        if let (Err(_), Some((leaf, Some(len)))) = (&done, adopted) {
            self.heap.retire(guard, leaf, len);
        }
        done?;
        drop(parent);
        if !stays {
            locked.retire();
            self.retire(guard, link, array.size());
        }
        Ok(())
    }

    /// Distributes leaves by their byte at `level`: one alone hangs directly, more go into an array. Says so when the
    /// new leaf has become part of an array.
    fn partition<'e, 'h>(
        &'h self,
        batch: &Batch<'e, '_, M>,
        level: usize,
        leaves: &[(&[u8], Link)],
        key: &[u8],
        leaf: Flushed<'e, 'h, art::Leaf>,
        adopted: &mut dyn FnMut(),
    ) -> Result<Children<'e, 'h>, Error> {
        let mut sorted: Vec<(Option<u8>, Entry<'e, 'h>)> = Vec::with_capacity(leaves.len() + 1);
        sorted.extend(
            leaves
                .iter()
                .map(|&(other, link)| (other.get(level).copied(), Entry::Reachable(link))),
        );
        sorted.push((key.get(level).copied(), Entry::New(leaf, fingerprint(key))));
        sorted.sort_unstable_by_key(|(byte, _)| *byte);
        let mut children = Children::default();
        children.list.reserve(sorted.len());
        let mut rest = sorted.into_iter().peekable();
        while let Some((byte, entry)) = rest.next() {
            let child = if rest.peek().is_some_and(|(other, _)| *other == byte) {
                let mut group = vec![entry];
                while let Some((_, entry)) = rest.next_if(|(other, _)| *other == byte) {
                    group.push(entry);
                }
                let has_new = group.iter().any(|entry| matches!(entry, Entry::New(..)));
                let (array, class) = draft_array(&self.heap, batch, group)?;
                if has_new {
                    adopted();
                }
                Child::New(array, Kind::Array, class)
            } else {
                match entry {
                    Entry::Reachable(link) => {
                        Child::Reachable(link.with_tag(child_tag(Kind::Leaf, byte.unwrap_or_default(), 0)))
                    }
                    Entry::New(leaf, _) => Child::New(leaf.erased(), Kind::Leaf, 0),
                }
            };
            children.add(byte, child);
        }
        Ok(children)
    }

    /// The entry of a leaf that hung directly from a node.
    pub(crate) fn as_entry(&self, link: Link) -> Result<Link, Error> {
        Ok(link.with_tag(leaf_tag(fingerprint(LeafRef::at(&self.heap, link)?.key()))))
    }
}
