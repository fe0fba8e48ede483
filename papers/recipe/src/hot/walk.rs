//! Walks along a key's way, without locks.
//!
//! A node's branching bits come after those of the node above, so every walk ends, even in a damaged pool.

use super::Hot;
use super::layout::{Shape, Target, target};
use super::node::{Node, node_at};
use super::position::Position;
use art::{LeafRef, address, damaged, prefetch_range, same};
use heap::Access;
use pmem::{Fault, GenerationLock, Link, Media, PSlot};

/// Prefetches the lines of a node.
#[inline(always)]
pub(super) fn prefetch_node<M: Media>(heap: &Access<M>, link: Link, shape: Shape) {
    prefetch_range(address(heap, link), shape.size());
}

/// Checks that the node's branching bits come after the first one of the node above, and replaces that by the node's
/// own.
#[inline(always)]
pub(super) fn descend(node: &Node<'_>, link: Link, above: &mut Option<Position>) -> Result<(), Fault> {
    let first = node.first();
    if above.is_some_and(|above| first <= above) {
        return Err(damaged("branching bits of a node", link));
    }
    *above = Some(first);
    Ok(())
}

/// The root, or a node, that a walk has passed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step<'g> {
    /// Its link; for the root, the root's own.
    pub(super) at: Link,
    /// The node; `None`: the root.
    pub(super) node: Option<Node<'g>>,
    pub(super) lock: &'g GenerationLock,
    pub(super) slots: &'g [PSlot],
    /// The entry on the key's way, and its link at the time.
    pub(super) index: usize,
    pub(super) link: Link,
}

impl<'g> Step<'g> {
    /// The slot on the key's way.
    pub(super) fn slot(&self) -> &'g PSlot {
        &self.slots[self.index]
    }
}

/// A walk, from the root to a leaf or a null slot.
#[derive(Debug)]
pub(super) struct Path<'g> {
    /// The root, and the nodes below it.
    pub(super) steps: Vec<Step<'g>>,
}

impl<'g> Path<'g> {
    /// The last step.
    pub(super) fn last(&self) -> usize {
        self.steps.len() - 1
    }

    /// The number of the last step that branches before the position, or of the root. A key that first differs at
    /// `position` from the leaf at the end belongs in this step's node, or below its entry.
    pub(super) fn deepest_before(&self, position: Position) -> usize {
        let before = |step: &Step<'_>| step.node.is_none_or(|node| node.first() < position);
        self.steps.iter().rposition(before).unwrap_or_default()
    }
}

impl<M: Media> Hot<M> {
    /// The leaf of a key.
    #[inline]
    pub(super) fn find_leaf(&self, key: &[u8]) -> Result<Option<LeafRef<'_>>, Fault> {
        let (heap, media) = (&self.heap, self.heap.media());
        let mut link = self.root()?.top.load(media);
        let mut above = None;
        while let Target::Node(shape) = target(link) {
            prefetch_node(heap, link, shape);
            let node = Node::at(heap, link, shape)?;
            descend(&node, link, &mut above)?;
            link = node.slots[node.search(key)?].load(media);
        }
        self.leaf_of(link, key)
    }

    /// The leaf at the end of a key's way, if it is the key's.
    #[inline(always)]
    pub(super) fn leaf_of(&self, link: Link, key: &[u8]) -> Result<Option<LeafRef<'_>>, Fault> {
        match target(link) {
            Target::Leaf => {
                let leaf = LeafRef::at(&self.heap, link)?;
                Ok(same(leaf.key(), key).then_some(leaf))
            }
            Target::Null => Ok(None),
            _ => Err(damaged("link of a slot", link)),
        }
    }

    /// The way of a key, with all nodes on it.
    pub(super) fn walk(&self, key: &[u8]) -> Result<Path<'_>, Fault> {
        let (heap, media) = (&self.heap, self.heap.media());
        let root = self.root()?;
        let mut link = root.top.load(media);
        let mut steps = Vec::with_capacity(12);
        steps.push(Step {
            at: self.root,
            node: None,
            lock: &root.lock,
            slots: std::slice::from_ref(&root.top),
            index: 0,
            link,
        });
        let mut above = None;
        while let Target::Node(shape) = target(link) {
            prefetch_node(heap, link, shape);
            let node = Node::at(heap, link, shape)?;
            descend(&node, link, &mut above)?;
            let (at, index) = (link, node.search(key)?);
            link = node.slots[index].load(media);
            steps.push(Step {
                at,
                node: Some(node),
                lock: node.lock,
                slots: node.slots,
                index,
                link,
            });
        }
        if target(link) == Target::Unknown {
            return Err(damaged("link of a slot", link));
        }
        Ok(Path { steps })
    }

    /// A leaf below a link; `None` if the nodes on the way were emptied meanwhile.
    pub(super) fn any_leaf(&self, mut link: Link) -> Result<Option<LeafRef<'_>>, Fault> {
        let mut above = None;
        while let Some(node) = node_at(&self.heap, link)? {
            descend(&node, link, &mut above)?;
            let live = node.links(self.heap.media()).find(|link| !link.is_null());
            link = live.unwrap_or(Link::NULL);
        }
        match target(link) {
            Target::Leaf => LeafRef::at(&self.heap, link).map(Some),
            _ => Ok(None),
        }
    }
}
