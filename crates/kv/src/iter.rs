//! Iterators that own what they yield.
//!
//! An [`Iter`] copies a batch of entries at a time and pins the epoch only while it does, so it may be kept as long
//! as one likes and sent to another thread. Iterators that borrow from the pool are in [`reader`](crate::Reader).

use crate::Error;
use index::{Batch, Direction, Index, ReadAhead};
use std::ops::{Bound, ControlFlow};

/// Large values end a batch early.
pub(crate) const BATCH_BYTES: usize = 1 << 20;

/// A key and its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// A double-ended iterator over a map's entries in key order, which owns what it yields.
///
/// Each key that is present all the while is yielded once and none twice; the whole is not one moment's view. An
/// error ends the iteration after it has been yielded once.
pub struct Iter<'m> {
    index: &'m dyn Index,
    ahead: ReadAhead<Vec<u8>, Vec<u8>>,
}

impl<'m> Iter<'m> {
    pub(crate) fn new(index: &'m dyn Index, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Iter<'m> {
        let ahead = ReadAhead::new(lower, upper);
        Iter { index, ahead }
    }

    fn step(&mut self, direction: Direction) -> Option<Result<Entry, Error>> {
        let index = self.index;
        let entry = self.ahead.next(direction, |batch| {
            let Batch {
                lower,
                upper,
                limit,
                entries,
            } = batch;
            let (mut bytes, mut full) = (0, false);
            let guard = heap::pin();
            index.scan(lower, upper, direction, &guard, &mut |key, value| {
                bytes += key.len() + value.len();
                entries.push_back((key.to_vec(), value.to_vec()));
                full = entries.len() >= limit || bytes >= BATCH_BYTES;
                if full {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
            Ok(full)
        });
        entry.map(|entry| Ok(entry?))
    }
}

impl Iterator for Iter<'_> {
    type Item = Result<Entry, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        self.step(Direction::Forward)
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Reverse)
    }
}

impl std::iter::FusedIterator for Iter<'_> {}

impl std::fmt::Debug for Iter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Iter").field(&self.ahead).finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::damaged::Damaged;

    /// Iteration ends, with an error, however the pool is damaged.
    #[test]
    fn keys_out_of_order_end_it() {
        let map = Damaged::endless().map();
        assert!(map.iter().any(|entry| entry.is_err()));
        assert!(map.iter().rev().any(|entry| entry.is_err()));
    }
}
