//! Scans: border by border, in either direction, with the layers of a border's entries in their place.
//!
//! A scan copies a border as of one moment, then visits the copy. Forward, the border's sibling is next; entries that
//! a split left in both are skipped the second time. In reverse there are no links: the scan descends again, to the
//! slices before the border's `low`.

use super::Masstree;
use super::link::{Target, target};
use super::node::{Held, NodeRef, descend, prefetch_node};
use super::order::ENTRIES;
use super::slice::Slice;
use art::{LeafRef, damaged, prefetch_leaf};
use heap::{Guard, keep};
use index::{Direction, MAX_KEY, Value, Visit};
use pmem::{Fault, Link, Media};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};

/// The position of a scan in a layer.
struct Frame<'g> {
    root: Link,
    /// Whether the layer's keys begin like the bound at which the scan begins.
    seeks: bool,
    border: NodeRef<'g>,
    /// The next border, loaded after the entries.
    next: Option<NodeRef<'g>>,
    /// Entries of the border not visited yet, in reverse order of the scan.
    left: [(Slice, Held); ENTRIES],
    count: usize,
    /// Copies of the keys in place, in the order of the scan.
    copies: &'g [u8],
    /// The slice from which the scan continues in this layer, and whether that slice itself is to be visited.
    from: (Slice, bool),
}

struct Scan<'g, 's, M: Media> {
    index: &'g Masstree<M>,
    guard: &'g Guard,
    direction: Direction,
    near: Bound<&'s [u8]>,
    far: Bound<&'s [u8]>,
    /// The common prefix of all keys of the layer.
    prefix: Vec<u8>,
    frames: Vec<Frame<'g>>,
}

impl<M: Media> Masstree<M> {
    /// Visits the keys between the bounds in order.
    pub(super) fn scan_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        let (near, far) = match direction {
            Direction::Forward => (lower, upper),
            Direction::Reverse => (upper, lower),
        };
        let mut scan = Scan {
            index: self,
            guard,
            direction,
            near,
            far,
            prefix: Vec::new(),
            frames: Vec::new(),
        };
        scan.enter(self.top()?, near != Bound::Unbounded)?;
        while let Some(frame) = scan.frames.last_mut() {
            let Some(left) = frame.count.checked_sub(1) else {
                if !scan.go_on()? {
                    scan.frames.pop();
                    scan.prefix.truncate(8 * scan.frames.len().saturating_sub(1));
                }
                continue;
            };
            frame.count = left;
            let (slice, held) = frame.left[left];
            let meets_bound = frame.seeks && slice == frame.from.0;
            if !meets_bound {
                frame.seeks = false;
            }
            frame.from = (slice, false);
            if scan.visit_one(slice, held, meets_bound, visit)?.is_break() {
                break;
            }
        }
        Ok(())
    }
}

impl<'g, M: Media> Scan<'g, '_, M> {
    fn is_before(&self, a: Slice, b: Slice) -> bool {
        match self.direction {
            Direction::Forward => a < b,
            Direction::Reverse => a > b,
        }
    }

    /// Begins with a layer, at the bound if its keys begin like it.
    fn enter(&mut self, root: Link, seeks: bool) -> Result<(), Fault> {
        // In a damaged pool a layer may be below itself. An endless descent cycles through the same layers, so it
        // suffices to compare each with one above it: the last whose depth, from one, is a power of two (Brent).
        let depth = self.frames.len();
        if let Some(exponent) = depth.checked_ilog2()
            && self.frames[(1 << exponent) - 1].root == root
        {
            return Err(damaged("layer below itself", root));
        }
        let from = match (self.near, self.direction) {
            (Bound::Included(key) | Bound::Excluded(key), _) if seeks => Slice::of(key, depth),
            (_, Direction::Forward) => Slice::FIRST,
            (_, Direction::Reverse) => Slice::last_of(u64::MAX),
        };
        let frame = self.frame(root, (from, true), seeks)?;
        self.frames.push(frame);
        Ok(())
    }

    /// The border in which a layer continues.
    fn frame(&self, root: Link, from: (Slice, bool), seeks: bool) -> Result<Frame<'g>, Fault> {
        let heap = &self.index.heap;
        let border = descend(heap, root, from.0.bytes, 0)?;
        // In a damaged pool the way down may lead back up.
        let Some(border) = border.filter(|border| border.low(heap.media()) <= from.0.bytes) else {
            return Err(damaged("a node outside the range of its slice", root));
        };
        let mut frame = Frame {
            root,
            seeks,
            border,
            next: None,
            left: [(Slice::FIRST, Held::Value(0)); ENTRIES],
            count: 0,
            copies: &[],
            from,
        };
        loop {
            self.load(&mut frame)?;
            match frame.next {
                Some(next) if next.low(heap.media()) <= from.0.bytes => frame.border = next,
                _ => return Ok(frame),
            }
        }
    }

    /// Copies the entries of the frame's border from where the scan continues.
    fn load(&self, frame: &mut Frame<'g>) -> Result<(), Fault> {
        let heap = &self.index.heap;
        let media = heap.media();
        let border = frame.border;
        let (from, included) = frame.from;
        border.look(media, |order| {
            let kinds = border.node.kinds.peek(media);
            frame.count = 0;
            let mut add = |entry| {
                let (slice, held) = border.held(media, kinds, entry);
                if !self.is_before(slice, from) && (included || slice != from) {
                    frame.left[frame.count] = (slice, held);
                    frame.count += 1;
                }
            };
            match self.direction {
                Direction::Forward => order.entries().rev().for_each(&mut add),
                Direction::Reverse => order.entries().for_each(&mut add),
            }
        });
        frame.next = border.sibling(heap)?;
        if let (Some(next), Direction::Forward) = (frame.next, self.direction) {
            prefetch_node(heap, next.link);
        }
        let mut bytes = Vec::new();
        for (slice, held) in frame.left[..frame.count].iter().rev() {
            match held {
                Held::Value(_) => {
                    let (key, len) = slice.key_bytes();
                    bytes.extend_from_slice(&self.prefix);
                    bytes.extend_from_slice(&key[..len]);
                }
                Held::Link(link) => prefetch_leaf(heap, *link, &[]),
            }
        }
        frame.copies = if bytes.is_empty() {
            &[]
        } else {
            keep(self.guard, bytes.into())
        };
        Ok(())
    }

    /// Continues with the next border of the innermost layer; returns `false` if there is none.
    fn go_on(&mut self) -> Result<bool, Fault> {
        let media = self.index.heap.media();
        let Some(mut frame) = self.frames.pop() else {
            return Ok(false);
        };
        let more = match self.direction {
            Direction::Forward => match frame.next {
                Some(next) => {
                    frame.border = next;
                    self.load(&mut frame)?;
                    true
                }
                None => false,
            },
            Direction::Reverse => match frame.border.low(media).checked_sub(1) {
                Some(before) => {
                    let root = if self.frames.is_empty() {
                        self.index.top()?
                    } else {
                        frame.root
                    };
                    frame = self.frame(root, (Slice::last_of(before), true), false)?;
                    true
                }
                None => false,
            },
        };
        self.frames.push(frame);
        Ok(more)
    }

    /// Visits an entry: its key, or the layer below it.
    fn visit_one(
        &mut self,
        slice: Slice,
        held: Held,
        meets_bound: bool,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<ControlFlow<()>, Fault> {
        let heap = &self.index.heap;
        let (key, value): (&'g [u8], Value<'g>) = match held {
            Held::Value(value) => {
                let len = self.prefix.len() + usize::from(slice.len.min(8));
                let Some(frame) = self.frames.last_mut() else {
                    return Ok(ControlFlow::Break(()));
                };
                let (key, rest) = frame.copies.split_at(len.min(frame.copies.len()));
                frame.copies = rest;
                (key, Value::Word(value.to_le_bytes()))
            }
            Held::Link(link) => match target(link) {
                Some(Target::Leaf(_)) => {
                    let leaf = LeafRef::at(heap, link)?;
                    (leaf.key(), leaf.value(heap))
                }
                Some(Target::Node(_)) if self.prefix.len() + 8 < MAX_KEY => {
                    self.prefix.extend_from_slice(&slice.bytes.to_be_bytes());
                    self.enter(link, meets_bound)?;
                    return Ok(ControlFlow::Continue(()));
                }
                _ => return Err(damaged("link of an entry", link)),
            },
        };
        if meets_bound && self.is_excluded(key, self.near, Ordering::Less) {
            return Ok(ControlFlow::Continue(()));
        }
        if self.is_excluded(key, self.far, Ordering::Greater) {
            return Ok(ControlFlow::Break(()));
        }
        Ok(visit(key, value))
    }

    /// Whether a key lies on the side `outside` of a bound, in the scan's direction, or on an excluded bound.
    fn is_excluded(&self, key: &[u8], bound: Bound<&[u8]>, outside: Ordering) -> bool {
        let (bound, included) = match bound {
            Bound::Unbounded => return false,
            Bound::Included(bound) => (bound, true),
            Bound::Excluded(bound) => (bound, false),
        };
        let order = match self.direction {
            Direction::Forward => key.cmp(bound),
            Direction::Reverse => bound.cmp(key),
        };
        order == outside || (order == Ordering::Equal && !included)
    }
}
