//! Range reads in both directions.
//!
//! A depth-first walk over an explicit stack. It begins beside the branch where the bound's way parts from the
//! present keys. A short queue lies between the walk and the visitor: its entries are prefetched, so that the misses
//! of a scan overlap.
//!
//! Nodes on the stack may be replaced meanwhile. Their slots then lead to objects within the branches that never
//! change, so keys come in order and none twice; and a key that is present throughout is below an object that was
//! there when its slot was read, or when the node was replaced.

use super::Hot;
use super::layout::{Target, target};
use super::node::node_at;
use super::plan::Plan;
use super::position::{Position, bit, first_difference};
use super::walk::{Path, descend, prefetch_node};
use art::bounds::{ScanBounds, key_of};
use art::{LeafRef, address, damaged, prefetch};
use index::{Direction, Visit};
use pmem::{Fault, Link, Media, PSlot};
use std::collections::VecDeque;
use std::ops::{Bound, Range};

/// Number of leaves in the queue: about as many cache misses as a core can overlap.
const AHEAD: usize = 16;

/// A node on the walk's path: its slots, and those still to be visited.
struct Frame<'g> {
    slots: &'g [PSlot],
    left: Range<usize>,
    /// Its first branching bit; `None`: the root.
    first: Option<Position>,
}

/// The state of one scan.
struct Walk<'g> {
    direction: Direction,
    path: Vec<Frame<'g>>,
    queue: VecDeque<Link>,
}

impl<'g> Walk<'g> {
    /// The next slot of the deepest node.
    fn next(&mut self) -> Option<&'g PSlot> {
        while let Some(frame) = self.path.last_mut() {
            let next = match self.direction {
                Direction::Forward => frame.left.next(),
                Direction::Reverse => frame.left.next_back(),
            };
            if let Some(slot) = next.and_then(|index| frame.slots.get(index)) {
                return Some(slot);
            }
            self.path.pop();
        }
        None
    }

    /// The slot that [`next`](Walk::next) will return, if the deepest node has one left.
    fn peek(&self) -> Option<&'g PSlot> {
        let frame = self.path.last()?;
        let index = match self.direction {
            Direction::Forward => Some(frame.left.start),
            Direction::Reverse => frame.left.end.checked_sub(1),
        };
        index
            .filter(|index| frame.left.contains(index))
            .and_then(|index| frame.slots.get(index))
    }
}

impl<M: Media> Hot<M> {
    /// Visits the keys between the bounds in order.
    pub(super) fn scan_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        let bounds = ScanBounds { lower, upper };
        if bounds.cross() {
            return Ok(());
        }
        let (near, far) = match direction {
            Direction::Forward => (lower, upper),
            Direction::Reverse => (upper, lower),
        };
        let mut walk = Walk {
            direction,
            path: Vec::with_capacity(12),
            queue: VecDeque::with_capacity(AHEAD),
        };
        self.seek(near, &mut walk)?;
        // Keys inserted meanwhile beside the bound's way may lie before the bound; once a key is inside, all later
        // ones are.
        let (mut entered, bounded) = (near == Bound::Unbounded, far != Bound::Unbounded);
        loop {
            self.fill(&mut walk)?;
            let Some(link) = walk.queue.pop_front() else {
                return Ok(());
            };
            let leaf = LeafRef::at(&self.heap, link)?;
            let key = leaf.key();
            if !entered {
                entered = is_inside(key, near, direction);
                if !entered {
                    continue;
                }
            }
            if bounded && !is_inside(key, far, opposite(direction)) {
                return Ok(());
            }
            if visit(key, leaf.value(&self.heap)).is_break() {
                return Ok(());
            }
        }
    }

    /// Adds leaves to the queue until it is full or none is left, and prefetches them.
    fn fill<'g>(&'g self, walk: &mut Walk<'g>) -> Result<(), Fault> {
        let (heap, media) = (&self.heap, self.heap.media());
        while walk.queue.len() < AHEAD {
            let Some(slot) = walk.next() else { return Ok(()) };
            let link = slot.load(media);
            match target(link) {
                Target::Leaf => {
                    prefetch(address(heap, link));
                    walk.queue.push_back(link);
                }
                Target::Node(_) => {
                    // Prefetches the adjacent node while this one is visited.
                    if let Some(beside) = walk.peek()
                        && let beside = beside.peek(media)
                        && let Target::Node(shape) = target(beside)
                    {
                        prefetch_node(heap, beside, shape);
                    }
                    self.enter(link, walk)?;
                }
                Target::Null => {}
                Target::Unknown => return Err(damaged("link of a slot", link)),
            }
        }
        Ok(())
    }

    /// Pushes a node onto the path, with all of it to be visited.
    fn enter<'g>(&'g self, link: Link, walk: &mut Walk<'g>) -> Result<(), Fault> {
        let Some(node) = node_at(&self.heap, link)? else {
            return Ok(());
        };
        let mut above = walk.path.last().and_then(|frame| frame.first);
        descend(&node, link, &mut above)?;
        walk.path.push(Frame {
            slots: node.slots,
            left: 0..node.slots.len(),
            first: above,
        });
        Ok(())
    }

    /// Pushes the way of the bound onto the path, and for each node the part behind the bound.
    fn seek<'g>(&'g self, near: Bound<&[u8]>, walk: &mut Walk<'g>) -> Result<(), Fault> {
        let key = key_of(near);
        let path = self.walk(key)?;
        let mut steps = path.steps;
        let bounded = near != Bound::Unbounded;
        // A null slot leads to no key to compare with, so the nearest live entry is used. If there is none, the scan
        // covers the whole tree, and compares each key with the bound.
        let mut end = steps[steps.len() - 1].link;
        let last = steps.len() - 1;
        if let (true, Some(node)) = (end.is_null(), steps[last].node)
            && let Some((index, link)) = node.nearest_live(self.heap.media(), steps[last].index)
        {
            (steps[last].index, end) = (index, link);
        }
        let leaf = if bounded { self.any_leaf(end)? } else { None };
        let Some(leaf) = leaf else {
            walk.path.push(Frame {
                slots: steps[0].slots,
                left: 0..1,
                first: None,
            });
            return Ok(());
        };
        let position = first_difference(leaf.key(), key);
        let path = Path { steps };
        let depth = position.map_or(path.last(), |position| path.deepest_before(position));
        for (i, step) in path.steps[..=depth].iter().enumerate() {
            let all = step.slots.len();
            let (mut from, mut to) = (step.index + 1, step.index);
            if i == depth {
                (from, to) = match position {
                    // The key's leaf is there.
                    None => (step.index, step.index + 1),
                    Some(position) => {
                        let affected = match step.node {
                            Some(node) => Plan::of_ways(&node)?.affected(step.index, position),
                            None => 0..1,
                        };
                        // The whole branch lies behind the key if the key's bit there is zero, and otherwise before it.
                        match bit(key, position) {
                            false => (affected.start, affected.start),
                            true => (affected.end, affected.end),
                        }
                    }
                };
            }
            let left = match walk.direction {
                Direction::Forward => from..all,
                Direction::Reverse => 0..to,
            };
            walk.path.push(Frame {
                slots: step.slots,
                left,
                first: step.node.map(|node| node.first()),
            });
        }
        Ok(())
    }
}

/// Whether a key lies on the inner side of a bound at which a scan in this direction begins.
fn is_inside(key: &[u8], near: Bound<&[u8]>, direction: Direction) -> bool {
    match (near, direction) {
        (Bound::Unbounded, _) => true,
        (Bound::Included(bound), Direction::Forward) => key >= bound,
        (Bound::Excluded(bound), Direction::Forward) => key > bound,
        (Bound::Included(bound), Direction::Reverse) => key <= bound,
        (Bound::Excluded(bound), Direction::Reverse) => key < bound,
    }
}

fn opposite(direction: Direction) -> Direction {
    match direction {
        Direction::Forward => Direction::Reverse,
        Direction::Reverse => Direction::Forward,
    }
}
