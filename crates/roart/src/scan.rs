//! Range reads in both directions.
//!
//! A depth-first walk over an explicit stack (keys that are prefixes of each other make trees thousands of levels
//! deep). Between the walk and the visitor stands a short queue: what enters it is prefetched, and the leaves of an
//! array when it has come half way, so that the misses of a scan overlap. The walk stops at an inner node until the
//! queue has come to it. The keys of a leaf array are sorted when it is met (§3.2).
//!
//! An inline leaf array (`inline`) is read line by line when the walk comes to it; of those in the queue the next have
//! been asked for.
//!
//! Along a bound the walk compares strings and leaves out what lies outside; everywhere else it compares nothing.

use crate::array::{ArrayRef, array_size, capacity_of};
use crate::inline::shape::Shape;
use crate::inline::word::{KeyWord, LONGEST};
use crate::inline::{InlineRef, Kept, Through, Words};
use crate::locate::{UNFIT_PREFIX, check_level};
use crate::node::Node;
use crate::{Roart, Variant};
use art::{Kind, LeafRef, Prefix, Tagged, damaged, prefetch, prefetch_range};
use heap::Guard;
use index::{Direction, Visit};
use pmem::{Fault, LINE, Link, Media, Offset, PSlot};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};

/// Links in the queue: more than a core overlaps misses, since leaf arrays take two steps.
const AHEAD: usize = 32;
/// How many are put at a time.
const REFILL: usize = 8;
/// Lines of an inline leaf array that are asked for before the walk comes to it.
const LINES_STAGED: usize = 8;

/// How what is to be visited lies to a bound.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    /// Inside.
    Free,
    /// The bytes so far are those of the bound.
    Along,
    /// Not known: each key must be compared.
    Unknown,
}

/// How it lies to both.
#[derive(Clone, Copy)]
struct Edges {
    low: Edge,
    high: Edge,
}

impl Edges {
    #[inline(always)]
    fn are_free(self) -> bool {
        self.low == Edge::Free && self.high == Edge::Free
    }
}

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
    /// Positions: in an N256 the key that ends there and then the bytes upward, or the bytes downward and then that
    /// key; in other nodes places in `Walk::gathered`.
    start: usize,
    next: usize,
    end: usize,
    edges: Edges,
    /// The first byte of all keys, but in the root.
    first: u8,
}

struct Bounds<'a> {
    lower: Bound<&'a [u8]>,
    upper: Bound<&'a [u8]>,
}

fn key_of(bound: Bound<&[u8]>) -> &[u8] {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
    }
}

impl Bounds<'_> {
    fn hold(&self, key: &[u8], edges: Edges) -> bool {
        let Edges { low, high } = edges;
        let above = low == Edge::Free
            || match self.lower {
                Bound::Included(bound) => key >= bound,
                Bound::Excluded(bound) => key > bound,
                Bound::Unbounded => true,
            };
        let below = high == Edge::Free
            || match self.upper {
                Bound::Included(bound) => key <= bound,
                Bound::Excluded(bound) => key < bound,
                Bound::Unbounded => true,
            };
        above && below
    }

    /// What lies between the bounds in an inline leaf array, whose keys share their first byte with those of the bounds
    /// that matter.
    fn words(&self, edges: Edges) -> Words {
        let mut words = Words::ALL;
        if edges.low != Edge::Free
            && let Some((word, exact)) = word_of(key_of(self.lower))
        {
            let included = exact && matches!(self.lower, Bound::Included(_));
            words.least = word.bits() + u64::from(!included);
        }
        if edges.high != Edge::Free
            && let Some((word, exact)) = word_of(key_of(self.upper))
        {
            let excluded = exact && matches!(self.upper, Bound::Excluded(_));
            words.most = word.bits() - u64::from(excluded);
        }
        words
    }

    fn cross(&self) -> bool {
        match (self.lower, self.upper) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (lower, upper) => key_of(lower) >= key_of(upper),
        }
    }
}

/// The word of a bound, and whether it is the bound's whole key; a longer key lies behind all short ones that its start
/// does not.
fn word_of(key: &[u8]) -> Option<(KeyWord, bool)> {
    let word = KeyWord::of(&key[..key.len().min(LONGEST)])?;
    Some((word, key.len() <= LONGEST))
}

/// Where a subtree lies, given the bytes `string` that lead to it from byte `from` on; `outside` is the side of the
/// bound that the scan leaves out. `None`: outside as a whole.
fn narrow(edge: Edge, bound: &[u8], from: usize, string: &[u8], outside: Ordering) -> Option<Edge> {
    if edge != Edge::Along {
        return Some(edge);
    }
    let rest = bound.get(from..).unwrap_or_default();
    if rest.starts_with(string) {
        return Some(Edge::Along);
    }
    if string.cmp(rest) == outside {
        None
    } else {
        Some(Edge::Free)
    }
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
        let edge = |bound| {
            if matches!(bound, Bound::Unbounded) {
                Edge::Free
            } else {
                Edge::Along
            }
        };
        let root = Item {
            link: self.root,
            depth: 0,
            edges: Edges {
                low: edge(lower),
                high: edge(upper),
            },
            first: 0,
        };
        let mut walk = Walk {
            bounds,
            direction,
            path: Vec::with_capacity(16),
            gathered: Vec::new(),
            queue: [root; AHEAD],
            taken: 0,
            put: 1,
            staged: 1,
            entries: 0,
            waits: true,
        };
        let mut sorted = Vec::new();
        let (mut kept, mut gathered) = (Kept::new(guard), Vec::new());
        loop {
            if walk.put - walk.taken <= AHEAD - REFILL {
                self.fill(&mut walk);
                if walk.taken == walk.put {
                    return Ok(());
                }
            }
            let item = walk.queue[walk.taken % AHEAD];
            walk.taken += 1;
            if walk.staged < walk.taken {
                walk.staged = walk.taken;
            } else {
                walk.entries -= entries_of(item.link);
            }
            let flow = match item.link.kind() {
                Kind::Leaf => {
                    let leaf = LeafRef::at(&self.heap, item.link)?;
                    self.visit_leaf(&leaf, item.edges, &walk.bounds, visit)
                }
                Kind::Array => self.visit_array(&item, &walk, &mut sorted, visit)?,
                Kind::Inline if V::INLINE => {
                    let through = Through {
                        first: item.first,
                        words: walk.bounds.words(item.edges),
                        kept: &mut kept,
                        gathered: &mut gathered,
                        visit: &mut *visit,
                    };
                    let array = InlineRef::at(&self.heap, item.link)?;
                    array.scan(through, direction, item.depth as usize, self.heap.media())
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

    #[inline(always)]
    fn visit_leaf<'g>(
        &'g self,
        leaf: &LeafRef<'g>,
        edges: Edges,
        bounds: &Bounds<'_>,
        visit: &mut Visit<'_, 'g>,
    ) -> ControlFlow<()> {
        if edges.are_free() || bounds.hold(leaf.key(), edges) {
            visit(leaf.key(), leaf.value(&self.heap))
        } else {
            ControlFlow::Continue(())
        }
    }

    fn visit_array<'g>(
        &'g self,
        item: &Item,
        walk: &Walk<'_, 'g>,
        sorted: &mut Vec<(u64, LeafRef<'g>)>,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<ControlFlow<()>, Fault> {
        sorted.clear();
        let array = ArrayRef::at(&self.heap, item.link)?;
        for link in array.leaves(self.heap.media()) {
            let leaf = LeafRef::at(&self.heap, link)?;
            sorted.push((first_bytes(leaf.key(), item.depth as usize), leaf));
        }
        // Almost always the first bytes after what all share decide.
        let order = |a: &(u64, LeafRef<'_>), b: &(u64, LeafRef<'_>)| {
            a.0.cmp(&b.0).then_with(|| a.1.key().cmp(b.1.key()))
        };
        match (&mut sorted[..], walk.direction) {
            ([a, b], _) if a.0 != b.0 => {
                if (a.0 > b.0) == (walk.direction == Direction::Forward) {
                    std::mem::swap(a, b);
                }
            }
            (all, Direction::Forward) => all.sort_unstable_by(order),
            (all, Direction::Reverse) => all.sort_unstable_by(|a, b| order(b, a)),
        }
        // A key twice: it was removed and inserted again, into another entry, meanwhile.
        if sorted.len() > 2 || matches!(sorted[..], [a, b] if a.0 == b.0) {
            sorted.dedup_by(|a, b| a.0 == b.0 && a.1.key() == b.1.key());
        }
        for (_, leaf) in sorted {
            if self.visit_leaf(leaf, item.edges, &walk.bounds, visit).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Puts links into the queue until it is full, or an inner node must be entered first, or nothing is left; asks
    /// for what the new ones lead to, and for the leaves of an array that has come half way.
    #[inline(always)]
    fn fill(&self, walk: &mut Walk<'_, '_>) {
        let media = self.heap.media();
        let base = self.heap.pool().base().as_ptr().cast_const();
        while !walk.waits && walk.put - walk.taken < AHEAD {
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
                    continue;
                }
                prefetch(start);
                if !link.is_plain(Kind::Leaf) {
                    if link.kind() != Kind::Array {
                        walk.waits = true;
                        break;
                    }
                    prefetch_range(start.wrapping_add(LINE), array_size(link).saturating_sub(LINE));
                }
            }
            (walk.put, frame.next) = (put, next);
            if next >= end && !walk.waits {
                walk.leave();
            }
        }
        // The newest are on their way still.
        let arrived = walk
            .put
            .saturating_sub(REFILL)
            .max((walk.taken + 1).min(walk.put));
        while walk.staged < arrived && walk.entries < AHEAD {
            let link = walk.queue[walk.staged % AHEAD].link;
            walk.staged += 1;
            walk.entries += entries_of(link);
            self.prefetch_array(link);
        }
    }

    fn prefetch_array(&self, link: Link) {
        if link.kind() == Kind::Array
            && let Ok(array) = ArrayRef::at(&self.heap, link)
        {
            array.prefetch_leaves(&self.heap);
        }
        if link.kind() == Kind::Inline
            && let Ok(array) = InlineRef::at(&self.heap, link)
        {
            (0..LINES_STAGED).for_each(|line| array.prefetch_line(line));
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
        if let Node::N256(node) = node {
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
                    let unknown = |edge| if edge == Edge::Along { Edge::Unknown } else { edge };
                    (item.edges.low, item.edges.high) = (unknown(item.edges.low), unknown(item.edges.high));
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

/// Entries of the array that a link leads to; none, if it leads to something else.
#[inline(always)]
fn entries_of(link: Link) -> usize {
    match link.kind() {
        Kind::Array => capacity_of(link),
        Kind::Inline => Shape::of(link).map_or(0, Shape::capacity),
        _ => 0,
    }
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

/// The edges of the child for `byte` of a node at `level`.
#[inline(always)]
fn edges_of(bounds: &Bounds<'_>, edges: Edges, level: usize, byte: u8) -> Edges {
    if edges.are_free() {
        return edges;
    }
    let narrow = |edge, bound| match edge {
        Edge::Along if key_of(bound).get(level) != Some(&byte) => Edge::Free,
        edge => edge,
    };
    Edges {
        low: narrow(edges.low, bounds.lower),
        high: narrow(edges.high, bounds.upper),
    }
}

/// Eight bytes of the key from `from` on, as they order keys; a key that ends among them is filled up with zeros.
#[inline(always)]
fn first_bytes(key: &[u8], from: usize) -> u64 {
    let rest = key.get(from..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let bits = 8 * (8 - rest.len() as u32);
    if let Some(bytes) = key.last_chunk::<8>() {
        return u64::from_be_bytes(*bytes).checked_shl(bits).unwrap_or(0);
    }
    let mut bytes = [0; 8];
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(bytes)
}
