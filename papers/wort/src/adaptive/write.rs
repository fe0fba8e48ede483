//! Writes: each is an edit of one key (`index::Edit`), applied by the tree's only writer (`root`).
//!
//! The cost of an insert, besides further lines of long leaves: 3 write-backs and 2 fences if the node accepts the
//! leaf by a commit word (4 for WOART's N16, whose partial key is written back before the bitmap of the same line), 2
//! and 2 if by a slot.

use super::build::draft_node;
use super::locate::{Found, Place, Writer, skip};
use super::node::Node;
use super::{Prefix, Publish, Scheme, Tree};
use crate::root::Root;
use art::{
    Child, Children, Kind, LeafRef, Node as _, Tagged, child_tag, common_prefix, draft_leaf, publish_leaf,
    replace_value, same,
};
use heap::{Access, Error, Guard};
use index::{Action, Edit};
use pmem::{Erased, Link, Media, Persisted, Purpose, persist_scope};
use std::marker::PhantomData;

impl<'g, S: Scheme, M: Media> Writer<'g, S, M> {
    /// Applies the edit once this thread is the only writer.
    pub(super) fn edit(
        index: &'g Tree<S, M>,
        heap: &'g Access<M>,
        key: &'g [u8],
        edit: &mut dyn Edit,
        guard: &'g Guard,
    ) -> Result<Action, Error> {
        let root = Root::at(heap, index.root())?;
        let _locked = root.lock(heap)?;
        let writer = Self {
            heap,
            guard,
            key,
            scheme: PhantomData,
        };
        writer.edit_at(writer.locate(root)?, edit)
    }

    fn edit_at(&self, found: Found<'g, S>, edit: &mut dyn Edit) -> Result<Action, Error> {
        if let Found::Leaf { place, leaf, above } = &found
            && same(leaf.key(), self.key)
        {
            let action = edit.decide(Some(&leaf.value(self.heap)));
            match action {
                Action::Keep => {}
                Action::Put => {
                    let at = (place.slot, place.link);
                    replace_value::<Publish, M>(self.heap, at, *leaf, edit.value(), self.guard)?;
                }
                Action::Remove => self.remove(place, *leaf, above.as_ref())?,
            }
            return Ok(action);
        }
        if edit.decide(None) != Action::Put {
            return Ok(Action::Keep);
        }
        let value = edit.value();
        match found {
            Found::Empty { place } => {
                let tag = child_tag(Kind::Leaf, place.byte, 0);
                publish_leaf::<Publish, M>(self.heap, place.slot, tag, self.key, value)?;
            }
            Found::Leaf { place, leaf, .. } => self.split_leaf(&place, leaf, value)?,
            Found::Parting { place, node, parting } => S::split_prefix(self, &place, node, parting, value)?,
            Found::Vacant { node, byte } => {
                if !node.node.add(self.heap, byte, self.key, value)? {
                    self.add_to_copy(&node, byte, value)?;
                }
            }
        }
        Ok(Action::Put)
    }

    /// Swings a slot to a new object: the commit point.
    pub(crate) fn publish(&self, place: &Place<'_>, object: Persisted<'_, Erased>, kind: Kind, aux: u8) {
        let tag = child_tag(kind, place.byte, aux);
        let slot = place
            .slot
            .publish::<Publish, M, _>(self.heap.media(), object, tag);
        let _durable = slot.commit();
    }

    /// Swings a slot to an object that is already reachable below.
    pub(crate) fn publish_link(&self, place: &Place<'_>, link: Link, aux: u8) {
        let tag = child_tag(link.kind(), place.byte, aux);
        let slot = place
            .slot
            .publish_link::<Publish, M>(self.heap.media(), link.with_tag(tag));
        let _durable = slot.commit();
    }

    /// The same for an inner node to which `depth` bytes lead now, and fewer afterwards.
    pub(crate) fn publish_below(&self, place: &Place<'_>, child: Link, depth: usize) -> Result<(), Error> {
        let node = Node::<S>::at(self.heap, child)?;
        let level = node.level(self.heap, child, depth)?;
        self.publish_link(place, child, skip(place.depth, level));
        Ok(())
    }

    /// Two keys diverge: hangs both from a new N4. Costs 3 write-backs and 2 fences.
    fn split_leaf(&self, place: &Place<'_>, old: LeafRef<'_>, value: &[u8]) -> Result<(), Error> {
        let level = common_prefix(old.key(), self.key);
        if level < place.depth {
            return Err(art::damaged("leaf's key", place.link).into());
        }
        persist_scope(self.heap.media(), Purpose::Node, |batch| {
            let leaf = draft_leaf(self.heap, self.key, value, &batch)?
                .flush(&batch)
                .erased();
            let mut children = Children::default();
            children.add_reachable(old.key().get(level).copied(), place.link, 0);
            children.add(self.key.get(level).copied(), Child::New(leaf, Kind::Leaf, 0));
            let header = Prefix::of(self.key, place.depth, level);
            let (node, kind) = draft_node::<S, M>(self.heap, &batch, header, children)?;
            let fenced = batch.fence();
            self.publish(place, node.persisted(&fenced), kind, skip(place.depth, level));
            Ok(())
        })
    }

    /// Retires a replaced node.
    #[track_caller]
    pub(crate) fn retire_node(&self, link: Link, node: Node<'_, S>) {
        if node.common().retire(self.heap) {
            self.retire(link, node.size());
        }
    }

    /// Frees an object's chunk once no reader can hold it.
    #[track_caller]
    pub(super) fn retire(&self, link: Link, len: usize) {
        art::retire(self.heap, self.guard, link, len);
    }
}
