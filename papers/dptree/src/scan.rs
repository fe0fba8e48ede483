//! Scans: the three trees' entries merged in order, in either direction (the paper's range queries, §2).
//!
//! A scan takes the trees as they are when it begins, and a cursor of each. It reads a few entries at a time, checks
//! that the base tree was still valid, and visits them. Merges go on meanwhile; only when the second one since
//! begins, and reuses the base tree's version, does the scan take the trees again, from behind the last key that it
//! has reached.
//!
//! I1 A key that is present throughout is in at least one of the trees taken, and their entries of it were put there
//!    before or during the scan. The cursors of the front and the middle read after the scan has begun, so they meet
//!    every removal that was complete by then.
//! I2 All visited entries were read while the base tree was valid, and are durable.

use crate::base::Cursor as BaseCursor;
use crate::buffer::Cursor as BufferCursor;
use crate::key::{MarkedPair, SearchKey, in_direction};
use crate::tree::{TreeState, Trees};
use heap::{Access, Error, Guard, keep};
use index::{Direction, Visit, codec};
use pmem::{Fault, Media};
use std::cmp::Ordering;
use std::ops::{Bound, ControlFlow};

/// Number of entries to read before they are visited.
const STEP: usize = 32;

/// The end of a scan of some trees.
enum Ended {
    /// The scan is complete, or the visitor broke.
    Done,
    /// The base tree is not valid any more; with the last entry visited, or a removal after it.
    Stale(Option<MarkedPair>),
}

/// The far end of a scan.
#[derive(Clone, Copy)]
struct Far<'k> {
    key: Option<SearchKey<'k>>,
    included: bool,
    direction: Direction,
}

/// The entries of the trees in order, for each key the newest one.
struct Merged<'t, 'g> {
    base: BaseCursor<'t, 'g>,
    front: BufferCursor<'t>,
    middle: Option<BufferCursor<'t>>,
    /// The next entry of front and middle, once it was read; `Some(None)` if there is none.
    buffered: Option<Option<MarkedPair>>,
    direction: Direction,
}

impl<M: Media> TreeState<M> {
    /// Visits the keys between the bounds in order.
    pub(crate) fn visit_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        let (near, far) = match direction {
            Direction::Forward => (lower, upper),
            Direction::Reverse => (upper, lower),
        };
        let far = Far::new(far, direction);
        let mut from = near.map(<[u8]>::to_vec);
        loop {
            let trees = self.current.load(guard);
            match self.visit_trees(trees, &from, far, guard, visit)? {
                Ended::Done => return Ok(()),
                Ended::Stale(None) => {}
                Ended::Stale(Some(reached)) => from = Bound::Excluded(reached.key_bytes(&self.heap)?),
            }
        }
    }

    /// Visits the entries of these trees behind `from`, as long as their base tree is valid.
    fn visit_trees<'g>(
        &'g self,
        trees: &Trees,
        from: &Bound<Vec<u8>>,
        far: Far<'_>,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<Ended, Error> {
        let mut merged = match Merged::new(&self.heap, trees, from, far.direction) {
            Err(_) if !self.is_valid(&trees.base) => return Ok(Ended::Stale(None)),
            merged => merged?,
        };
        let mut entries = Vec::with_capacity(STEP);
        let mut reached = None;
        loop {
            entries.clear();
            let read = merged.read(&self.heap, far, &mut entries);
            if !self.is_valid(&trees.base) {
                merged.base.disregard(self.heap.media());
                return Ok(Ended::Stale(reached));
            }
            let goes_on = read?;
            merged.base.confirm();
            reached = entries.last().copied().or(reached);
            entries.retain(|entry| !entry.removed);
            if self.visit_step(&entries, guard, visit)?.is_break() || !goes_on {
                return Ok(Ended::Done);
            }
        }
    }

    /// Visits entries. Keys stored in place are copied, since a later merge may reuse their slots.
    fn visit_step<'g>(
        &'g self,
        entries: &[MarkedPair],
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<ControlFlow<()>, Error> {
        let mut bytes = Vec::with_capacity(entries.len() * size_of::<u64>());
        for entry in entries.iter().filter(|entry| entry.link.is_null()) {
            bytes.extend_from_slice(&entry.prefix.to_be_bytes());
        }
        let mut copies: &[u8] = if bytes.is_empty() {
            &[]
        } else {
            keep(guard, bytes.into())
        };
        for entry in entries {
            let key = if entry.link.is_null() {
                let (key, rest) = copies.split_at(8);
                copies = rest;
                key
            } else {
                codec::RecordRef::at(&self.heap, entry.link)?.key
            };
            if visit(key, entry.value(&self.heap)?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl<'t, 'g> Merged<'t, 'g> {
    fn new<M: Media>(
        heap: &'g Access<M>,
        trees: &'t Trees,
        from: &Bound<Vec<u8>>,
        direction: Direction,
    ) -> Result<Merged<'t, 'g>, Error> {
        let base = BaseCursor::new(heap, &trees.base, from.as_ref().map(Vec::as_slice), direction)?;
        let middle = trees.middle.as_ref();
        Ok(Merged {
            base,
            front: trees.front.tree.cursor(from.clone(), direction),
            middle: middle.map(|middle| middle.tree.cursor(from.clone(), direction)),
            buffered: None,
            direction,
        })
    }

    /// Reads the next entries, removals included; returns `false` if no more come.
    fn read<M: Media>(
        &mut self,
        heap: &'g Access<M>,
        far: Far<'_>,
        entries: &mut Vec<MarkedPair>,
    ) -> Result<bool, Error> {
        while entries.len() < STEP {
            // Most pairs are in the base tree alone: takes those before the next buffered entry and the far end.
            let buffered = self.buffered(heap)?.map(|entry| entry.prefix);
            let limit = nearer(buffered, far.key.map(|key| key.prefix), self.direction);
            self.base.take_before(limit, STEP - entries.len(), entries);
            if entries.len() == STEP {
                break;
            }
            let Some(entry) = self.next(heap)? else {
                return Ok(false);
            };
            if far.is_before(heap, &entry)? {
                return Ok(false);
            }
            entries.push(entry);
        }
        Ok(true)
    }

    /// The next entry.
    #[inline]
    fn next<M: Media>(&mut self, heap: &'g Access<M>) -> Result<Option<MarkedPair>, Error> {
        let buffered = self.buffered(heap)?;
        let base = self.base.peek(heap)?;
        let order = match (&base, &buffered) {
            (Some(base), Some(buffered)) => in_direction(base.compare(heap, buffered)?, self.direction),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        if order != Ordering::Greater {
            self.base.advance();
        }
        if order == Ordering::Less {
            return Ok(base);
        }
        self.buffered = None;
        Ok(buffered)
    }

    /// The next entry of front and middle, which stays the next one until [`next`](Self::next) has taken it.
    #[inline]
    fn buffered<M: Media>(&mut self, heap: &Access<M>) -> Result<Option<MarkedPair>, Fault> {
        if let Some(buffered) = self.buffered {
            return Ok(buffered);
        }
        let found = self.next_buffered(heap)?;
        self.buffered = Some(found);
        Ok(found)
    }

    /// Takes the next entry of front and middle; of two with the same key, the front's, and drops the other.
    fn next_buffered<M: Media>(&mut self, heap: &Access<M>) -> Result<Option<MarkedPair>, Fault> {
        let front = self.front.peek(heap)?;
        let Some(middle) = &mut self.middle else {
            self.front.advance_if(front.is_some());
            return Ok(front);
        };
        let other = middle.peek(heap)?;
        let order = match (&front, &other) {
            (Some(front), Some(other)) => in_direction(front.compare(heap, other)?, self.direction),
            (Some(_), None) => Ordering::Less,
            (None, _) => Ordering::Greater,
        };
        self.front
            .advance_if(front.is_some() && order != Ordering::Greater);
        middle.advance_if(other.is_some() && order != Ordering::Less);
        Ok(if order == Ordering::Greater { other } else { front })
    }
}

/// The first of two prefixes in a scan's direction.
fn nearer(a: Option<u64>, b: Option<u64>, direction: Direction) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(match direction {
            Direction::Forward => a.min(b),
            Direction::Reverse => a.max(b),
        }),
        (a, b) => a.or(b),
    }
}

impl<'k> Far<'k> {
    fn new(bound: Bound<&'k [u8]>, direction: Direction) -> Far<'k> {
        let (key, included) = match bound {
            Bound::Unbounded => (None, true),
            Bound::Included(key) => (Some(SearchKey::new(key)), true),
            Bound::Excluded(key) => (Some(SearchKey::new(key)), false),
        };
        Far {
            key,
            included,
            direction,
        }
    }

    /// Whether an entry lies behind the far end.
    #[inline]
    fn is_before<M: Media>(&self, heap: &Access<M>, entry: &MarkedPair) -> Result<bool, Fault> {
        let Some(key) = self.key else { return Ok(false) };
        let order = key.compare(heap, entry.prefix, entry.link)?;
        Ok(match in_direction(order, self.direction) {
            Ordering::Less => true,
            Ordering::Equal => !self.included,
            Ordering::Greater => false,
        })
    }
}
