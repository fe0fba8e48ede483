//! Writes: each is an edit of one key (`index::Edit`) under one lock.
//!
//! 1. Find the place (`locate`), without locks.
//! 2. Lock the object that holds the key's slot: the leaf array, or the node. If it is obsolete, or the slot leads
//!    elsewhere by now, start over; also if the key is not there and the walk went wrong at skipped bytes (`locate`).
//! 3. Let the edit decide.
//! 4. New objects are written, written back and fenced (fence 1); one store to one slot publishes them, and is made
//!    durable (fence 2: the commit point is the store). A structure modification also locks the parent of the
//!    replaced object, from the child upward, and retires the replaced object, whose own slots it leaves unchanged.
//!
//! Writes of several keys may hold several locks (`together`).
//!
//! With all techniques on and if nothing grows or is split, an insert costs 2 write-backs and 2 fences for a leaf of up
//! to a line, and 1 and 1 for a pair in an inline leaf array.

use crate::Variant;
use crate::array::{ArrayRef, Found, draft_pair};
use crate::fingerprint::{fingerprint_in, leaf_tag};
use crate::inline::{Fill, Image, draft_inline};
use crate::locate::Place;
use crate::node::draft_node;
use crate::subtree::pair_of;
use crate::writer::{Writer, none_removed, skip_between};
use art::{
    Child, Children, Kind, LeafRef, Missed, Tagged, Tries, checksum, child_tag, common_prefix, damaged,
    draft_leaf, publish_checked_leaf, publish_leaf, replace_value, same, same_object,
};
use heap::Error;
use index::{Action, Edit};
use pmem::{Erased, Fault, Link, Locked, Media, PSlot, Persisted, Purpose, persist_scope};

impl<'g, M: Media, V: Variant> Writer<'g, M, V> {
    /// Applies `edit` to the key.
    pub(crate) fn edit(&self, edit: &mut dyn Edit) -> Result<Action, Error> {
        let mut tries = Tries::default();
        loop {
            let missed = match self.locate()? {
                Some(place) => match self.edit_at(&place, edit)? {
                    Some(action) => return Ok(action),
                    None => self.missed_beside(place.node),
                },
                None => Missed::Lost,
            };
            if !tries.go_on(missed, self.heap.media()) {
                return Err(damaged("key without a place", self.index.root).into());
            }
        }
    }

    /// Applies `edit` to the key at its place; returns `None` if it is no longer there.
    #[inline]
    pub(crate) fn edit_at(&self, place: &Place<'g>, edit: &mut dyn Edit) -> Result<Option<Action>, Error> {
        match place.link.kind() {
            Kind::Array => self.edit_in_array(place, edit),
            Kind::Inline => self.edit_inline(place, edit),
            _ => self.edit_in_node(place, edit),
        }
    }

    /// Edits a key whose slot is empty, or holds a leaf, or an inner node from which the key parts.
    fn edit_in_node(&self, place: &Place<'_>, edit: &mut dyn Edit) -> Result<Option<Action>, Error> {
        let Ok(locked) = place.node.lock(self.heap)? else {
            return Ok(None);
        };
        let byte = self.key.get(place.level).copied();
        let (slot, link) = place.node.slot::<V, M>(self.heap, place.level, self.key)?;
        let tag = child_tag(Kind::Leaf, byte.unwrap_or_default(), 0);
        match (link.kind(), slot) {
            (Kind::Null, slot) if link.is_null() => {
                if !self.has_passed_rightly(place)? {
                    return Ok(None);
                }
                let action = edit.decide(None);
                if action == Action::Put {
                    match (slot, byte) {
                        (Some(slot), None) => {
                            publish_leaf::<V::Publish, M>(self.heap, slot, tag, self.key, edit.value())?
                        }
                        _ => self.insert_child(place, locked, edit.value())?,
                    }
                }
                Ok(Some(none_removed(action)))
            }
            (Kind::Leaf, Some(slot)) => {
                let leaf = LeafRef::at(self.heap, link)?;
                if !same(leaf.key(), self.key) {
                    if !self.has_passed_rightly(place)? {
                        return Ok(None);
                    }
                    if !self.belongs(leaf.key(), place.level, byte) {
                        return Err(damaged("leaf's key", link).into());
                    }
                    let action = edit.decide(None);
                    if action == Action::Put {
                        self.split_leaf(slot, link, place.level, leaf, edit.value())?;
                    }
                    return Ok(Some(none_removed(action)));
                }
                let action = edit.decide(Some(&leaf.value(self.heap)));
                match action {
                    Action::Keep => {}
                    Action::Put => replace_value::<V::Publish, M>(
                        self.heap,
                        (slot, link),
                        leaf,
                        edit.value(),
                        self.guard,
                    )?,
                    Action::Remove => {
                        self.remove_child(place, locked, slot, (link, leaf.extent()))?;
                    }
                }
                Ok(Some(action))
            }
            (kind, Some(slot)) if kind.is_inner() && same_object(link, place.link) => {
                let Some((at, byte)) = place.parting else {
                    return Ok(None);
                };
                if !self.has_passed_rightly(place)? {
                    return Ok(None);
                }
                let action = edit.decide(None);
                if action == Action::Put {
                    self.split_prefix(slot, link, place.level, (at, byte), edit.value())?;
                }
                Ok(Some(none_removed(action)))
            }
            (Kind::Null, _) => Err(damaged("link's kind", link).into()),
            // The slot changed since the walk passed.
            _ => Ok(None),
        }
    }

    /// Edits a key whose slot holds a leaf array.
    fn edit_in_array(&self, place: &Place<'g>, edit: &mut dyn Edit) -> Result<Option<Action>, Error> {
        let array = ArrayRef::at(self.heap, place.link)?;
        let path = self.compared(place.level + 1);
        let Ok(locked) = array.lock(self.heap, place.link, path)? else {
            return Ok(None);
        };
        let media = self.heap.media();
        let check = checksum(self.key);
        let Some(found) = self.find_in_array(place, &array, fingerprint_in(check))? else {
            return Ok(None);
        };
        let Some((slot, link, leaf)) = found else {
            let action = edit.decide(None);
            if action == Action::Put {
                match array.vacant(media) {
                    Some(slot) => publish_checked_leaf::<V::Publish, M>(
                        self.heap,
                        slot,
                        leaf_tag(fingerprint_in(check)),
                        (self.key, check),
                        edit.value(),
                    )?,
                    None => self.enlarge_array(place, &array, locked, (check, edit.value()))?,
                }
            }
            return Ok(Some(none_removed(action)));
        };
        let action = edit.decide(Some(&leaf.value(self.heap)));
        match action {
            Action::Keep => {}
            Action::Put => {
                replace_value::<V::Publish, M>(self.heap, (slot, link), leaf, edit.value(), self.guard)?
            }
            Action::Remove => self.remove_from_array(place, &array, locked, slot, link)?,
        }
        Ok(Some(action))
    }

    /// The key's entry in an array, whose lock the caller holds, and its leaf; the inner option is `None` if the key
    /// has none there. The outer one is `None` if the array has moved, or the walk went wrong at skipped bytes.
    pub(crate) fn find_in_array(
        &self,
        place: &Place<'g>,
        array: &ArrayRef<'g>,
        print: u16,
    ) -> Result<Option<Option<Found<'g>>>, Fault> {
        if !self.is_in_place(place) {
            return Ok(None);
        }
        let found = array.find_by(print, self.heap, self.key)?;
        Ok((found.is_some() || self.has_passed_rightly(place)?).then_some(found))
    }

    /// Frees an object's chunk once no reader can hold it.
    #[track_caller]
    pub(crate) fn retire(&self, link: Link, len: usize) {
        art::retire(self.heap, self.guard, link, len);
    }

    /// Whether an array, whose lock the caller has taken, is still in its place, unless a node was put above it: the
    /// slot shows that, while its node is in use.
    pub(crate) fn is_in_place(&self, place: &Place<'_>) -> bool {
        let (media, lock) = (self.heap.media(), &place.node.header().lock);
        // The slot is read first: a node in use afterwards was in use then.
        let is_there = place
            .slot
            .is_some_and(|slot| same_object(slot.load(media), place.link));
        is_there && !lock.is_obsolete(media, self.heap.generation())
    }

    /// Whether a key may be at a place to which the `level` bytes that it should share with the writer's key, and
    /// then this byte, lead (`None`: it should end there). If not, the link that has led there is damaged: its object
    /// belongs to another place, and must not be retired.
    pub(crate) fn belongs(&self, key: &[u8], level: usize, byte: Option<u8>) -> bool {
        let path = self.key.get(..level);
        path.is_some_and(|path| key.starts_with(path)) && key.get(level).copied() == byte
    }

    /// Publishes a new leaf in a new entry of the node, or in a larger copy of the node.
    fn insert_child(&self, place: &Place<'_>, locked: Locked<'_, M>, value: &[u8]) -> Result<(), Error> {
        let media = self.heap.media();
        let byte = self.key[place.level];
        let Some(vacant) = place.node.vacant(media, byte) else {
            return self.grow(place, locked, value);
        };
        persist_scope(media, Purpose::Node, |batch| {
            let leaf = draft_leaf(self.heap, self.key, value, &batch)?.flush(&batch);
            vacant.name::<V, M>(media);
            let fenced = batch.fence();
            vacant.publish::<V, M, _>(media, leaf.persisted(&fenced), Kind::Leaf, 0);
            Ok(())
        })
    }

    /// Handles two keys that diverge below a node. Short pairs get an inline leaf array of a line; otherwise the new
    /// leaf joins the old one in a leaf array (§3.2), for 3 write-backs and 2 fences, or 2 and 2 if leaf and array
    /// fit one line; without leaf compaction both hang from an N4 at the level where they part (ART's leaf split).
    fn split_leaf(
        &self,
        slot: &PSlot,
        link: Link,
        slot_level: usize,
        old: LeafRef<'_>,
        value: &[u8],
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let publish = |object: Persisted<'_, Erased>, kind, aux| {
            let tag = child_tag(kind, link.byte(), aux);
            let _durable = slot.publish::<V::Publish, M, _>(media, object, tag).commit();
        };
        let old_key = old.key();
        if let Some(new) = pair_of(self.key, value).filter(|_| V::INLINE)
            && let Some(old_pair) = pair_of(old_key, &old.value(self.heap))
            && let Some(image) = Image::of(&[old_pair.min(new), old_pair.max(new)], 0, Fill::Tight)
        {
            persist_scope(media, Purpose::Node, |batch| {
                let (array, _) = draft_inline(self.heap, &batch, &image)?;
                let fenced = batch.fence();
                publish(array.persisted(&fenced), Kind::Inline, image.shape.aux());
                Ok::<_, Error>(())
            })?;
            self.retire(link, old.extent());
            return Ok(());
        }
        persist_scope(media, Purpose::Node, |batch| {
            if V::LC {
                let (array, class) = draft_pair::<M, V>(self.heap, &batch, (link, old_key), self.key, value)?;
                let fenced = batch.fence();
                publish(array.persisted(&fenced), Kind::Array, class);
                return Ok(());
            }
            let level = common_prefix(old_key, self.key);
            let skip = skip_between(slot_level, level, link)?;
            let leaf = draft_leaf(self.heap, self.key, value, &batch)?
                .flush(&batch)
                .erased();
            let mut children = Children::default();
            children.add_reachable(old_key.get(level).copied(), link, link.aux());
            children.add(self.key.get(level).copied(), Child::New(leaf, Kind::Leaf, 0));
            let (node, kind, _) = draft_node(self.heap, &batch, &self.key[..level], &mut children)?;
            let fenced = batch.fence();
            publish(node.persisted(&fenced), kind, skip);
            Ok(())
        })
    }
}
