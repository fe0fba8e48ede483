//! Walks: all pairs, by hash and then by key, in either direction.
//!
//! Buckets are in the order of hashes, so a walk goes through a table's buckets, sorts the pairs of a few at a time,
//! and looks for the next table by the hash that follows the table's last. A walk goes on reading a table that is
//! replaced meanwhile: that table keeps the pairs that it had when it was replaced.

use super::bucket::{Bucket, Filling, SLOTS, Stored};
use super::chain::Chain;
use super::locate::Place;
use super::segment::{SegmentRef, home};
use super::{Clht, hash};
use index::codec::RecordRef;
use index::{Direction, Guard, OnHeap, Visit};
use pmem::{Fault, Media};
use std::ops::{Bound, ControlFlow, Range};

/// Number of home buckets read at a time: initial and maximum.
const FIRST: usize = 4;
const MAX: usize = 32;

type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// A pair, and its key's hash.
type Read = (u64, Filling);

/// A walk under way.
struct Walk<'w, 'g> {
    bounds: Bounds<'w>,
    direction: Direction,
    guard: &'g Guard,
    /// Number of home buckets to read next.
    some: usize,
}

impl<M: Media> Clht<M> {
    /// Visits the keys between two places in the order of hashes.
    pub(super) fn walk_between<'g>(
        &'g self,
        bounds: Bounds<'_>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        if !Self::ORDER.has_between(bounds.0, bounds.1) {
            return Ok(());
        }
        let (low, high) = (hash_of(bounds.0, 0), hash_of(bounds.1, u64::MAX));
        let mut at = match direction {
            Direction::Forward => low,
            Direction::Reverse => high,
        };
        let mut walk = Walk {
            bounds,
            direction,
            guard,
            some: FIRST,
        };
        loop {
            let place = self.locate(at)?;
            let (first, last) = place.hashes(at);
            let hashes = (low.max(first), high.min(last));
            if !place.link.is_null() && self.walk_table(&mut walk, &place, hashes, visit)?.is_break() {
                return Ok(());
            }
            let next = match direction {
                Direction::Forward => last.checked_add(1).filter(|&next| next <= high),
                Direction::Reverse => first.checked_sub(1).filter(|&next| next >= low),
            };
            match next {
                Some(next) => at = next,
                None => return Ok(()),
            }
        }
    }

    /// Visits the pairs of a table between two hashes, both in its range.
    fn walk_table<'g>(
        &'g self,
        walk: &mut Walk<'_, 'g>,
        place: &Place<'g>,
        (low, high): (u64, u64),
        visit: &mut Visit<'_, 'g>,
    ) -> Result<ControlFlow<()>, Fault> {
        let buckets = SegmentRef::at(&self.heap, place.link)?.buckets;
        let number = |hash| home(place.rest_of(hash), buckets.len());
        let mut left = number(low)..number(high) + 1;
        while !left.is_empty() {
            let part = take(&mut left, walk.some, walk.direction);
            walk.some = (walk.some * 2).min(MAX);
            let mut pairs = Vec::with_capacity(part.len() * SLOTS);
            for bucket in &buckets[part] {
                self.read_chain(bucket, &mut pairs)?;
            }
            if self.visit_pairs(walk, pairs, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn read_chain(&self, home: &Bucket, pairs: &mut Vec<Read>) -> Result<(), Fault> {
        let (mut chain, mut next) = (Chain::new(&self.heap), Some(home));
        while let Some(bucket) = next {
            let (state, found) = bucket.pairs(self.heap.media());
            pairs.extend(found.into_iter().flatten().map(|pair| (pair.hash(), pair)));
            next = chain.follow(state.next())?;
        }
        Ok(())
    }

    fn visit_pairs<'g>(
        &'g self,
        walk: &Walk<'_, 'g>,
        pairs: Vec<Read>,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<ControlFlow<()>, Fault> {
        // Buffers the keys stored in place, which visitors borrow.
        let words = pairs.iter().filter(|(_, pair)| !pair.is_record());
        let words: Vec<u8> = words.flat_map(|(_, pair)| pair.key.to_le_bytes()).collect();
        let (mut words, _): (&'g [[u8; 8]], _) = heap::keep(walk.guard, words.into()).as_chunks();
        let mut entries: Vec<(u64, &'g [u8], Filling)> = Vec::with_capacity(pairs.len());
        for (hash, pair) in pairs {
            let key = match (pair.value, words) {
                (Stored::Record(link), _) => RecordRef::at(&self.heap, link)?.key,
                (Stored::Word(_), [first, rest @ ..]) => {
                    words = rest;
                    &first[..]
                }
                (Stored::Word(_), []) => continue,
            };
            entries.push((hash, key, pair));
        }
        entries.sort_unstable_by_key(|&(hash, key, _)| (hash, key));
        // A pair that was removed and inserted elsewhere in its chain meanwhile may have been read twice.
        entries.dedup_by_key(|(_, key, _)| *key);
        if walk.direction == Direction::Reverse {
            entries.reverse();
        }
        for (_, key, pair) in entries {
            if Self::ORDER.contains(walk.bounds, key) && visit(key, pair.value(&self.heap)?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Takes up to `some` numbers of a range, from one end.
fn take(left: &mut Range<usize>, some: usize, direction: Direction) -> Range<usize> {
    let some = some.min(left.len());
    match direction {
        Direction::Forward => {
            let middle = left.start + some;
            std::mem::replace(left, middle..left.end).start..middle
        }
        Direction::Reverse => {
            let middle = left.end - some;
            middle..std::mem::replace(left, left.start..middle).end
        }
    }
}

/// The hash of a bound; `furthest` if unbounded.
fn hash_of(bound: Bound<&[u8]>, furthest: u64) -> u64 {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => hash(key),
        Bound::Unbounded => furthest,
    }
}
