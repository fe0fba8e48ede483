//! The removal of an empty node.
//!
//! ```text
//! (1) the parent's permutation omits it; a parent with no other child is removed with it
//! (2) left.next -> node.next      each node of that chain, from the top down; its keys are then the left sibling's
//! ```
//!
//! Each step is durable before the next. The remover holds the node's lock throughout, and releases it as that of a
//! removed node, so nothing is inserted into it. A crash in between leaves an empty node without a separator, as one
//! during a split would: it remains in use, and gets the separator again (`repair`).
//!
//! The first child of a node with others stays, empty: its keys could only go to another parent's child. It is
//! removed when it is the last one.

use super::link::level_of;
use super::locate::{Layer, LockedNode, Writer};
use super::node::{NodeRef, SIZE, descend};
use art::Tries;
use heap::Error;
use pmem::{LinkAndPersist, Media};

impl<'a, M: Media> Writer<'a, M> {
    /// Removes an empty border that is not the first of its layer, unless it is the first of several children. Returns
    /// the border, locked, that may be removable as a result.
    pub(super) fn remove_node(
        &self,
        layer: &mut Layer,
        border: LockedNode<'a, M>,
    ) -> Result<Option<LockedNode<'a, M>>, Error> {
        let media = self.media();
        let low = border.node.low(media);
        let mut chain = vec![(self.holding(border.node), border)];
        let mut parent = None;
        let mut tries = Tries::default();
        while let Some((_, top)) = chain.last() {
            let Some(root) = self.root_of(layer)? else {
                return Ok(None);
            };
            let level = top.node.level() + 1;
            if level_of(root) < level {
                break;
            }
            let Some((above, _)) = self.lock_taking(root, low, level)? else {
                self.lost(&mut tries)?;
                continue;
            };
            let order = above.node.order(media);
            let place = above.node.before(media, order, low);
            if place == order.len() || above.node.slice(media, order, place) != low {
                // It has no separator: a split or a removal was interrupted.
                break;
            }
            if place > 0 {
                // (1)
                media.comes_to("removal of a node");
                let _durable = above
                    .node
                    .node
                    .order
                    .publish::<LinkAndPersist, M>(media, order.without(place).word())
                    .commit();
                parent = Some(above.node);
                break;
            }
            if order.len() > 1 {
                return Ok(None);
            }
            chain.push((self.holding(above.node), above));
        }
        // (2)
        while let Some((_held, LockedNode { node, locked })) = chain.pop() {
            let Some(left) = self.lock_left(layer, node)? else {
                return Ok(None);
            };
            let next = node.node.next.load(media);
            let _durable = left
                .node
                .node
                .next
                .publish_link::<LinkAndPersist, M>(media, next)
                .commit();
            drop(left);
            locked.retire();
            self.retire(node.link, SIZE);
        }
        match parent {
            Some(parent) => self.lower(layer, parent),
            None => Ok(None),
        }
    }

    /// Locks the left sibling of a node whose lock the caller holds; returns `None` if it is not found.
    fn lock_left(&self, layer: &mut Layer, node: NodeRef<'a>) -> Result<Option<LockedNode<'a, M>>, Error> {
        let low = node.low(self.media());
        let mut tries = Tries::default();
        loop {
            let (Some(before), Some(root)) = (low.checked_sub(1), self.root_of(layer)?) else {
                return Ok(None);
            };
            let Some(mut left) = descend(self.heap, root, before, node.level())? else {
                return Ok(None);
            };
            loop {
                match left.sibling(self.heap)? {
                    Some(next) if next.is(node.link) => break,
                    Some(next) if next.low(self.media()) < low => left = next,
                    _ => return Ok(None),
                }
            }
            if let Ok(locked) = self.lock(left)?
                && node.is(left.node.next.load(self.media()))
            {
                return Ok(Some(LockedNode { node: left, locked }));
            }
            self.lost(&mut tries)?;
        }
    }
}
