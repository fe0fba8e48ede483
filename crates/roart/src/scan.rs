//! Range reads in both directions.
//!
//! A depth-first walk over an explicit stack (keys that are prefixes of each other make trees thousands of levels
//! deep). A short queue (`queue`) lies between the walk and the visitor: objects that enter it are prefetched, and the
//! leaves of an array once it has arrived, so that the misses of a scan overlap. The walk stops at an inner node until
//! the queue has reached it. The leaves of several arrays are read together (`leaves`), and sorted array by array
//! (`sort`, §3.2).
//!
//! An inline leaf array (`inline`) is read line by line when it leaves the queue; the next ones in the queue have been
//! prefetched.
//!
//! Along a bound the walk compares strings and omits what lies outside. Below a node that it cannot place so, it
//! compares each key with the bound; everywhere else, none.

mod bounds;
mod leaves;
mod queue;
mod sort;

use crate::inline::{InlineRef, Scratch};
use crate::locate::{UNFIT_PREFIX, check_level};
use crate::node::Node;
use crate::prefix::Prefix;
use crate::{Roart, Variant};
use art::bounds::{Edge, Edges, ScanBounds, key_of};
use art::{InnerRef, Kind, Tagged, Way, damaged};
use bounds::{narrow, words_between};
use heap::Guard;
use index::{Direction, Visit};
use leaves::Leaves;
use pmem::{Fault, Link, Media, PSlot};
use queue::{Item, Queue};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};

/// A node on the walk's path, and the part of it still to be visited.
struct Frame<'g> {
    /// The slots of an N256. Other nodes' links are gathered and sorted when the walk reaches them.
    slots: Option<&'g [PSlot; 256]>,
    ends: Link,
    level: u32,
    /// Positions: in an N256, going forward, the key that ends there and then the ascending bytes; in reverse, the
    /// descending bytes and then that key. In other nodes, places in `Walk::gathered`.
    start: usize,
    next: usize,
    end: usize,
    edges: Edges,
    /// The first byte of all keys; not used in the root.
    first: u8,
}

/// The state of one scan.
struct Walk<'a, 'g> {
    bounds: ScanBounds<'a>,
    direction: Direction,
    /// The ways of the lower and the upper bound, once needed.
    ways: [Option<Way>; 2],
    path: Vec<Frame<'g>>,
    /// Links of the nodes on the path that are not N256s, those of the deepest last.
    gathered: Vec<Link>,
    queue: Queue,
}

impl<M: Media, V: Variant> Roart<M, V> {
    /// Visits the keys between the bounds in order.
    pub(crate) fn scan_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        let bounds = ScanBounds { lower, upper };
        if bounds.cross() {
            return Ok(());
        }
        let root = Item {
            link: self.root,
            depth: 0,
            edges: bounds.edges(),
            first: 0,
            leaves: 0,
        };
        let mut walk = Walk {
            bounds,
            direction,
            ways: [None, None],
            path: Vec::with_capacity(8),
            gathered: Vec::new(),
            queue: Queue::of(root),
        };
        let mut scratch = Scratch::new(guard);
        self.visit_all(&mut walk, None, &mut scratch, visit)
    }

    /// Visits the rest of a walk.
    fn visit_all<'g>(
        &'g self,
        walk: &mut Walk<'_, 'g>,
        mut leaves: Option<&mut Leaves<'g>>,
        scratch: &mut Scratch<'g>,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        let direction = walk.direction;
        loop {
            if walk.queue.wants_more() {
                self.fill(walk);
                if walk.queue.is_empty() {
                    return Ok(());
                }
            }
            let item = *walk.queue.item(walk.queue.taken);
            let flow = match item.link.kind() {
                Kind::Leaf | Kind::Array => {
                    let Some(leaves) = leaves.as_deref_mut() else {
                        // The buffer is large: it is made in its final place, and only if there are leaves.
                        return self.visit_all(walk, Some(&mut Leaves::new()), scratch, visit);
                    };
                    self.stage(&mut walk.queue, leaves)?;
                    self.visit_run(&mut walk.queue, leaves, &walk.bounds, direction, visit)?
                }
                Kind::Inline if V::INLINE => {
                    walk.queue.pass();
                    let array = InlineRef::at(&self.heap, item.link)?;
                    let words = words_between(&walk.bounds, item.edges);
                    let path = (item.depth as usize, item.first);
                    walk.queue.pairs -= array.shape.capacity();
                    array.scan(words, path, direction, scratch, visit, self.heap.media())
                }
                _ => {
                    walk.queue.pass();
                    walk.queue.waits = false;
                    self.enter(item, walk)?;
                    ControlFlow::Continue(())
                }
            };
            if flow.is_break() {
                return Ok(());
            }
        }
    }

    /// Pushes the node at `item` onto the path, unless it lies outside the bounds.
    fn enter<'g>(&'g self, mut item: Item, walk: &mut Walk<'_, 'g>) -> Result<(), Fault> {
        let media = self.heap.media();
        let node = Node::at(&self.heap, item.link)?;
        let level = self.level_after(item.link, &node, item.depth as usize);
        // Levels ascend on every path down, so no damage makes the walk endless.
        check_level(&node, item.link, level, media)?;
        if !self.narrow_to_node(&mut item, &node, level, walk)? {
            return Ok(());
        }
        let Edges { low, high } = item.edges;
        let (lower, upper) = (key_of(walk.bounds.lower), key_of(walk.bounds.upper));
        // A key that ends here lies below a lower bound that goes on.
        let with_ends = low != Edge::Along || lower.len() <= level;
        let first = if low == Edge::Along {
            lower.get(level).map_or(0, |&byte| usize::from(byte))
        } else {
            0
        };
        // One past the last byte; zero if the upper bound ends here.
        let last = if high == Edge::Along {
            upper.get(level).map_or(0, |&byte| usize::from(byte) + 1)
        } else {
            256
        };
        let ends = if with_ends {
            node.header().ends.load(media)
        } else {
            Link::NULL
        };
        if !ends.is_null() && ends.kind() != Kind::Leaf {
            return Err(damaged("leaf of the key that ends at a node", ends));
        }
        let reverse = walk.direction == Direction::Reverse;
        let (slots, next, end);
        if let InnerRef::N256(node) = node.0 {
            slots = Some(node.slots());
            (next, end) = match reverse {
                false => (if with_ends { 0 } else { first + 1 }, last + 1),
                true => (256 - last, if with_ends { 257 } else { 256 - first }),
            };
        } else {
            slots = None;
            next = walk.gathered.len();
            let inside = |link: &Link| (first..last).contains(&usize::from(link.byte()));
            walk.gathered.extend(node.children(media).filter(inside));
            let children = &mut walk.gathered[next..];
            children.sort_unstable_by_key(|link| if reverse { 255 - link.byte() } else { link.byte() });
            // A duplicate byte: meanwhile its last key was removed and another inserted into another entry.
            let mut last = None;
            children.iter_mut().for_each(|link| {
                if last.replace(link.byte()) == Some(link.byte()) {
                    *link = Link::NULL;
                }
            });
            if !ends.is_null() {
                walk.gathered
                    .insert(if reverse { walk.gathered.len() } else { next }, ends);
            }
            end = walk.gathered.len();
        }
        walk.path.push(Frame {
            slots,
            ends,
            level: level as u32,
            start: next,
            next,
            end,
            edges: item.edges,
            first: item.first,
        });
        Ok(())
    }

    /// Compares the bytes that a node's links skip with the bounds; returns `false` if the node lies outside.
    fn narrow_to_node(
        &self,
        item: &mut Item,
        node: &Node<'_>,
        level: usize,
        walk: &mut Walk<'_, '_>,
    ) -> Result<bool, Fault> {
        if level == item.depth as usize {
            return Ok(true);
        }
        let Walk { bounds, ways, .. } = walk;
        let [low_way, high_way] = ways;
        let (edges, lower, upper) = (item.edges, key_of(bounds.lower), key_of(bounds.upper));
        let low = self.narrow(edges.low, (lower, low_way), item, node, level, Ordering::Less)?;
        let high = self.narrow(
            edges.high,
            (upper, high_way),
            item,
            node,
            level,
            Ordering::Greater,
        )?;
        let (Some(low), Some(high)) = (low, high) else {
            return Ok(false);
        };
        (item.edges.low, item.edges.high) = (low, high);
        Ok(true)
    }

    /// The position of the node of this level at `item`, relative to a bound; `outside` is the side of the bound that
    /// the scan omits. `None`: entirely outside.
    fn narrow(
        &self,
        edge: Edge,
        (bound, way): (&[u8], &mut Option<Way>),
        item: &Item,
        node: &Node<'_>,
        level: usize,
        outside: Ordering,
    ) -> Result<Option<Edge>, Fault> {
        let depth = item.depth as usize;
        if edge != Edge::Along {
            return Ok(Some(edge));
        }
        if level - depth <= Prefix::MAX {
            let prefix = node.header().prefix(self.heap.media());
            let string = prefix.last(level - depth).ok_or(UNFIT_PREFIX)?;
            return Ok(narrow(bound, depth, string, outside));
        }
        if !way.as_mut().is_some_and(|way| way.leads_to(item.link, level)) {
            *way = self.way_along((item.link, depth), bound)?;
        }
        Ok(match way {
            Some(way) => Edge::at_node(way, level, outside),
            // Emptied meanwhile: the rest is compared key by key.
            None => Some(Edge::Unknown),
        })
    }
}

impl Walk<'_, '_> {
    /// Pops the deepest node off the path.
    fn leave(&mut self) {
        if let Some(frame) = self.path.pop()
            && frame.slots.is_none()
        {
            self.gathered.truncate(frame.start);
        }
    }
}
