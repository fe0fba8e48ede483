//! Iterators that own what they yield.
//!
//! An [`Iter`] copies a batch of entries at a time and pins the epoch only meanwhile, so it can be kept for any time
//! and sent to another thread; it holds a handle to its map. Iterators that borrow from the pool are in
//! [`reader`](crate::Reader).

use crate::Error;
use crate::entry::{BATCH_BYTES, Entry};
use crate::write::map_index::MapIndex;
use index::{Direction, ReadAhead, Refill};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// A double-ended iterator over a map's entries in key order (a hash table's own order), which owns what it yields.
///
/// It yields each key that is present throughout exactly once, and no key twice, but is not a view of one moment. After
/// it has yielded an error, it ends.
pub struct Iter {
    index: Arc<dyn MapIndex>,
    ahead: ReadAhead<Vec<u8>, Vec<u8>>,
}

impl Iter {
    pub(crate) fn new(index: Arc<dyn MapIndex>, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Iter {
        let ahead = ReadAhead::new(index.order(), lower, upper);
        Iter { index, ahead }
    }

    fn step(&mut self, direction: Direction) -> Option<Result<Entry, Error>> {
        let index = &*self.index;
        let entry = self.ahead.next(direction, |batch| {
            let Refill {
                lower,
                upper,
                limit,
                entries,
            } = batch;
            let (mut bytes, mut full) = (0, false);
            let guard = heap::pin();
            index.walk(lower, upper, direction, &guard, &mut |key, value| {
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

impl Iterator for Iter {
    type Item = Result<Entry, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        self.step(Direction::Forward)
    }
}

impl DoubleEndedIterator for Iter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Reverse)
    }
}

impl std::iter::FusedIterator for Iter {}

impl std::fmt::Debug for Iter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Iter").field(&self.ahead).finish()
    }
}

#[cfg(test)]
mod tests {
    use crate::damaged::Damaged;

    /// Iteration ends with an error, whatever the damage to the pool.
    #[test]
    fn keys_out_of_order_end_it() {
        let map = Damaged::endless().map();
        assert!(map.iter().any(|entry| entry.is_err()));
        assert!(map.iter().rev().any(|entry| entry.is_err()));
    }
}
