//! Range reads in both directions.
//!
//! A depth-first walk over an explicit stack (keys that are prefixes of each other make trees thousands of levels
//! deep). The children of a node are pushed a batch at a time and prefetched together, then the leaves that their
//! leaf arrays lead to, so that the misses of a scan overlap. The keys of a leaf array are sorted when it is met
//! (§3.2).
//!
//! Along a bound the walk compares strings and leaves out what lies outside; everywhere else it compares nothing.

use crate::array::ArrayRef;
use crate::leaf::LeafRef;
use crate::node::Node;
use crate::{Roart, Variant};
use art::{Kind, Prefix, Tagged, prefetch};
use index::{Direction, Visit};
use pmem::{Fault, Link, Media};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow, Range, RangeInclusive};

/// How many slots of an N256 are looked at in the first batch; each further batch is twice as long.
const FIRST_BATCH: u16 = 32;
const LARGEST_BATCH: u16 = 128;

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

/// Something still to visit.
#[derive(Clone, Copy)]
struct Item {
    link: Link,
    /// Bytes that lead to it.
    depth: usize,
    /// Slots of an N256 that were visited already, counted in the scan's direction.
    done: u16,
    low: Edge,
    high: Edge,
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
    fn hold(&self, key: &[u8], low: Edge, high: Edge) -> bool {
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

    fn cross(&self) -> bool {
        match (self.lower, self.upper) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (lower, upper) => key_of(lower) >= key_of(upper),
        }
    }
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

impl<M: Media, V: Variant> Roart<M, V> {
    /// Visits the keys between the bounds in order.
    pub(crate) fn visit_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
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
        let mut stack = Vec::with_capacity(256);
        stack.push(Item {
            link: self.root,
            depth: 0,
            done: 0,
            low: edge(lower),
            high: edge(upper),
        });
        let mut batch = FIRST_BATCH;
        let mut sorted = Vec::new();
        while let Some(item) = stack.pop() {
            match item.link.kind() {
                Kind::Null => {}
                Kind::Leaf => {
                    let leaf = LeafRef::at(&self.heap, item.link)?;
                    if bounds.hold(leaf.key(), item.low, item.high)
                        && visit(leaf.key(), leaf.value(&self.heap)).is_break()
                    {
                        return Ok(());
                    }
                }
                Kind::Array => {
                    if self
                        .visit_array(&item, &bounds, direction, &mut sorted, visit)?
                        .is_break()
                    {
                        return Ok(());
                    }
                }
                _ => {
                    self.push_children(item, &bounds, direction, batch, &mut stack)?;
                    batch = (batch * 2).min(LARGEST_BATCH);
                }
            }
        }
        Ok(())
    }

    fn visit_array<'g>(
        &'g self,
        item: &Item,
        bounds: &Bounds<'_>,
        direction: Direction,
        sorted: &mut Vec<LeafRef<'g>>,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<ControlFlow<()>, Fault> {
        sorted.clear();
        let array = ArrayRef::at(&self.heap, item.link)?;
        for link in array.leaves(self.heap.media()) {
            sorted.push(LeafRef::at(&self.heap, link)?);
        }
        sorted.sort_unstable_by(|a, b| {
            let order = a.key().cmp(b.key());
            if direction == Direction::Forward {
                order
            } else {
                order.reverse()
            }
        });
        // A key twice: it was removed and inserted again, into another entry, meanwhile.
        sorted.dedup_by(|a, b| a.key() == b.key());
        for leaf in sorted {
            if bounds.hold(leaf.key(), item.low, item.high)
                && visit(leaf.key(), leaf.value(&self.heap)).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Pushes what hangs in the node at `item` and lies inside the bounds, the first to visit last.
    fn push_children(
        &self,
        mut item: Item,
        bounds: &Bounds<'_>,
        direction: Direction,
        batch: u16,
        stack: &mut Vec<Item>,
    ) -> Result<(), Fault> {
        let media = self.heap.media();
        let node = Node::at(&self.heap, item.link)?;
        let level = self.level_after(item.link, &node, item.depth);
        if item.done == 0 && !self.narrow_to_node(&mut item, &node, level, bounds)? {
            return Ok(());
        }
        let (lower, upper) = (key_of(bounds.lower), key_of(bounds.upper));
        let first = if item.low == Edge::Along {
            lower.get(level).copied().unwrap_or(0)
        } else {
            0
        };
        let last = match (item.high, upper.get(level)) {
            (Edge::Along, Some(&last)) => Some(last),
            (Edge::Along, None) => None, // the bound ends here: all children are above it
            _ => Some(255),
        };
        // The key that ends here is below a lower bound that goes on.
        let ends = if item.low == Edge::Along && lower.len() > level {
            Link::NULL
        } else {
            node.header().ends.load(media)
        };
        let child = |link: Link| Item {
            link,
            depth: level + 1,
            done: 0,
            low: match item.low {
                Edge::Along if lower.get(level) != Some(&link.byte()) => Edge::Free,
                low => low,
            },
            high: match item.high {
                Edge::Along if upper.get(level) != Some(&link.byte()) => Edge::Free,
                high => high,
            },
        };
        let end = Item {
            link: ends,
            depth: level,
            done: 0,
            low: item.low,
            high: item.high,
        };
        let bytes = last.filter(|&last| first <= last).map(|last| first..=last);
        // What is pushed first is visited last.
        let (rest, batch) = match (&node, &bytes) {
            (Node::N256(_), Some(bytes)) => self.batch_of(&item, bytes, direction, batch),
            _ => (None, 0..0),
        };
        let is_first = item.done == 0;
        let is_last = rest.is_none();
        if direction == Direction::Reverse && is_last {
            stack.push(end);
        }
        stack.extend(rest);
        let start = stack.len();
        if let Node::N256(_) = node {
            let links = node.slots()[batch].iter().map(|slot| slot.load(media));
            stack.extend(links.filter(|link| !link.is_null()).map(child));
        } else {
            let inside = |link: &Link| bytes.as_ref().is_some_and(|bytes| bytes.contains(&link.byte()));
            let mut links: Vec<Link> = node.children(media).filter(inside).collect();
            links.sort_unstable_by_key(|link| link.byte());
            // A byte twice: its last key was removed and another inserted, into another entry, meanwhile.
            links.dedup_by_key(|link| link.byte());
            stack.extend(links.into_iter().map(child));
        }
        if direction == Direction::Forward {
            stack[start..].reverse();
        }
        self.prefetch_all(&stack[start..]);
        if direction == Direction::Forward && is_first {
            stack.push(end);
        }
        Ok(())
    }

    /// The next slots of an N256 to look at, of those for `bytes`, and the item for what is left after them.
    fn batch_of(
        &self,
        item: &Item,
        bytes: &RangeInclusive<u8>,
        direction: Direction,
        batch: u16,
    ) -> (Option<Item>, Range<usize>) {
        let (from, to) = (usize::from(*bytes.start()), usize::from(*bytes.end()) + 1);
        let done = usize::from(item.done).min(to - from);
        let now = (to - from - done).min(usize::from(batch));
        let rest = (done + now < to - from).then(|| Item {
            done: (done + now) as u16,
            ..*item
        });
        match direction {
            Direction::Forward => (rest, from + done..from + done + now),
            Direction::Reverse => (rest, to - done - now..to - done),
        }
    }

    /// Compares the bytes that a node's links skip with the bounds; `false` if the node lies outside.
    fn narrow_to_node(
        &self,
        item: &mut Item,
        node: &Node<'_>,
        level: usize,
        bounds: &Bounds<'_>,
    ) -> Result<bool, Fault> {
        let skipped = level - item.depth;
        if skipped == 0 || (item.low != Edge::Along && item.high != Edge::Along) {
            return Ok(true);
        }
        let prefix = node.header().prefix(self.heap.media());
        let kept = prefix.as_bytes();
        let leaf;
        let string = if skipped <= Prefix::MAX {
            &kept[kept.len() - skipped..]
        } else {
            leaf = self.any_leaf(*node)?;
            match leaf.as_ref().and_then(|leaf| leaf.key().get(item.depth..level)) {
                Some(string) => string,
                None => {
                    // Emptied meanwhile, or damaged: what is left is compared key by key.
                    let unknown = |edge| if edge == Edge::Along { Edge::Unknown } else { edge };
                    (item.low, item.high) = (unknown(item.low), unknown(item.high));
                    return Ok(true);
                }
            }
        };
        let low = narrow(item.low, key_of(bounds.lower), item.depth, string, Ordering::Less);
        let high = narrow(
            item.high,
            key_of(bounds.upper),
            item.depth,
            string,
            Ordering::Greater,
        );
        match (low, high) {
            (Some(low), Some(high)) => {
                (item.low, item.high) = (low, high);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Asks for the first lines of all that was pushed, then for the leaves of the arrays among it.
    fn prefetch_all(&self, items: &[Item]) {
        let base = self.heap.pool().base().as_ptr();
        for item in items.iter().rev() {
            if let Some(offset) = item.link.offset() {
                prefetch(base.wrapping_add(offset.get() as usize));
            }
        }
        for item in items.iter().rev() {
            if item.link.kind() == Kind::Array
                && let Ok(array) = ArrayRef::at(&self.heap, item.link)
            {
                array.prefetch_leaves(&self.heap);
            }
        }
    }
}
