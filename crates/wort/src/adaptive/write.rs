//! Writes: every one is an edit of one key (`index::Edit`), under the writers' lock of the root.
//!
//! What an insert costs, beside further lines of long leaves: 3 write-backs and 2 fences where the node takes the leaf
//! by a commit word (4 for WOART's N16, whose partial key is written back before the bitmap of the same line), 2 and 2 where by a slot.

use super::build::draft_node;
use super::node::NodeRef;
use super::walk::{Found, Place, skip, walk};
use super::{Prefix, Publish, Scheme, Tree};
use crate::root::Root;
use art::{
    Child, Children, Kind, LeafRef, Node, Tagged, child_tag, common_prefix, draft_leaf, publish_leaf,
    replace_value, retire, same,
};
use heap::{Error, Guard};
use index::{Action, Edit, OnHeap};
use pmem::{Erased, Link, Media, Persisted, Purpose, persist_scope};

/// Carries out `edit` on `key`.
pub(super) fn edit<S: Scheme, M: Media>(
    tree: &Tree<S, M>,
    key: &[u8],
    edit: &mut dyn Edit,
    guard: &Guard,
) -> Result<Action, Error> {
    let heap = tree.heap();
    let root = Root::at(heap, tree.root())?;
    let _writing = root.lock(heap)?;
    let found = walk(tree, &root.top, key)?;
    if let Found::Leaf { place, leaf, above } = &found
        && same(leaf.key(), key)
    {
        let action = edit.decide(Some(&leaf.value(heap)));
        match action {
            Action::Keep => {}
            Action::Put => {
                let at = (place.slot, place.link);
                replace_value::<Publish, M>(heap, at, *leaf, edit.value(), guard)?;
            }
            Action::Remove => super::shrink::remove(tree, place, *leaf, above.as_ref(), guard)?,
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
            publish_leaf::<Publish, M>(heap, place.slot, tag, key, value)?;
        }
        Found::Leaf { place, leaf, .. } => split_leaf(tree, &place, leaf, key, value)?,
        Found::Parting { place, node, parting } => {
            S::split_prefix(tree, &place, node, parting, key, value, guard)?
        }
        Found::Vacant { node, byte } => {
            if !node.node.add(heap, byte, key, value)? {
                super::grow::add_to_copy(tree, &node, byte, key, value, guard)?;
            }
        }
    }
    Ok(Action::Put)
}

/// Swings a slot to something new: the commit point.
pub(crate) fn publish<S: Scheme, M: Media>(
    tree: &Tree<S, M>,
    place: &Place<'_>,
    object: Persisted<'_, Erased>,
    kind: Kind,
    aux: u8,
) {
    let tag = child_tag(kind, place.byte, aux);
    let slot = place
        .slot
        .publish::<Publish, M, _>(tree.heap().media(), object, tag);
    let _durable = slot.commit();
}

/// Swings a slot to something that hangs below already.
pub(crate) fn publish_link<S: Scheme, M: Media>(tree: &Tree<S, M>, place: &Place<'_>, link: Link, aux: u8) {
    let tag = child_tag(link.kind(), place.byte, aux);
    let slot = place
        .slot
        .publish_link::<Publish, M>(tree.heap().media(), link.with_tag(tag));
    let _durable = slot.commit();
}

/// The same for an inner node to which `depth` bytes lead so far, and fewer then.
pub(crate) fn publish_below<S: Scheme, M: Media>(
    tree: &Tree<S, M>,
    place: &Place<'_>,
    child: Link,
    depth: usize,
) -> Result<(), Error> {
    let node = NodeRef::<S>::at(tree.heap(), child)?;
    let level = node.level(tree.heap(), child, depth)?;
    publish_link(tree, place, child, skip(place.depth, level));
    Ok(())
}

/// Two keys diverge: both hang from a new N4. 3 write-backs, 2 fences.
fn split_leaf<S: Scheme, M: Media>(
    tree: &Tree<S, M>,
    place: &Place<'_>,
    old: LeafRef<'_>,
    key: &[u8],
    value: &[u8],
) -> Result<(), Error> {
    let heap = tree.heap();
    let level = common_prefix(old.key(), key);
    if level < place.depth {
        return Err(art::damaged("leaf's key", place.link).into());
    }
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let leaf = draft_leaf(heap, key, value, &batch)?.flush(&batch).erased();
        let mut children = Children::default();
        children.add_reachable(old.key().get(level).copied(), place.link, 0);
        children.add(key.get(level).copied(), Child::New(leaf, Kind::Leaf, 0));
        let header = Prefix::of(key, place.depth, level);
        let (node, kind) = draft_node::<S, M>(heap, &batch, header, children)?;
        let fenced = batch.fence();
        publish(
            tree,
            place,
            node.persisted(&fenced),
            kind,
            skip(place.depth, level),
        );
        Ok(())
    })
}

/// Gives back a node that was replaced.
pub(crate) fn retire_node<S: Scheme, M: Media>(
    tree: &Tree<S, M>,
    guard: &Guard,
    link: Link,
    node: NodeRef<'_, S>,
) {
    if node.common().retire(tree.heap()) {
        retire(tree.heap(), guard, link, node.size());
    }
}
