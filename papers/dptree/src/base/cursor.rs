//! Pairs of a base tree in order, leaf by leaf.
//!
//! A leaf's order is read once, when the cursor reaches the leaf; pairs are read a few at a time, after their lines
//! were prefetched together.

use super::Base;
use super::leaf::LeafRef;
use super::slots::{GROUP, GROUPS};
use crate::key::{MarkedPair, SearchKey, in_direction};
use heap::{Access, Error};
use index::Direction;
use pmem::{Fault, Media};
use std::cmp::Ordering;
use std::ops::Bound;

/// Number of pairs read together.
const READ_BATCH: usize = 16;

/// A position in a base tree, from which pairs are read. They were in the base tree only if that is still
/// [valid](crate::tree::TreeState::is_valid) afterwards.
pub(crate) struct Cursor<'t, 'g> {
    base: &'t Base,
    direction: Direction,
    /// The number of the next leaf.
    next_leaf: Option<usize>,
    leaf: Option<LeafRef<'g>>,
    /// The leaves from which pairs were read since the base tree was last found valid.
    unsure: Vec<LeafRef<'g>>,
    /// Slots of the current leaf, in the cursor's order, and the number of those read.
    slots: [u8; GROUP * GROUPS],
    count: usize,
    read: usize,
    /// Pairs that were read, and the number of those passed.
    entries: Vec<MarkedPair>,
    passed: usize,
    /// The prefix of the last one read.
    last: Option<u64>,
}

impl<'t, 'g> Cursor<'t, 'g> {
    /// A cursor that starts at a bound.
    pub(crate) fn new<M: Media>(
        heap: &'g Access<M>,
        base: &'t Base,
        from: Bound<&[u8]>,
        direction: Direction,
    ) -> Result<Cursor<'t, 'g>, Error> {
        let first = match (from, direction) {
            (Bound::Included(key) | Bound::Excluded(key), _) => Some(base.router.rank(key)),
            (Bound::Unbounded, Direction::Forward) => Some(0),
            (Bound::Unbounded, Direction::Reverse) => base.leaves.len().checked_sub(1),
        };
        let mut cursor = Cursor {
            base,
            direction,
            next_leaf: first,
            leaf: None,
            unsure: Vec::new(),
            slots: [0; GROUP * GROUPS],
            count: 0,
            read: 0,
            entries: Vec::with_capacity(READ_BATCH),
            passed: 0,
            last: None,
        };
        while cursor.open(heap)? {
            // A key that was removed during the search may have misled it.
            if let Some(before) = cursor.count_before(heap, from)? {
                if before == cursor.count
                    && let Some(leaf) = cursor.leaf
                {
                    // None of the leaf's pairs will be read, and an absent key may have been removed just now.
                    leaf.settle(heap, base.state.version, &[]);
                }
                cursor.read = before;
                cursor.prefetch(before);
                break;
            }
            cursor.next_leaf = first;
        }
        Ok(cursor)
    }

    /// The next pair, without advancing.
    #[inline]
    pub(crate) fn peek<M: Media>(&mut self, heap: &'g Access<M>) -> Result<Option<MarkedPair>, Error> {
        while self.passed == self.entries.len() {
            if !self.fill(heap)? {
                return Ok(None);
            }
        }
        Ok(self.entries.get(self.passed).copied())
    }

    /// Advances past the pair last peeked at.
    #[inline]
    pub(crate) fn advance(&mut self) {
        self.passed += 1;
    }

    /// Records that the base tree was valid until now.
    #[inline]
    pub(crate) fn confirm(&mut self) {
        self.unsure.clear();
        self.unsure.extend(self.leaf);
    }

    /// Declares that the base tree is not valid any more: nothing depends on pairs read since it was.
    pub(crate) fn disregard<M: Media>(&self, media: &M) {
        for leaf in &self.unsure {
            leaf.disregard(self.base.state.version, media);
        }
    }

    /// Moves pairs that were read and have a prefix before `limit`, if there is one, into `into`, at most `max`.
    #[inline]
    pub(crate) fn take_before(&mut self, limit: Option<u64>, max: usize, into: &mut Vec<MarkedPair>) {
        let ahead = &self.entries[self.passed..];
        let ahead = &ahead[..ahead.len().min(max)];
        let is_before = |entry: &MarkedPair| match (limit, self.direction) {
            (None, _) => true,
            (Some(limit), Direction::Forward) => entry.prefix < limit,
            (Some(limit), Direction::Reverse) => entry.prefix > limit,
        };
        let count = ahead
            .iter()
            .position(|entry| !is_before(entry))
            .unwrap_or(ahead.len());
        into.extend_from_slice(&ahead[..count]);
        self.passed += count;
    }

    /// Reads pairs; returns `false` if no more come.
    fn fill<M: Media>(&mut self, heap: &'g Access<M>) -> Result<bool, Error> {
        while self.read == self.count {
            if !self.open(heap)? {
                return Ok(false);
            }
            self.prefetch(0);
        }
        let Some(leaf) = self.leaf else { return Ok(false) };
        let (version, media) = (self.base.state.version, heap.media());
        let end = self.count.min(self.read + READ_BATCH);
        self.prefetch(end);
        self.entries.clear();
        self.passed = 0;
        let slots = &self.slots[self.read..end];
        for &slot in slots {
            // A pair that was removed in place meanwhile was not there throughout.
            let Some(entry) = leaf.live_entry(version, slot.into(), media) else {
                continue;
            };
            // In a damaged pool a key may be in any leaf.
            let goes_back =
                |last: u64| in_direction(last.cmp(&entry.prefix), self.direction) == Ordering::Greater;
            if self.last.is_some_and(goes_back) {
                return Err(Fault {
                    what: "a key out of order",
                    offset: leaf.offset.get(),
                }
                .into());
            }
            self.last = Some(entry.prefix);
            self.entries.push(entry);
        }
        leaf.settle(heap, version, slots);
        self.read = end;
        Ok(true)
    }

    /// Opens the next leaf; returns `false` if there is none.
    fn open<M: Media>(&mut self, heap: &'g Access<M>) -> Result<bool, Error> {
        let Some(i) = self.next_leaf else { return Ok(false) };
        let Some(leaf) = self.base.leaf(heap, i)? else {
            self.next_leaf = None;
            return Ok(false);
        };
        let version = self.base.state.version;
        let live = leaf.bitmap(version, heap.media());
        let order = leaf.order(version, &live, heap.media());
        (self.count, self.read) = (order.len(), 0);
        self.slots[..order.len()].copy_from_slice(&order);
        self.next_leaf = match self.direction {
            Direction::Forward => Some(i + 1),
            Direction::Reverse => {
                self.slots[..self.count].reverse();
                i.checked_sub(1)
            }
        };
        self.leaf = Some(leaf);
        self.unsure.push(leaf);
        Ok(true)
    }

    /// Prefetches the pairs that are read together from `from` on.
    fn prefetch(&self, from: usize) {
        if let Some(leaf) = self.leaf {
            let end = self.count.min(from + READ_BATCH);
            for &slot in &self.slots[from.min(end)..end] {
                if let Some(pair) = leaf.slots.get(usize::from(slot)) {
                    pmem::prefetch(pair);
                }
            }
        }
    }

    /// The number of the leaf's slots before `from`; `None` if one of them no longer counts.
    fn count_before<M: Media>(
        &self,
        heap: &'g Access<M>,
        from: Bound<&[u8]>,
    ) -> Result<Option<usize>, Error> {
        let (key, included) = match from {
            Bound::Unbounded => return Ok(Some(0)),
            Bound::Included(key) => (SearchKey::new(key), true),
            Bound::Excluded(key) => (SearchKey::new(key), false),
        };
        let Some(leaf) = self.leaf else { return Ok(Some(0)) };
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = (low + high) / 2;
            let slot = self.slots[middle].into();
            let Some((prefix, link)) = leaf.live_key(self.base.state.version, slot, heap.media()) else {
                return Ok(None);
            };
            // The order of the bound and the key, in the cursor's direction.
            let order = in_direction(key.compare(heap, prefix, link)?, self.direction);
            if order == Ordering::Greater || (order == Ordering::Equal && !included) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(Some(low))
    }
}
