//! Ranges as a transaction sees them.
//!
//! I1 Each part of the range that was read is among the transaction's reads before one of its entries is yielded.
//!    Entries that were read ahead but not yielded are removed from the reads, if the iterator was used from one end
//!    only.

use crate::entry::Entry;
use crate::read::merge::{self, Read};
use crate::txn::layer::Changes;
use crate::write::map_index::RangeRead;
use crate::write::reads::Reads;
use crate::{Error, Map};
use index::{Direction, ReadAhead, Refill};
use std::cell::RefCell;
use std::ops::Bound;

/// A double-ended iterator over the entries that a transaction sees between two bounds, in key order, which owns what
/// it yields.
///
/// After it has yielded an error, it ends.
pub struct TransactionRange<'t> {
    ahead: ReadAhead<Vec<u8>, Vec<u8>>,
    source: Source<'t>,
    /// The end from which the last entry was requested.
    direction: Option<Direction>,
    /// The key of the last entry yielded.
    yielded: Vec<u8>,
    /// Whether everything read counts: both ends were used, or the end was reached.
    whole: bool,
}

/// The source of the batches.
struct Source<'t> {
    map: Map,
    changes: Option<&'t Changes>,
    reads: &'t RefCell<Reads>,
    /// Index of the last part read among the transaction's reads.
    last: Option<usize>,
}

impl<'t> TransactionRange<'t> {
    pub(super) fn new(
        map: &Map,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        changes: Option<&'t Changes>,
        reads: &'t RefCell<Reads>,
    ) -> TransactionRange<'t> {
        TransactionRange {
            ahead: ReadAhead::new(map.index.order(), lower, upper),
            source: Source {
                map: map.clone(),
                changes,
                reads,
                last: None,
            },
            direction: None,
            yielded: Vec::new(),
            whole: false,
        }
    }

    fn step(&mut self, direction: Direction) -> Option<Result<Entry, Error>> {
        let before = self.direction.replace(direction);
        self.whole |= before.is_some_and(|before| before != direction);
        let source = &mut self.source;
        let entry = self.ahead.next(direction, |batch| source.fill(batch, direction));
        match &entry {
            Some(Ok((key, _))) => self.yielded.clone_from(key),
            _ => self.whole = true,
        }
        entry.map(|entry| Ok(entry?))
    }
}

impl Source<'_> {
    /// Reads the next entries from one end, with the transaction's changes; returns whether it stopped before the other
    /// end. It adds no entry only if none is left.
    fn fill(
        &mut self,
        batch: Refill<'_, Vec<u8>, Vec<u8>>,
        direction: Direction,
    ) -> Result<bool, index::Error> {
        let Refill {
            lower,
            upper,
            limit,
            entries,
        } = batch;
        let (mut lower, mut upper) = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
        let order = self.map.index.order();
        loop {
            let bounds = (
                lower.as_ref().map(Vec::as_slice),
                upper.as_ref().map(Vec::as_slice),
            );
            if !order.has_between(bounds.0, bounds.1) {
                return Ok(false);
            }
            let read = Read::batch(self.map.index.bare(), bounds, direction, limit)?;
            let covered = read.covered(bounds, direction)?;
            self.note(&read, covered, direction);
            let changes = self.changes.map(|changes| changes.range::<[u8], _>(covered));
            let changes = changes.into_iter().flatten();
            let mut changes: Vec<_> = changes.map(|(key, value)| (key.clone(), value.clone())).collect();
            if direction == Direction::Reverse {
                changes.reverse();
            }
            let reached = read.reached();
            merge::merge(read.entries, changes, order, direction, entries);
            match (reached, direction) {
                (None, _) => return Ok(false),
                (Some(_), _) if !entries.is_empty() => return Ok(true),
                (Some(key), Direction::Forward) => lower = Bound::Excluded(key),
                (Some(key), Direction::Reverse) => upper = Bound::Excluded(key),
            }
        }
    }

    fn note(&mut self, read: &Read, (lower, upper): merge::Bounds<'_>, direction: Direction) {
        let mut entries = read.entries.clone();
        if direction == Direction::Reverse {
            entries.reverse();
        }
        let ranges = &mut self.reads.borrow_mut().ranges;
        self.last = Some(ranges.len());
        ranges.push(RangeRead {
            map: self.map.index.clone(),
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            entries,
        });
    }
}

impl Iterator for TransactionRange<'_> {
    type Item = Result<Entry, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        self.step(Direction::Forward)
    }
}

impl DoubleEndedIterator for TransactionRange<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Reverse)
    }
}

impl std::iter::FusedIterator for TransactionRange<'_> {}

impl Drop for TransactionRange<'_> {
    fn drop(&mut self) {
        if let (Some(last), Some(direction), false) = (self.source.last, self.direction, self.whole) {
            self.source.reads.borrow_mut().ranges[last].shorten(&self.yielded, direction);
        }
    }
}

impl std::fmt::Debug for TransactionRange<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("TransactionRange").field(&self.ahead).finish()
    }
}
