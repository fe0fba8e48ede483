//! After a remove: removes nodes that are no longer needed, from the border upward.

use super::link::{Target, leaf_tag, target};
use super::locate::{Layer, LockedNode, Writer};
use super::node::{Held, NodeRef, SIZE};
use super::slice::CONTINUES;
use art::damaged;
use heap::Error;
use pmem::{LinkAndPersist, Media};

impl<'a, M: Media> Writer<'a, M> {
    /// Removes the border if it is empty, its layer if that has at most one key left, and so on upward.
    pub(super) fn tidy(&self, mut layer: Layer, border: LockedNode<'a, M>) -> Result<(), Error> {
        let media = self.media();
        let mut next = Some(border);
        while let Some(border) = next {
            next = match border.node.order(media).len() {
                0 if border.node.low(media) > 0 => self.remove_node(&mut layer, border)?,
                0 | 1 => self.remove_layer(&mut layer, border)?,
                _ => None,
            };
        }
        Ok(())
    }

    /// Removes a layer whose only node is this border: if it has no key, its entry in the layer above is removed; if it
    /// has one, whose leaf contains the whole key, the entry leads to the leaf again. A layer whose only key has its
    /// value in place stays. Returns the border above, locked.
    fn remove_layer(
        &self,
        layer: &mut Layer,
        border: LockedNode<'a, M>,
    ) -> Result<Option<LockedNode<'a, M>>, Error> {
        let media = self.media();
        let node = border.node;
        if layer.depth() == 0 || !node.node.next.load(media).is_null() {
            return Ok(None);
        }
        let order = node.order(media);
        let mut leaf = None;
        if let Some(entry) = order.entries().next() {
            let (_, held) = node.held(media, node.node.kinds.load(media), entry);
            match held {
                Held::Link(link) if matches!(target(link), Some(Target::Leaf(_))) => leaf = Some(link),
                _ => return Ok(None),
            }
        }
        if !self.root_of(layer)?.is_some_and(|root| node.is(root)) {
            return Ok(None);
        }
        let held = self.holding(node);
        let above = self.lock_above(layer)?;
        drop(held);
        let Some(above) = above.filter(|above| node.is(above.root)) else {
            return Ok(None);
        };
        let Some((upper, place)) = above.border else {
            return Ok(None);
        };
        if let Some(leaf) = leaf {
            media.comes_to("layer becomes a leaf");
            let link = leaf.with_tag(leaf_tag(CONTINUES));
            media.site("masstree: leaf in place of a layer");
            let _durable = above.slot.publish_link::<LinkAndPersist, M>(media, link).commit();
        } else {
            media.comes_to("removal of a layer");
            let order = upper.order(media).without(place).word();
            media.site("masstree: entry of a layer, removed");
            let _durable = upper
                .node
                .order
                .publish::<LinkAndPersist, M>(media, order)
                .commit();
        }
        border.locked.retire();
        self.retire(node.link, SIZE);
        layer.above.pop();
        Ok(Some(LockedNode {
            node: upper,
            locked: above.locked,
        }))
    }

    /// Descends from a node that has lost a child: while the node has only one left, goes on to that child, and makes
    /// it the root if the node is the layer's root. Returns the border at the end, locked, which may be empty.
    pub(super) fn lower(
        &self,
        layer: &mut Layer,
        mut node: NodeRef<'a>,
    ) -> Result<Option<LockedNode<'a, M>>, Error> {
        let media = self.media();
        while node.level() > 0 {
            let only = node.look(media, |order| {
                let only = order.entries().next().filter(|_| order.len() == 1)?;
                Some(node.node.entries[only].word.slot().peek(media))
            });
            let Some(only) = only else {
                return Ok(None);
            };
            let child = NodeRef::at(self.heap, only)?;
            if child.level() + 1 != node.level() {
                return Err(damaged("child of a node", node.link).into());
            }
            if self.root_of(layer)?.is_some_and(|root| node.is(root)) && !self.lower_root(layer, node)? {
                return Ok(None);
            }
            node = child;
        }
        Ok(self.lock(node)?.ok().map(|locked| LockedNode { node, locked }))
    }

    /// Makes the only child of a layer's root the root. Costs 1 write-back and 1 fence.
    fn lower_root(&self, layer: &mut Layer, node: NodeRef<'a>) -> Result<bool, Error> {
        let media = self.media();
        let Ok(locked) = self.lock(node)? else {
            return Ok(false);
        };
        let order = node.order(media);
        if order.len() != 1 || !node.node.next.load(media).is_null() {
            return Ok(false);
        }
        let held = self.holding(node);
        let above = self.lock_above(layer)?;
        drop(held);
        let Some(above) = above.filter(|above| node.is(above.root)) else {
            return Ok(false);
        };
        let child = node.node.entries[order.entry(0)].word.load_link(media);
        media.comes_to("lower root of a layer");
        media.site("masstree: root of a layer, lowered");
        let _durable = above
            .slot
            .publish_link::<LinkAndPersist, M>(media, child)
            .commit();
        drop(above);
        locked.retire();
        self.retire(node.link, SIZE);
        Ok(true)
    }
}
