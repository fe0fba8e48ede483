//! Structure modifications of removes, which give space back.
//!
//! A remove either empties the key's slot, or, if too few keys would remain, builds a smaller object without the key
//! and swings the parent's slot to it. Thresholds lie well below those at which inserts grow objects, so that no
//! single key toggles a structure. Work that needs memory is optional: in a full pool the slot is just emptied. Work
//! after the commit is optional too: its failure is not an error of the remove.

use crate::Variant;
use crate::array::{ArrayRef, CAPACITIES, DraftEntry, MAX_LEAVES, draft_array};
use crate::inline::{Fill, Image, InlineRef};
use crate::locate::{Parent, Place};
use crate::node::{Layouts, Node, children_of, draft_node};
use crate::subtree::{Built, Member, Subtrees};
use crate::writer::{Writer, skip_between};
use art::{Child, Kind, Kinds, LeafRef, Tagged, child_tag, damaged, no_memory, same_object, shrink_at};
use heap::Error;
use pmem::{Link, Locked, Media, PSlot, Purpose, persist_scope};

/// Maximum number of attempts to collapse a node whose one child is locked by other threads.
const MAX_TURNS: u32 = 1000;

/// Maximum number of leaves of a subtree that becomes one leaf array again: half of an array's capacity.
const MERGE: usize = 32;

impl<M: Media, V: Variant> Writer<'_, M, V> {
    /// Removes the leaf, or inline leaf array with one key, at `link` from its slot in the place's node.
    pub(crate) fn remove_child(
        &self,
        place: &Place<'_>,
        locked: Locked<'_, M>,
        slot: &PSlot,
        (link, extent): (Link, usize),
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let node = &place.node;
        let byte = self.key.get(place.level).copied();
        let ends = !node.header().ends.load(media).is_null();
        let left = (node.count(media) + usize::from(ends)).saturating_sub(1);
        let children_left = left - usize::from(ends && byte.is_some()).min(left);
        let locked = if same_object(place.at, self.index.root) {
            Some(locked)
        } else if left == 0 {
            return self.cut(place, locked, (link, extent));
        } else if left == 1 {
            self.collapse(place, locked, link)?
        } else {
            match self.merge(place, locked, left, link)? {
                Some(locked) if children_left <= shrink_at(node.kind()) => {
                    self.shrink(place, locked, link)?
                }
                held => held,
            }
        };
        if let Some(locked) = locked {
            node.clear::<V, M>(media, slot, byte);
            drop(locked);
            if left == 1 {
                self.tidy_if_possible(place.node, place.at);
            }
        }
        self.retire(link, extent);
        Ok(())
    }

    /// Removes the last key below a node: the slot of the nearest ancestor with more children is emptied, so that no
    /// node is ever without a child. (A crash or a full pool may leave a node with one child.)
    fn cut(
        &self,
        place: &Place<'_>,
        locked: Locked<'_, M>,
        (leaf, extent): (Link, usize),
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let mut dead = vec![(place.at, locked)];
        let mut parent = self.lock_parent(place.at)?;
        while !same_object(parent.at, self.index.root)
            && remaining(&parent.node, media, parent.link).next().is_none()
        {
            let above = self.lock_parent(parent.at)?;
            dead.push((parent.at, parent.locked));
            parent = above;
        }
        parent
            .node
            .clear::<V, M>(media, parent.slot, Some(parent.link.byte()));
        let Parent { node, at, locked, .. } = parent;
        drop(locked);
        for (link, locked) in dead {
            locked.retire();
            self.retire(link, Layouts::size(link.kind()));
        }
        self.retire(leaf, extent);
        self.tidy_if_possible(node, at);
        Ok(())
    }

    /// Like [`tidy`](Self::tidy), after the commit of a remove. The remove has succeeded whatever the writer meets
    /// here: damage is reported by operations that reach it, and by checks.
    fn tidy_if_possible(&self, node: Node<'_>, at: Link) {
        let _ = self.tidy(node, at);
    }

    /// Collapses a node that may have been left with one child.
    fn tidy(&self, node: Node<'_>, at: Link) -> Result<(), Error> {
        let media = self.heap.media();
        if same_object(at, self.index.root) {
            return Ok(());
        }
        let place = Place {
            node,
            at,
            level: node.header().level(media),
            slot: None,
            link: Link::NULL,
            parting: None,
        };
        for turn in 0..MAX_TURNS {
            let Ok(locked) = node.lock(self.heap)? else {
                return Ok(());
            };
            if remaining(&node, media, Link::NULL).nth(1).is_some() {
                return Ok(());
            }
            // Waits for a lock, but not for memory.
            if self.collapse(&place, locked, Link::NULL)?.is_none() || self.is_full.get() {
                return Ok(());
            }
            media.wait(turn);
        }
        Ok(())
    }

    /// The one remaining child, other than `without`, takes the node's place. An array does so as a copy: the array
    /// itself would accept keys that do not belong where a scan has found it. Returns the lock if no child remains, if
    /// the array's lock is taken (locks are only waited for from the child upward), or if there is no memory.
    fn collapse<'g>(
        &self,
        place: &Place<'g>,
        locked: Locked<'g, M>,
        without: Link,
    ) -> Result<Option<Locked<'g, M>>, Error> {
        let media = self.heap.media();
        let Some(child) = remaining(&place.node, media, without).next() else {
            return Ok(Some(locked));
        };
        match child.kind() {
            Kind::Array if ArrayRef::at(self.heap, child)?.leaves(media).count() < MAX_LEAVES => {
                return self.replace_by_copy(place, locked, child);
            }
            Kind::Array | Kind::Inline => return self.replace_by_array(place, locked, None, without),
            _ => {}
        }
        let parent = self.lock_parent(place.at)?;
        let aux = if child.is_inner() {
            let below = Node::at(self.heap, child)?.header().level(media);
            skip_between(parent.level, below, child)?
        } else {
            child.aux()
        };
        self.hang(&parent, child, aux);
        drop(parent);
        locked.retire();
        self.retire(place.at, place.node.size());
        Ok(None)
    }

    /// Replaces the node by a copy of a leaf array, its only child. Checks one leaf. Returns the lock if the array's
    /// is taken or there is no memory.
    fn replace_by_copy<'g>(
        &self,
        place: &Place<'g>,
        locked: Locked<'g, M>,
        child: Link,
    ) -> Result<Option<Locked<'g, M>>, Error> {
        let media = self.heap.media();
        let array = ArrayRef::at(self.heap, child)?;
        let Some(array_locked) = array.try_lock(self.heap, child, &[])? else {
            return Ok(Some(locked));
        };
        if let Some(first) = array.leaves(media).next()
            && !self.belongs(
                LeafRef::at(self.heap, first)?.key(),
                place.level,
                Some(child.byte()),
            )
        {
            return Err(damaged("leaf array's keys", child).into());
        }
        let parent = self.lock_parent(place.at)?;
        let done = persist_scope(media, Purpose::Node, |batch| {
            let entries = array.leaves(media).map(DraftEntry::Reachable).collect();
            let (copy, class, _) = draft_array::<M, V>(self.heap, &batch, entries)?;
            let fenced = batch.fence();
            self.replace(&parent, copy.persisted(&fenced), Kind::Array, class);
            Ok(())
        });
        drop(parent);
        if no_memory(done)? {
            self.is_full.set(true);
            return Ok(Some(locked));
        }
        array_locked.retire();
        self.retire(child, array.size());
        locked.retire();
        self.retire(place.at, place.node.size());
        Ok(None)
    }

    /// Hangs a reachable object into the parent's slot.
    pub(crate) fn hang(&self, parent: &Parent<'_, M>, child: Link, aux: u8) {
        let tag = child_tag(child.kind(), parent.link.byte(), aux);
        let media = self.heap.media();
        let _durable = parent
            .slot
            .publish_link::<V::Publish, M>(media, child.with_tag(tag))
            .commit();
    }

    /// Replaces the node by a smaller one without the child. Returns the lock if there is no memory.
    fn shrink<'g>(
        &self,
        place: &Place<'g>,
        mut locked: Locked<'g, M>,
        without: Link,
    ) -> Result<Option<Locked<'g, M>>, Error> {
        let media = self.heap.media();
        let parent = self.lock_parent(place.at)?;
        let done = persist_scope(media, Purpose::Node, |batch| {
            let mut children = children_of(&place.node, media);
            children
                .list
                .retain(|(_, child)| !matches!(child, Child::Reachable(link) if same_object(*link, without)));
            children
                .ends
                .take_if(|child| matches!(child, Child::Reachable(link) if same_object(*link, without)));
            let (node, kind, _) = draft_node(self.heap, &batch, &self.key[..place.level], &mut children)?;
            // Before the fence, as when a node grows.
            locked.condemn();
            let fenced = batch.fence();
            self.replace(&parent, node.persisted(&fenced), kind, parent.link.aux());
            Ok(())
        });
        drop(parent);
        if no_memory(done)? {
            return Ok(Some(locked));
        }
        locked.retire();
        self.retire(place.at, place.node.size());
        Ok(None)
    }

    /// Replaces a node with few keys below it by one leaf array or inline leaf array (the reverse of a split). Returns
    /// the lock if there are too many keys, or other objects than leaves and arrays, or pairs that fit no inline leaf
    /// array, or a child's lock is taken, or there is no memory.
    fn merge<'g>(
        &self,
        place: &Place<'g>,
        locked: Locked<'g, M>,
        left: usize,
        without: Link,
    ) -> Result<Option<Locked<'g, M>>, Error> {
        let media = self.heap.media();
        let node = place.node;
        let mut least = 0;
        if !V::LC || left > MERGE {
            return Ok(Some(locked));
        }
        for child in remaining(&node, media, without) {
            least += match child.kind() {
                Kind::Leaf | Kind::Inline => 1,
                Kind::Array => 2,
                _ => return Ok(Some(locked)),
            };
        }
        if least > MERGE {
            return Ok(Some(locked));
        }
        self.replace_by_array(place, locked, Some(MERGE), without)
    }

    /// Replaces a node that has only leaves and arrays by one array, unless it would have more than `max` keys; with
    /// `None` there is one child, an array, and the node is replaced by a copy of it, or, if the next insert would
    /// have to split the copy, by the result of that split.
    fn replace_by_array<'g>(
        &self,
        place: &Place<'g>,
        locked: Locked<'g, M>,
        max: Option<usize>,
        without: Link,
    ) -> Result<Option<Locked<'g, M>>, Error> {
        let media = self.heap.media();
        let node = place.node;
        let subtrees = self.subtrees();
        let mut members = Vec::with_capacity(MERGE);
        let mut arrays = Vec::new();
        let mut shape = None;
        let ends = Some(node.header().ends.load(media)).filter(|ends| !ends.is_null());
        for child in remaining(&node, media, without) {
            if max.is_some_and(|max| members.len() > max) {
                return Ok(Some(locked));
            }
            let before = members.len();
            match child.kind() {
                Kind::Leaf => members.push(subtrees.leaf_member(child)?),
                Kind::Array => {
                    let array = ArrayRef::at(self.heap, child)?;
                    let Some(array_locked) = array.try_lock(self.heap, child, &[])? else {
                        return Ok(Some(locked));
                    };
                    for leaf in array.leaves(media) {
                        members.push(subtrees.entry_member(leaf)?);
                    }
                    arrays.push((child, array.size(), array_locked));
                }
                Kind::Inline => {
                    let array = InlineRef::at(self.heap, child)?;
                    let Some(array_locked) = array.try_lock(self.heap, child, &[])? else {
                        return Ok(Some(locked));
                    };
                    let first = self.key.first().copied().unwrap_or_default();
                    let pairs = array.pairs(media);
                    members.extend(pairs.map(|(word, value)| Member::Pair(first, word, value)));
                    arrays.push((child, array.shape.size(), array_locked));
                    shape = Some(array.shape);
                }
                _ => return Ok(Some(locked)),
            }
            let byte = (!ends.is_some_and(|ends| same_object(ends, child))).then(|| child.byte());
            let is_other = |member: &Member<'_>| !member.with_key(|key| self.belongs(key, place.level, byte));
            if members[before..].iter().any(is_other) {
                return Err(damaged("key of a leaf", child).into());
            }
        }
        if max.is_some_and(|max| members.len() > max) {
            return Ok(Some(locked));
        }
        let image = match (Subtrees::<M, V>::pairs_of(&members), max, shape) {
            (Some(pairs), Some(_), _) => {
                let Some(image) = Image::of(&pairs, 0, Fill::Loose) else {
                    return Ok(Some(locked));
                };
                Some(image)
            }
            (Some(pairs), None, Some(shape)) => match Image::with_shape(&pairs, shape) {
                None => return Err(art::damaged("inline leaf array's entries", place.at).into()),
                image => image,
            },
            _ => None,
        };
        let parent = self.lock_parent(place.at)?;
        let mut built = Built::default();
        let done = persist_scope(media, Purpose::Node, |batch| {
            let top = match &image {
                Some(image) => subtrees.draft_image(&batch, image, &members, &mut built)?,
                None => subtrees.draft_subtree(&batch, parent.level + 1, None, &members, &mut built)?,
            };
            self.publish_top(&parent, top, batch);
            Ok(())
        });
        drop(parent);
        built.settle(self.heap, self.guard, done.is_ok());
        if no_memory(done)? {
            self.is_full.set(true);
            return Ok(Some(locked));
        }
        for (link, size, array_locked) in arrays {
            array_locked.retire();
            self.retire(link, size);
        }
        locked.retire();
        self.retire(place.at, node.size());
        Ok(None)
    }

    /// Removes the leaf at `link` from its slot in a leaf array.
    pub(crate) fn remove_from_array(
        &self,
        place: &Place<'_>,
        array: &ArrayRef<'_>,
        locked: Locked<'_, M>,
        slot: &PSlot,
        link: Link,
    ) -> Result<(), Error> {
        let media = self.heap.media();
        let extent = LeafRef::at(self.heap, link)?.extent();
        let mut others = array.leaves(media).filter(|other| !same_object(*other, link));
        let left = array.count_without(link, media);
        let class = usize::from(place.link.aux());
        let few = class
            .checked_sub(1)
            .is_some_and(|smaller| V::SIZES && left <= CAPACITIES[smaller] / 2);
        let replaced = if left == 1
            && let Some(last) = others.next()
        {
            self.hang(&self.lock_parent(place.link)?, last, 0);
            true
        } else if left >= 2 && few {
            let parent = self.lock_parent(place.link)?;
            let done = persist_scope(media, Purpose::Node, |batch| {
                let entries = others.map(DraftEntry::Reachable).collect();
                let (array, class, _) = draft_array::<M, V>(self.heap, &batch, entries)?;
                let fenced = batch.fence();
                self.replace(&parent, array.persisted(&fenced), Kind::Array, class);
                Ok(())
            });
            !no_memory(done)?
        } else {
            false
        };
        if replaced {
            locked.retire();
            self.retire(place.link, array.size());
        } else {
            let _durable = slot.publish_link::<V::Publish, M>(media, Link::NULL).commit();
            drop(locked);
        }
        self.retire(link, extent);
        Ok(())
    }
}

/// The children of a node, except for one object.
fn remaining<'g, M: Media>(
    node: &Node<'g>,
    media: &'g M,
    without: Link,
) -> impl Iterator<Item = Link> + use<'g, M> {
    let ends = node.header().ends.load(media);
    let ends = (!ends.is_null()).then_some(ends);
    ends.into_iter()
        .chain(node.children(media))
        .filter(move |link| !same_object(*link, without))
}
