//! Removes, by which space comes back.
//!
//! A remove makes one slot not count any more. Where that leaves one child, the child takes the node's place; where it
//! leaves few, a smaller copy does. The thresholds lie below those at which inserts make larger copies, so that no key
//! toggles an N48 or an N256. A remove needs no memory: in a full pool a node stays as large as it is.

use super::build::{children_of, draft_node};
use super::walk::{Passed, Place};
use super::write::{publish, publish_link, retire_node};
use super::{Publish, Scheme, Tree};
use art::{Kind, LeafRef, Tagged, no_memory, retire, shrink_at};
use heap::{Error, Guard};
use index::OnHeap;
use pmem::{Link, Media, Purpose, persist_scope};

/// Takes the leaf at `place`, which is `key`'s, out of the tree.
pub(super) fn remove<S: Scheme, M: Media>(
    tree: &Tree<S, M>,
    place: &Place<'_>,
    leaf: LeafRef<'_>,
    above: Option<&Passed<'_, S>>,
    guard: &Guard,
) -> Result<(), Error> {
    let extent = leaf.extent();
    match above {
        None => clear(tree, place),
        Some(above) => remove_from(tree, place, above, guard)?,
    }
    retire(tree.heap(), guard, place.link, extent);
    Ok(())
}

/// Empties a slot. 1 write-back, 1 fence.
fn clear<S: Scheme, M: Media>(tree: &Tree<S, M>, place: &Place<'_>) {
    let slot = place
        .slot
        .publish_link::<Publish, M>(tree.heap().media(), Link::NULL);
    let _durable = slot.commit();
}

fn remove_from<S: Scheme, M: Media>(
    tree: &Tree<S, M>,
    place: &Place<'_>,
    above: &Passed<'_, S>,
    guard: &Guard,
) -> Result<(), Error> {
    let media = tree.heap().media();
    let node = above.node;
    let Some(byte) = above.byte else {
        if node.count_up_to(media, 2) > 1 {
            clear(tree, place);
            return Ok(());
        }
        return collapse(tree, above, guard);
    };
    let few = shrink_at(node.kind());
    // The one that goes, and one more than may be left for its place or a smaller kind.
    let others = node.count_up_to(media, few.max(1) + 2).saturating_sub(1);
    let ends = !node.common().ends.load(media).is_null();
    if others + usize::from(ends) <= 1 {
        return collapse(tree, above, guard);
    }
    if others <= few && remove_by_copy(tree, above, guard)? {
        return Ok(());
    }
    if !node.remove(media, byte) && !remove_by_copy(tree, above, guard)? {
        clear(tree, place);
    }
    Ok(())
}

/// Replaces the node by a copy without the child; `false` if there is no memory for it. 2 fences; a write-back for each
/// line of the copy, and for the slot.
fn remove_by_copy<S: Scheme, M: Media>(
    tree: &Tree<S, M>,
    above: &Passed<'_, S>,
    guard: &Guard,
) -> Result<bool, Error> {
    let heap = tree.heap();
    let Passed {
        node, place, byte, ..
    } = above;
    let done = persist_scope(heap.media(), Purpose::Node, |batch| {
        let children = children_of(*node, heap.media(), *byte);
        let (copy, kind) = draft_node::<S, M>(heap, &batch, above.header(tree)?, children)?;
        let fenced = batch.fence();
        publish(tree, place, copy.persisted(&fenced), kind, place.link.aux());
        Ok(())
    });
    if no_memory(done)? {
        return Ok(false);
    }
    retire_node(tree, guard, place.link, *node);
    Ok(true)
}

/// One child is left: it takes the node's place. (None is left only in a damaged pool.)
fn collapse<S: Scheme, M: Media>(
    tree: &Tree<S, M>,
    above: &Passed<'_, S>,
    guard: &Guard,
) -> Result<(), Error> {
    let media = tree.heap().media();
    let Passed { node, place, .. } = above;
    let mut last = match above.byte {
        Some(_) => node.common().ends.load(media),
        None => Link::NULL,
    };
    node.all(media, |byte, link| {
        if Some(byte) != above.byte {
            last = link;
        }
    });
    match last.kind() {
        Kind::Leaf => publish_link(tree, place, last, 0),
        _ if last.is_null() => clear(tree, place),
        _ => S::merge_prefix(tree, place, last, above.level + 1, guard)?,
    }
    retire_node(tree, guard, place.link, *node);
    Ok(())
}
