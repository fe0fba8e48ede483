//! Range reads in both directions.
//!
//! A depth-first walk over an explicit stack (keys that are prefixes of each other make trees thousands of levels
//! deep). A short queue lies between the walk and the visitor: its entries are prefetched, so that the misses of a
//! scan overlap. The walk stops at an inner node until the queue has reached it.

use crate::bounds::{Edge, Edges, ScanBounds, key_of};
use crate::{Design, Digit, Kind, LeafRef, Node, Radix, Tagged, Way, damaged, prefetch};
use index::{Direction, Visit};
use pmem::{Fault, Link, Media, Offset};
use std::cmp::{Ordering, Reverse};
use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow, Range};

/// Links in the queue: about as many as a core overlaps misses.
const AHEAD: usize = 24;
/// Number of links to add at a time.
const REFILL: usize = 8;

/// A link to visit.
#[derive(Clone, Copy)]
struct Item {
    link: Link,
    /// Number of digits that lead to it.
    depth: u32,
    edges: Edges,
}

/// A node on the walk's path, and the part of it still to be visited.
struct Frame<N> {
    node: N,
    level: u32,
    edges: Edges,
    /// Digits whose children have not been gathered yet.
    digits: Range<usize>,
    /// The key that ends there, if it has not been gathered yet.
    ends: Link,
    /// Start of the node's items in `Walk::gathered`.
    start: usize,
    next: usize,
}

/// The state of one scan.
struct Walk<'a, N> {
    bounds: ScanBounds<'a>,
    direction: Direction,
    /// The ways of the lower and the upper bound, once needed.
    ways: [Option<Way>; 2],
    path: Vec<Frame<N>>,
    /// Items gathered from the nodes on the path, those of the deepest node last.
    gathered: Vec<Item>,
    queue: VecDeque<Item>,
    /// Whether the last item in the queue is an inner node.
    waits: bool,
}

impl<D: Design, M: Media> Radix<D, M> {
    /// Visits the keys between the bounds in order.
    pub(crate) fn scan_range<'g>(
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
        let root = Item {
            link: self.top()?,
            depth: 0,
            edges: bounds.edges(),
        };
        let mut walk = Walk {
            bounds,
            direction,
            ways: [None, None],
            path: Vec::with_capacity(16),
            gathered: Vec::new(),
            queue: VecDeque::with_capacity(AHEAD),
            waits: root.link.is_inner(),
        };
        if !root.link.is_null() {
            walk.queue.push_back(root);
        }
        loop {
            if walk.queue.len() <= AHEAD - REFILL {
                self.fill(&mut walk);
            }
            let Some(item) = walk.queue.pop_front() else {
                return Ok(());
            };
            match item.link.kind() {
                Kind::Leaf => {
                    let leaf = LeafRef::at(self.access(), item.link)?;
                    let inside = item.edges.are_free() || walk.bounds.hold(leaf.key(), item.edges);
                    if inside && visit(leaf.key(), leaf.value(self.access())).is_break() {
                        return Ok(());
                    }
                }
                kind if kind.is_inner() => {
                    walk.waits = false;
                    self.enter(item, &mut walk)?;
                }
                _ => return Err(damaged("link's kind", item.link)),
            }
        }
    }

    /// Adds links to the queue until it is full, an inner node must be entered first, or nothing is left; prefetches
    /// their objects.
    fn fill<'g>(&'g self, walk: &mut Walk<'_, D::Node<'g>>) {
        let base = self.access().pool().base().as_ptr().cast_const();
        while !walk.waits && walk.queue.len() < AHEAD {
            let Some(frame) = walk.path.last_mut() else { return };
            let Some(&item) = walk.gathered.get(frame.next) else {
                if self.gather(walk).is_break() {
                    walk.path.pop();
                }
                continue;
            };
            frame.next += 1;
            prefetch(base.wrapping_add((item.link.bits() & Offset::MASK) as usize));
            walk.waits = item.link.kind() != Kind::Leaf;
            walk.queue.push_back(item);
        }
    }

    /// Replaces the links gathered from the deepest node by the next ones there; breaks if there are none.
    fn gather<'g>(&'g self, walk: &mut Walk<'_, D::Node<'g>>) -> ControlFlow<()> {
        let Walk {
            bounds,
            direction,
            path,
            gathered,
            ..
        } = walk;
        let Some(frame) = path.last_mut() else {
            return ControlFlow::Break(());
        };
        let (start, level, edges) = (frame.start, frame.level as usize, frame.edges);
        gathered.truncate(start);
        frame.next = start;
        let mut ends = std::mem::replace(&mut frame.ends, Link::NULL);
        let mut put_ends = |gathered: &mut Vec<Item>| {
            if !ends.is_null() {
                gathered.push(Item {
                    link: ends,
                    depth: level as u32,
                    edges,
                });
            }
            ends = Link::NULL;
        };
        if *direction == Direction::Forward {
            put_ends(gathered);
        }
        let mut window = Vec::new();
        while gathered.len() == start && !frame.digits.is_empty() {
            let Range {
                start: low,
                end: high,
            } = frame.digits;
            let stride = frame.node.stride();
            let digits = match direction {
                Direction::Forward => low..high.min(low + stride),
                Direction::Reverse => low.max(high.saturating_sub(stride))..high,
            };
            frame.digits = match direction {
                Direction::Forward => digits.end..high,
                Direction::Reverse => low..digits.start,
            };
            frame
                .node
                .children(self.access(), digits, |digit, link| window.push((digit, link)));
            match direction {
                Direction::Forward => window.sort_unstable_by_key(|&(digit, _)| digit),
                Direction::Reverse => window.sort_unstable_by_key(|&(digit, _)| Reverse(digit)),
            }
            // A duplicate digit: meanwhile its last key was removed and another inserted into another entry.
            window.dedup_by_key(|&mut (digit, _)| digit);
            gathered.extend(window.drain(..).map(|(digit, link)| Item {
                link,
                depth: level as u32 + 1,
                edges: edges_of::<D>(bounds, edges, level, digit),
            }));
        }
        if *direction == Direction::Reverse && frame.digits.is_empty() {
            put_ends(gathered);
        }
        frame.ends = ends;
        match gathered.len() == start {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }

    /// Pushes the node at `item` onto the path, unless it lies outside the bounds.
    fn enter<'g>(&'g self, mut item: Item, walk: &mut Walk<'_, D::Node<'g>>) -> Result<(), Fault> {
        let heap = self.access();
        let node = D::Node::at(heap, item.link)?;
        let level = node.own_level(heap, item.link, item.depth as usize)?;
        if !self.narrow_to_node(&mut item, level, walk)? {
            return Ok(());
        }
        let Edges { low, high } = item.edges;
        let (lower, upper) = (key_of(walk.bounds.lower), key_of(walk.bounds.upper));
        // A key that ends here lies below a lower bound that goes on.
        let with_ends = low != Edge::Along || D::Digit::count(lower) <= level;
        let first = match D::Digit::at(lower, level) {
            Some(digit) if low == Edge::Along => usize::from(digit),
            _ => 0,
        };
        // One past the last digit; zero if the upper bound ends here.
        let last = match D::Digit::at(upper, level) {
            _ if high != Edge::Along => D::Digit::RADIX,
            Some(digit) => usize::from(digit) + 1,
            None => 0,
        };
        let ends = if with_ends { node.ends(heap) } else { Link::NULL };
        if !ends.is_null() && ends.kind() != Kind::Leaf {
            return Err(damaged("leaf of the key that ends at a node", ends));
        }
        let start = walk.gathered.len();
        walk.path.push(Frame {
            node,
            level: level as u32,
            edges: item.edges,
            digits: first..last.max(first),
            ends,
            start,
            next: start,
        });
        Ok(())
    }

    /// Compares the digits that lead to a node's level with the bounds; returns `false` if the node lies outside.
    fn narrow_to_node<N>(
        &self,
        item: &mut Item,
        level: usize,
        walk: &mut Walk<'_, N>,
    ) -> Result<bool, Fault> {
        if level == item.depth as usize {
            return Ok(true);
        }
        let Walk { bounds, ways, .. } = walk;
        let [low_way, high_way] = ways;
        let at = (item.link, item.depth as usize, level);
        let low = self.narrow(item.edges.low, (bounds.lower, low_way), at, Ordering::Less)?;
        let high = self.narrow(item.edges.high, (bounds.upper, high_way), at, Ordering::Greater)?;
        let (Some(low), Some(high)) = (low, high) else {
            return Ok(false);
        };
        (item.edges.low, item.edges.high) = (low, high);
        Ok(true)
    }

    /// The position, relative to a bound, of the node at a link, reached after some digits and of some level;
    /// `outside` is the side of the bound that the scan omits. `None`: entirely outside.
    fn narrow(
        &self,
        edge: Edge,
        (bound, way): (Bound<&[u8]>, &mut Option<Way>),
        (link, depth, level): (Link, usize, usize),
        outside: Ordering,
    ) -> Result<Option<Edge>, Fault> {
        if edge != Edge::Along {
            return Ok(Some(edge));
        }
        if !way.as_mut().is_some_and(|way| way.leads_to(link, level)) {
            *way = Way::along::<D, M>(self.access(), (link, depth), key_of(bound))?;
        }
        Ok(match way {
            Some(way) => Edge::at_node(way, level, outside),
            // Emptied meanwhile: the remaining keys are compared one by one.
            None => Some(Edge::Unknown),
        })
    }
}

/// The edges of the child for `digit` of a node at `level`.
#[inline(always)]
fn edges_of<D: Design>(bounds: &ScanBounds<'_>, edges: Edges, level: usize, digit: u8) -> Edges {
    if edges.are_free() {
        return edges;
    }
    let narrow = |edge, bound| match edge {
        Edge::Along if D::Digit::at(key_of(bound), level) != Some(digit) => Edge::Free,
        edge => edge,
    };
    Edges {
        low: narrow(edges.low, bounds.lower),
        high: narrow(edges.high, bounds.upper),
    }
}
