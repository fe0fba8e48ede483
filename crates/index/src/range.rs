//! Ordinary iterators over any index.
//!
//! A range reads ahead a batch of keys at a time through [`Index::scan`] and goes on after the last key it has
//! seen, so it holds no place inside the index that a writer could move.

use crate::{Direction, Error, Guard, Index, Value};
use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow, RangeBounds};

const FIRST_BATCH: usize = 16;
const LARGEST_BATCH: usize = 512;

type Entry<'g> = (&'g [u8], Value<'g>);

/// A double-ended iterator over the keys between two bounds.
///
/// An error ends the iteration after it has been returned once.
pub struct Range<'g> {
    index: &'g dyn Index,
    guard: &'g Guard,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    front: VecDeque<Entry<'g>>,
    back: VecDeque<Entry<'g>>,
    batch: usize,
    done: bool,
}

impl<'g> Range<'g> {
    /// The keys of `index` between the bounds.
    pub fn new(
        index: &'g dyn Index,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        guard: &'g Guard,
    ) -> Range<'g> {
        Range {
            index,
            guard,
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            front: VecDeque::new(),
            back: VecDeque::new(),
            batch: FIRST_BATCH,
            done: false,
        }
    }

    /// The keys of `index` that start with `prefix`.
    pub fn with_prefix(index: &'g dyn Index, prefix: &[u8], guard: &'g Guard) -> Range<'g> {
        let after = after_prefix(prefix);
        let upper = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        Range::new(index, Bound::Included(prefix), upper, guard)
    }

    fn fill(&mut self, direction: Direction) -> Result<(), Error> {
        let limit = self.batch;
        self.batch = (limit * 2).min(LARGEST_BATCH);
        let buffer = match direction {
            Direction::Forward => &mut self.front,
            Direction::Reverse => &mut self.back,
        };
        let lower = self.lower.as_ref().map(Vec::as_slice);
        let upper = self.upper.as_ref().map(Vec::as_slice);
        self.index
            .scan(lower, upper, direction, self.guard, &mut |key, value| {
                buffer.push_back((key, value));
                if buffer.len() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
        self.done = buffer.len() < limit;
        if let Some((key, _)) = buffer.back() {
            let reached = reached(key, (lower, upper), direction)?;
            match direction {
                Direction::Forward => self.lower = reached,
                Direction::Reverse => self.upper = reached,
            }
        }
        Ok(())
    }

    fn step(&mut self, direction: Direction) -> Option<Result<Entry<'g>, Error>> {
        let near = |range: &mut Self| match direction {
            Direction::Forward => range.front.pop_front(),
            Direction::Reverse => range.back.pop_front(),
        };
        if let Some(entry) = near(self) {
            return Some(Ok(entry));
        }
        if !self.done
            && let Err(error) = self.fill(direction)
        {
            self.done = true;
            self.front.clear();
            self.back.clear();
            return Some(Err(error));
        }
        // What is left was read ahead from the other end.
        let entry = near(self).or_else(|| match direction {
            Direction::Forward => self.back.pop_back(),
            Direction::Reverse => self.front.pop_back(),
        });
        entry.map(Ok)
    }
}

impl<'g> Iterator for Range<'g> {
    type Item = Result<Entry<'g>, Error>;
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
        f.debug_struct("Range")
            .field("lower", &self.lower)
            .field("upper", &self.upper)
            .finish_non_exhaustive()
    }
}

/// The bound at which a scan between `bounds` goes on, after a batch of it that ended with `key`.
///
/// # Errors
///
/// [`Error::Heap`] where `key` lies before the bound that the batch began at. In a damaged pool keys may come in any
/// order, and the next batch could be the same one again, for ever.
pub fn reached(
    key: &[u8],
    (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
    direction: Direction,
) -> Result<Bound<Vec<u8>>, Error> {
    let goes_on = match direction {
        Direction::Forward => (lower, Bound::Unbounded).contains(key),
        Direction::Reverse => (Bound::Unbounded, upper).contains(key),
    };
    if goes_on {
        Ok(Bound::Excluded(key.to_vec()))
    } else {
        Err(Error::Heap(heap::Error::Damaged {
            what: "a key out of order",
            offset: 0,
        }))
    }
}

/// The least key above every key with this prefix; `None` if there is none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != 0xff)?;
    let mut after = prefix[..=last].to_vec();
    after[last] += 1;
    Some(after)
}
