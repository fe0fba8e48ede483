//! Scans: leaf by leaf, in either direction. The content of a leaf is replayed as of one moment, then visited.
//!
//! Forward, the leaf's right sibling is next. There are no links in reverse: the scan descends again, to just before
//! the leaf's `low`.

use super::BwTree;
use super::aim::Aim;
use super::page::{Page, descend};
use art::damaged;
use heap::{Guard, keep};
use index::codec::{PairWords, RecordRef};
use index::{Direction, Visit};
use pmem::{Fault, Media};
use std::ops::{Bound, ControlFlow, Range};

impl<M: Media, const FULL: usize> BwTree<M, FULL> {
    /// Visits the keys between the bounds in order.
    pub(super) fn scan_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        let aim = match (direction, lower, upper) {
            (Direction::Forward, Bound::Included(key) | Bound::Excluded(key), _) => Aim::to(key),
            (Direction::Forward, Bound::Unbounded, _) => Aim::to(&[]),
            (Direction::Reverse, _, Bound::Included(key)) => Aim::to(key),
            (Direction::Reverse, _, Bound::Excluded(&[])) => return Ok(()),
            (Direction::Reverse, _, Bound::Excluded(key)) => Aim::before(key),
            (Direction::Reverse, _, Bound::Unbounded) => Aim::END,
        };
        match direction {
            Direction::Forward => self.scan_forward(aim, (lower, upper), guard, visit),
            Direction::Reverse => self.scan_reverse(aim, (lower, upper), guard, visit),
        }
    }

    /// The leaf for an aim.
    fn leaf(&self, aim: Aim<'_>) -> Result<Page<'_>, Fault> {
        let top = self.top()?;
        match descend(&self.heap, top, aim, 0)? {
            Some(page) => page.right_to(&self.heap, aim),
            None => Err(damaged("root of a tree", top)),
        }
    }

    fn scan_forward<'g>(
        &'g self,
        aim: Aim<'_>,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        let mut page = self.leaf(aim)?;
        let mut lower = lower;
        loop {
            let content = page.pairs(&self.heap)?;
            let between = self.between(&content.items, lower, upper)?;
            let is_last = between.end < content.items.len();
            if self
                .visit_all(&content.items[between], false, guard, visit)?
                .is_break()
                || is_last
            {
                return Ok(());
            }
            let Some(high) = content.high else {
                return Ok(());
            };
            // The sibling begins there: a cell's `low` never changes. In a damaged pool the bound still keeps the keys
            // in order.
            lower = Bound::Included(high);
            page = Page::load(&self.heap, content.right)?;
            if page.level != 0 || page.high(&self.heap)?.is_some_and(|(next, _)| next <= high) {
                return Err(damaged("sibling of a leaf", page.cell));
            }
        }
    }

    fn scan_reverse<'g>(
        &'g self,
        aim: Aim<'_>,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        let mut page = self.leaf(aim)?;
        let mut upper = upper;
        loop {
            let content = page.pairs(&self.heap)?;
            let between = self.between(&content.items, lower, upper)?;
            let is_last = between.start > 0 || content.low.is_empty();
            if self
                .visit_all(&content.items[between], true, guard, visit)?
                .is_break()
                || is_last
            {
                return Ok(());
            }
            let is_before = match upper {
                Bound::Included(upper) => content.low <= upper,
                Bound::Excluded(upper) => content.low < upper,
                Bound::Unbounded => true,
            };
            if !is_before {
                return Err(damaged("bounds of a leaf", page.cell));
            }
            upper = Bound::Excluded(content.low);
            page = self.leaf(Aim::before(content.low))?;
        }
    }

    /// The range of a leaf's pairs that lie between the bounds.
    fn between(
        &self,
        items: &[PairWords],
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
    ) -> Result<Range<usize>, Fault> {
        let from = match lower {
            Bound::Unbounded => 0,
            Bound::Included(bound) => self.partition(items, |key| key < bound)?,
            Bound::Excluded(bound) => self.partition(items, |key| key <= bound)?,
        };
        let to = match upper {
            Bound::Unbounded => items.len(),
            Bound::Included(bound) => self.partition(items, |key| key <= bound)?,
            Bound::Excluded(bound) => self.partition(items, |key| key < bound)?,
        };
        Ok(from..to.max(from))
    }

    /// The number of pairs whose keys are `before`, which are the first ones.
    fn partition(&self, items: &[PairWords], before: impl Fn(&[u8]) -> bool) -> Result<usize, Fault> {
        let (mut from, mut to) = (0, items.len());
        while from < to {
            let middle = from.midpoint(to);
            if before(items[middle].key(&self.heap, &mut [0; 8])?.bytes) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        Ok(from)
    }

    /// Visits the pairs; keys stored in place are copied for as long as the guard lives.
    fn visit_all<'g>(
        &'g self,
        items: &[PairWords],
        backward: bool,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<ControlFlow<()>, Fault> {
        let in_place = items.iter().filter(|pair| pair.link.is_null());
        let copies: Vec<u8> = in_place.flat_map(|pair| pair.prefix.to_be_bytes()).collect();
        let copies: &'g [u8] = if copies.is_empty() {
            &[]
        } else {
            keep(guard, copies.into())
        };
        let mut copies = copies.as_chunks::<8>().0.iter();
        for i in 0..items.len() {
            let pair = if backward {
                items[items.len() - 1 - i]
            } else {
                items[i]
            };
            let key: &'g [u8] = if pair.link.is_null() {
                let copy = if backward {
                    copies.next_back()
                } else {
                    copies.next()
                };
                copy.map_or(&[][..], |copy| copy.as_slice())
            } else {
                RecordRef::at(&self.heap, pair.link)?.key
            };
            if visit(key, pair.value(&self.heap)?).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}
