//! Splits (RECIPE §6.5): a "2-step atomic split mechanism" at all levels, and the separator.
//!
//! ```text
//! (0) the sibling, with the upper entries, and the node's `next`: private
//! (1) node.next -> the sibling                   from here on it covers the keys from its `low` on
//! (2) the node's permutation omits them           until then both have them, and no thread changes the sibling's
//! (3) the parent's permutation names the sibling, or the link to the layer leads to a new root over both
//! ```
//!
//! Each step is durable before the next. The splitter holds the node's lock until after (2) and the sibling's until
//! after (3): these locks show another writer that the splitter is at work (`repair`).

use super::link::{LEVELS, level_of, node_tag};
use super::locate::{Layer, LockedNode, Writer};
use super::node::{LINK, Node, NodeRef, kind};
use super::order::Order;
use art::{Tries, damaged};
use heap::Error;
use pmem::{LinkAndPersist, Media, Purpose, persist_scope};

impl<'a, M: Media> Writer<'a, M> {
    /// A border with room for the slice: this one, or one of the two after a split.
    pub(super) fn with_room(
        &self,
        layer: &mut Layer,
        border: LockedNode<'a, M>,
        slice: u64,
    ) -> Result<LockedNode<'a, M>, Error> {
        let media = self.media();
        let order = border.node.order(media);
        if order.free().is_some() {
            return Ok(border);
        }
        let ascends = border.node.before(media, order, slice) == order.len();
        let sibling = self.split(border.node, order, ascends)?;
        // The split has succeeded, even if this step has not: the next writer that reaches the sibling from the left
        // adds the separator.
        let held = self.holding(border.node);
        let _ = self.link_up(layer, sibling.node);
        drop(held);
        let to_the_right = slice >= sibling.node.low(media);
        Ok(if to_the_right { sibling } else { border })
    }

    /// Steps (0) to (2), for a node whose lock the caller holds. If keys come in ascending order (`ascends`), the node
    /// keeps all entries but one. Costs a write-back for each used line of the sibling, 2 more, and 3 fences.
    fn split(&self, node: NodeRef<'a>, order: Order, ascends: bool) -> Result<LockedNode<'a, M>, Error> {
        let media = self.media();
        let at = self.parting(node, order, ascends)?;
        let copy = self.upper_part(node, order, at);
        let next = node.node.next.load(media);
        let sibling = persist_scope(media, Purpose::Node, |batch| {
            let mut draft = self.heap.draft(copy, 0, &batch)?;
            draft.link(|node| &mut node.next, next);
            let used = draft.used();
            let sibling = draft.flush_parts([used], &batch);
            Ok::<_, Error>(sibling.persisted(&batch.fence()))
        })?;
        let lock = &self.heap.at::<Node>(sibling.offset())?.lock;
        let Ok(Some(locked)) = lock.try_lock(media, self.heap.generation()) else {
            return Err(damaged("lock of a new node", node.link).into());
        };
        media.comes_to(if node.level() == 0 {
            "split of a border"
        } else {
            "split of an inner node"
        });
        let _durable = node
            .node
            .next
            .publish::<LinkAndPersist, M, _>(media, sibling, node_tag(node.level()))
            .commit();
        self.leave_out(node, at);
        let node = NodeRef::at(self.heap, node.node.next.load(media))?;
        Ok(LockedNode { node, locked })
    }

    /// The place where a node is split: between different slices (I4 of `node`), near the middle or the end.
    fn parting(&self, node: NodeRef<'a>, order: Order, ascends: bool) -> Result<usize, Error> {
        let count = order.len();
        let wanted = if ascends { count - 1 } else { count / 2 };
        let parts = |at: &usize| {
            let slice = |place| node.slice(self.media(), order, place);
            (1..count).contains(at) && slice(at - 1) != slice(*at)
        };
        (0..count)
            .flat_map(|off| [wanted + off, wanted.wrapping_sub(off)])
            .find(parts)
            .ok_or_else(|| damaged("slices of a node", node.link).into())
    }

    /// A node with the entries of another from a place on.
    fn upper_part(&self, node: NodeRef<'a>, order: Order, at: usize) -> Node {
        let media = self.media();
        let kinds = node.node.kinds.load(media);
        let is = kind(kinds, order.entry(at));
        let mut copy = Node::new(self.heap.generation(), node.slice(media, order, at), is);
        for entry in order.entries().skip(at) {
            if node.level() == 0 {
                let (slice, held) = node.held(media, kinds, entry);
                copy.push(slice, held);
            } else {
                let entry = &node.node.entries[entry];
                copy.push_child(entry.slice.load(media), entry.word.load_link(media));
            }
        }
        copy
    }

    /// Step (3), for a node whose lock the caller holds: adds the separator to the parent, or a new root to the
    /// layer. Without a further split this costs 2 write-backs and 2 fences.
    pub(super) fn link_up(&self, layer: &mut Layer, node: NodeRef<'a>) -> Result<(), Error> {
        let _held = self.holding(node);
        let media = self.media();
        let low = node.low(media);
        let mut tries = Tries::default();
        loop {
            let Some(root) = self.root_of(layer)? else {
                return Ok(());
            };
            if level_of(root) <= node.level() {
                if self.raise(layer, node)? {
                    return Ok(());
                }
            } else if let Some((parent, came_right)) = self.lock_taking(root, low, node.level() + 1)? {
                if came_right {
                    self.see_to_separator(layer, parent.node)?;
                }
                return self.add_child(layer, parent, node);
            }
            self.lost(&mut tries)?;
        }
    }

    fn add_child(
        &self,
        layer: &mut Layer,
        parent: LockedNode<'a, M>,
        node: NodeRef<'a>,
    ) -> Result<(), Error> {
        let media = self.media();
        let low = node.low(media);
        let order = parent.node.order(media);
        let place = parent.node.before(media, order, low);
        if place < order.len() && parent.node.slice(media, order, place) == low {
            return Ok(());
        }
        if order.free().is_some() {
            return self.put_child(parent.node, low, node.link);
        }
        let sibling = self.split(parent.node, order, place == order.len())?;
        let to_the_right = low >= sibling.node.low(media);
        let takes = if to_the_right { sibling.node } else { parent.node };
        self.put_child(takes, low, node.link)?;
        drop(parent);
        self.link_up(layer, sibling.node)
    }

    /// Puts a new root over the layer's old one and the node, its sibling; returns `false` if another thread did so
    /// meanwhile. Costs 2 write-backs and 2 fences.
    fn raise(&self, layer: &mut Layer, node: NodeRef<'a>) -> Result<bool, Error> {
        let media = self.media();
        let Some(above) = self.lock_above(layer)? else {
            return Ok(true);
        };
        if level_of(above.root) != node.level() {
            return Ok(false);
        }
        if node.is(above.root) || node.level() + 1 == LEVELS {
            return Err(damaged("root of a layer", above.root).into());
        }
        let mut root = Node::new(self.heap.generation(), 0, LINK);
        root.push_child(0, above.root);
        root.push_child(node.low(media), node.link);
        persist_scope(media, Purpose::Node, |batch| {
            let draft = self.heap.draft(root, 0, &batch)?;
            let used = draft.used();
            let root = draft.flush_parts([used], &batch).persisted(&batch.fence());
            media.comes_to("new root of a layer");
            media.site("masstree: root of a layer, raised");
            let _durable = above
                .slot
                .publish::<LinkAndPersist, M, _>(media, root, node_tag(node.level() + 1))
                .commit();
            Ok(true)
        })
    }
}
