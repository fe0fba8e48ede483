//! Ordinary iterators over any index, which borrow what they yield.

use crate::{Direction, Error, Guard, Index, ReadAhead, Refill, Value, prefix_bounds};
use std::ops::{Bound, ControlFlow};

type BorrowedEntry<'g> = (&'g [u8], Value<'g>);

/// A double-ended iterator over the keys between two bounds.
///
/// In an index without order of keys it accepts only unbounded ranges, whose keys come in the index's order.
///
/// An error ends the iteration after it has been returned once.
pub struct Range<'g> {
    index: &'g dyn Index,
    guard: &'g Guard,
    ahead: ReadAhead<&'g [u8], Value<'g>>,
}

impl<'g> Range<'g> {
    /// The keys of `index` between the bounds.
    pub fn new(
        index: &'g dyn Index,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        guard: &'g Guard,
    ) -> Range<'g> {
        let ahead = ReadAhead::new(index.order(), lower, upper);
        Range { index, guard, ahead }
    }

    /// The keys of `index` that start with `prefix`.
    pub fn with_prefix(index: &'g dyn Index, prefix: &[u8], guard: &'g Guard) -> Range<'g> {
        let (lower, upper) = prefix_bounds(prefix);
        let (lower, upper) = (
            lower.as_ref().map(Vec::as_slice),
            upper.as_ref().map(Vec::as_slice),
        );
        Range::new(index, lower, upper, guard)
    }

    fn step(&mut self, direction: Direction) -> Option<Result<BorrowedEntry<'g>, Error>> {
        let (index, guard) = (self.index, self.guard);
        self.ahead.next(direction, |batch| {
            let Refill {
                lower,
                upper,
                limit,
                entries,
            } = batch;
            index.walk(lower, upper, direction, guard, &mut |key, value| {
                entries.push_back((key, value));
                if entries.len() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
            Ok(entries.len() >= limit)
        })
    }
}

impl<'g> Iterator for Range<'g> {
    type Item = Result<BorrowedEntry<'g>, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        self.step(Direction::Forward)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Reverse)
    }
}

impl std::iter::FusedIterator for Range<'_> {}

impl std::fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Range").field(&self.ahead).finish()
    }
}
