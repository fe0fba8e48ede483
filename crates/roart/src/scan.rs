//! Range reads in both directions.
//!
//! A depth-first walk over an explicit stack (keys that are prefixes of each other make trees thousands of
//! levels deep). Between the walk and the visitor stands a short queue: what enters it is prefetched, and the
//! leaves of an array when it has come half way, so that the misses of a scan overlap. The walk stops at an
//! inner node until the queue has come to it. The keys of a leaf array are sorted when it is met (§3.2).
//!
//! An inline leaf array (`inline`) is read line by line when the walk comes to it; of those in the queue the
//! next have been asked for.
//!
//! Along a bound the walk compares strings and leaves out what lies outside; everywhere else it compares
//! nothing.

mod bounds;
mod leaves;

use crate::array::{ArrayRef, array_size, capacity_of};
use crate::inline::shape::Shape;
use crate::inline::{InlineRef, LINES_AHEAD, Scratch};
use crate::locate::{UNFIT_PREFIX, check_level};
use crate::node::Node;
use crate::prefix::Prefix;
use crate::{Roart, Variant};
use art::bounds::{Bounds, Edge, Edges, key_of};
use art::{InnerRef, Kind, LeafRef, Tagged, damaged, prefetch, prefetch_range};
use bounds::{edges_of, narrow, words_between};
use heap::Guard;
use index::{Direction, Visit};
use leaves::Sorted;
use pmem::{Fault, LINE, Link, Media, Offset, PSlot};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};

/// Links in the queue: more than a core overlaps misses, since leaf arrays take two steps.
const AHEAD: usize = 32;
/// How many are put at a time.
const REFILL: usize = 8;
/// Entries of leaf arrays whose leaves have been asked for beside which no more are.
const ENTRIES_AHEAD: usize = 64;
/// Pairs in the queue beside which no more is put: one large inline leaf array is read while the next is on
/// its way.
const PAIRS_AHEAD: usize = 256;

/// A link to visit.
#[derive(Clone, Copy)]
struct Item {
    link: Link,
    /// Bytes that lead to it.
    depth: u32,
    edges: Edges,
    /// The first of them.
    first: u8,
}

/// A node on the walk's path: what of it is still to come.
struct Frame<'g> {
    /// The slots of an N256. Other nodes' links are gathered and sorted when the walk comes to them.
    slots: Option<&'g [PSlot; 256]>,
    ends: Link,
    level: u32,
    /// Positions: in an N256 the key that ends there and then the bytes upward, or the bytes downward and
    /// then that key; in other nodes places in `Walk::gathered`.
    start: usize,
    next: usize,
    end: usize,
    edges: Edges,
    /// The first byte of all keys, but in the root.
    first: u8,
}

/// The state of one scan.
struct Walk<'a, 'g> {
    bounds: Bounds<'a>,
    direction: Direction,
    path: Vec<Frame<'g>>,
    /// Links of the nodes on the path that are not N256s, those of the deepest last.
    gathered: Vec<Link>,
    queue: [Item; AHEAD],
    /// Items taken out of the queue and put into it, ever.
    taken: usize,
    put: usize,
    /// Items whose leaf arrays have had their leaves asked for, ever, and entries of those not yet taken.
    staged: usize,
    entries: usize,
    /// Pairs for which the inline leaf arrays in the queue have room.
    pairs: usize,
    /// The last item put is an inner node.
    waits: bool,
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
        let bounds = Bounds { lower, upper };
        if bounds.cross() {
            return Ok(());
        }
        let root = Item {
            link: self.root,
            depth: 0,
            edges: bounds.edges(),
            first: 0,
        };
        let mut walk = Walk {
            bounds,
            direction,
            path: Vec::with_capacity(8),
            gathered: Vec::new(),
            queue: [root; AHEAD],
            taken: 0,
            put: 1,
            staged: 1,
            entries: 0,
            pairs: 0,
            waits: true,
        };
        let mut sorted = Sorted::default();
        let mut scratch = Scratch::new(guard);
        loop {
            if walk.put - walk.taken <= AHEAD - REFILL && walk.pairs < PAIRS_AHEAD {
                self.fill(&mut walk);
                if walk.taken == walk.put {
                    return Ok(());
                }
            }
            self.stage(&mut walk);
            let item = walk.queue[walk.taken % AHEAD];
            walk.taken += 1;
            if walk.staged < walk.taken {
                walk.staged = walk.taken;
            } else if item.link.kind() == Kind::Array {
                walk.entries -= capacity_of(item.link);
            }
            let flow = match item.link.kind() {
                Kind::Leaf => {
                    let leaf = LeafRef::at(&self.heap, item.link)?;
                    self.visit_leaf(&leaf, item.edges, &walk.bounds, visit)
                }
                Kind::Array => self.visit_array(&item, &walk.bounds, direction, &mut sorted, visit)?,
                Kind::Inline if V::INLINE => {
                    let array = InlineRef::at(&self.heap, item.link)?;
                    let words = words_between(&walk.bounds, item.edges);
                    let path = (item.depth as usize, item.first);
                    walk.pairs -= array.shape.capacity();
                    array.scan(words, path, direction, &mut scratch, visit, self.heap.media())
                }
                _ => {
                    walk.waits = false;
                    self.enter(item, &mut walk)?;
                    ControlFlow::Continue(())
                }
            };
            if flow.is_break() {
                return Ok(());
            }
        }
    }

    /// Puts links into the queue until it is full, or an inner node must be entered first, or nothing is
    /// left; asks for what the new ones lead to.
    #[inline(always)]
    fn fill(&self, walk: &mut Walk<'_, '_>) {
        let media = self.heap.media();
        let base = self.heap.pool().base().as_ptr().cast_const();
        while !walk.waits && walk.put - walk.taken < AHEAD && walk.pairs < PAIRS_AHEAD {
            let Some(frame) = walk.path.last_mut() else { break };
            let Frame {
                ends,
                level,
                end,
                edges,
                first,
                ..
            } = *frame;
            let (limit, mut put, mut next) = (walk.taken + AHEAD, walk.put, frame.next);
            while next < end && put < limit {
                let position = next;
                next += 1;
                let link = match (frame.slots, walk.direction) {
                    (Some(slots), Direction::Forward) if position > 0 => slots[position - 1].load(media),
                    (Some(slots), Direction::Reverse) if position < 256 => slots[255 - position].load(media),
                    (Some(_), _) => ends,
                    (None, _) => walk.gathered[position],
                };
                if link.is_null() {
                    continue;
                }
                let start = base.wrapping_add((link.bits() & Offset::MASK) as usize);
                let item = match link == ends {
                    true => Item {
                        link,
                        depth: level,
                        edges,
                        first,
                    },
                    false => {
                        let edges = edges_of(&walk.bounds, edges, level as usize, link.byte());
                        Item {
                            link,
                            depth: level + 1,
                            edges,
                            first: if level == 0 { link.byte() } else { first },
                        }
                    }
                };
                walk.queue[put % AHEAD] = item;
                put += 1;
                if link.kind() == Kind::Inline {
                    walk.pairs += pairs_of(link);
                    if let Ok(shape) = Shape::of(link) {
                        let first = shape.first_line(words_between(&walk.bounds, item.edges).least);
                        let lines = (shape.lines() - first).min(LINES_AHEAD);
                        prefetch_range(start.wrapping_add(first * LINE), lines * LINE);
                    }
                    if walk.pairs >= PAIRS_AHEAD {
                        break;
                    }
                    continue;
                }
                prefetch(start);
                if !link.is_plain(Kind::Leaf) {
                    if link.kind() != Kind::Array {
                        walk.waits = true;
                        break;
                    }
                    // Whether there is a second line cannot be foreseen; more are rare.
                    let size = array_size(link);
                    prefetch(start.wrapping_add(size.saturating_sub(1).min(LINE)));
                    if size > 2 * LINE {
                        prefetch_range(start.wrapping_add(2 * LINE), size - 2 * LINE);
                    }
                }
            }
            (walk.put, frame.next) = (put, next);
            if next >= end && !walk.waits {
                walk.leave();
            }
        }
    }

    /// Asks for the leaves of arrays in the queue. The newest arrays are on their way still.
    #[inline(always)]
    fn stage(&self, walk: &mut Walk<'_, '_>) {
        let arrived = walk
            .put
            .saturating_sub(REFILL)
            .max((walk.taken + 1).min(walk.put));
        while walk.staged < arrived && walk.entries < ENTRIES_AHEAD {
            let link = walk.queue[walk.staged % AHEAD].link;
            walk.staged += 1;
            if link.kind() == Kind::Array {
                walk.entries += capacity_of(link);
                self.prefetch_array(link);
            }
        }
    }

    fn prefetch_array(&self, link: Link) {
        if let Ok(array) = ArrayRef::at(&self.heap, link) {
            array.prefetch_leaves(&self.heap);
        }
    }

    /// Puts the node at `item` on the path, unless it lies outside the bounds.
    fn enter<'g>(&'g self, mut item: Item, walk: &mut Walk<'_, 'g>) -> Result<(), Fault> {
        let media = self.heap.media();
        let node = Node::at(&self.heap, item.link)?;
        let level = self.level_after(item.link, &node, item.depth as usize);
        // Levels ascend on every way down, so no damage makes the walk endless.
        check_level(&node, item.link, level, media)?;
        if !self.narrow_to_node(&mut item, &node, level, &walk.bounds)? {
            return Ok(());
        }
        let Edges { low, high } = item.edges;
        let (lower, upper) = (key_of(walk.bounds.lower), key_of(walk.bounds.upper));
        // A key that ends here is below a lower bound that goes on.
        let with_ends = low != Edge::Along || lower.len() <= level;
        let first = if low == Edge::Along {
            lower.get(level).map_or(0, |&byte| usize::from(byte))
        } else {
            0
        };
        // One past the last byte; none, if the upper bound ends here.
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
            // A byte twice: its last key was removed and another inserted, into another entry, meanwhile.
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

    /// Compares the bytes that a node's links skip with the bounds; `false` if the node lies outside.
    fn narrow_to_node(
        &self,
        item: &mut Item,
        node: &Node<'_>,
        level: usize,
        bounds: &Bounds<'_>,
    ) -> Result<bool, Fault> {
        let depth = item.depth as usize;
        let skipped = level - depth;
        if skipped == 0 || (item.edges.low != Edge::Along && item.edges.high != Edge::Along) {
            return Ok(true);
        }
        let prefix = node.header().prefix(self.heap.media());
        let leaf;
        let string = if skipped <= Prefix::MAX {
            prefix.last(skipped).ok_or(UNFIT_PREFIX)?
        } else {
            leaf = self.any_leaf(*node)?;
            match leaf.as_ref().and_then(|leaf| leaf.key().get(depth..level)) {
                Some(string) => string,
                None => {
                    // Emptied meanwhile, or damaged: what is left is compared key by key.
                    item.edges = item.edges.unknown();
                    return Ok(true);
                }
            }
        };
        let low = narrow(
            item.edges.low,
            key_of(bounds.lower),
            depth,
            string,
            Ordering::Less,
        );
        let high = narrow(
            item.edges.high,
            key_of(bounds.upper),
            depth,
            string,
            Ordering::Greater,
        );
        match (low, high) {
            (Some(low), Some(high)) => {
                (item.edges.low, item.edges.high) = (low, high);
                Ok(true)
            }
            _ => Ok(false),
        }
    }
}

/// Pairs for which the inline leaf array has room that a link leads to.
#[inline(always)]
fn pairs_of(link: Link) -> usize {
    Shape::of(link).map_or(0, Shape::capacity)
}

impl Walk<'_, '_> {
    /// Takes the deepest node off the path.
    fn leave(&mut self) {
        if let Some(frame) = self.path.pop()
            && frame.slots.is_none()
        {
            self.gathered.truncate(frame.start);
        }
    }
}
