//! Reading ahead: the state that an iterator over an index keeps between two scans.
//!
//! Entries are read in batches from either end of a range, and the next batch begins behind the last key read; so an
//! iterator holds no place inside the index that a writer could move. How a batch is read and how its entries are
//! held (borrowed, copied) is up to the iterator.

use crate::{Direction, Error, Order};
use std::collections::VecDeque;
use std::fmt;
use std::ops::Bound;

const FIRST_BATCH: usize = 16;
const LARGEST_BATCH: usize = 512;

/// The entries read and not yet yielded, and the range not yet read.
pub struct ReadAhead<K, V> {
    order: Order,
    lower: Bound<Vec<u8>>,
    upper: Bound<Vec<u8>>,
    /// From the front, in order.
    front: VecDeque<(K, V)>,
    /// From the back, in reverse order.
    back: VecDeque<(K, V)>,
    batch: usize,
    /// The error to return instead of reading.
    refused: Option<Error>,
    done: bool,
}

/// A batch to be filled by a walk.
#[derive(Debug)]
pub struct Refill<'b, K, V> {
    /// The lower bound of the range.
    pub lower: Bound<&'b [u8]>,
    /// The upper bound of the range.
    pub upper: Bound<&'b [u8]>,
    /// Maximum number of entries.
    pub limit: usize,
    /// Receives the entries, in the order of the scan.
    pub entries: &'b mut VecDeque<(K, V)>,
}

impl<K: AsRef<[u8]>, V> ReadAhead<K, V> {
    /// An empty buffer for the range between the bounds. The first call of [`next`](ReadAhead::next) fails if the order
    /// is not that of the keys, unless both bounds are open ([`Error::Unordered`]).
    pub fn new(order: Order, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> ReadAhead<K, V> {
        let refused = order.take_range(lower, upper).err();
        ReadAhead {
            order,
            lower: lower.map(<[u8]>::to_vec),
            upper: upper.map(<[u8]>::to_vec),
            front: VecDeque::new(),
            back: VecDeque::new(),
            batch: FIRST_BATCH,
            done: refused.is_some(),
            refused,
        }
    }

    /// The next entry from one end. If none is buffered, `scan` fills a batch and returns whether it stopped before
    /// the end of the range. An error ends the iteration after it has been returned once.
    pub fn next(
        &mut self,
        direction: Direction,
        scan: impl FnOnce(Refill<'_, K, V>) -> Result<bool, Error>,
    ) -> Option<Result<(K, V), Error>> {
        if let Some(refused) = self.refused.take() {
            return Some(Err(refused));
        }
        let near = |ahead: &mut Self| match direction {
            Direction::Forward => ahead.front.pop_front(),
            Direction::Reverse => ahead.back.pop_front(),
        };
        if let Some(entry) = near(self) {
            return Some(Ok(entry));
        }
        if !self.done
            && let Err(error) = self.fill(direction, scan)
        {
            self.done = true;
            self.front.clear();
            self.back.clear();
            return Some(Err(error));
        }
        // The remaining entries were read ahead from the other end.
        let entry = near(self).or_else(|| match direction {
            Direction::Forward => self.back.pop_back(),
            Direction::Reverse => self.front.pop_back(),
        });
        entry.map(Ok)
    }

    fn fill(
        &mut self,
        direction: Direction,
        scan: impl FnOnce(Refill<'_, K, V>) -> Result<bool, Error>,
    ) -> Result<(), Error> {
        let entries = match direction {
            Direction::Forward => &mut self.front,
            Direction::Reverse => &mut self.back,
        };
        let lower = self.lower.as_ref().map(Vec::as_slice);
        let upper = self.upper.as_ref().map(Vec::as_slice);
        let batch = Refill {
            lower,
            upper,
            limit: self.batch,
            entries: &mut *entries,
        };
        self.batch = (self.batch * 2).min(LARGEST_BATCH);
        self.done = !scan(batch)?;
        if let Some((key, _)) = entries.back() {
            match direction {
                Direction::Forward => self.lower = behind(self.order, key.as_ref(), lower, direction)?,
                Direction::Reverse => self.upper = behind(self.order, key.as_ref(), upper, direction)?,
            }
        }
        Ok(())
    }
}

impl<K, V> fmt::Debug for ReadAhead<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAhead")
            .field("lower", &self.lower)
            .field("upper", &self.upper)
            .finish_non_exhaustive()
    }
}

/// The bound at which a walk in this order continues, after a batch that began at `from` and ended with `key`.
///
/// # Errors
///
/// [`Error::Heap`] if `key` does not lie behind `from`. In a damaged pool keys may come in any order, and the next
/// batch could be the same one again, for ever.
pub fn behind(
    order: Order,
    key: &[u8],
    from: Bound<&[u8]>,
    direction: Direction,
) -> Result<Bound<Vec<u8>>, Error> {
    check_progress(order, key, from, direction)?;
    Ok(Bound::Excluded(key.to_vec()))
}

/// Checks that a walk in this order, which began at `from`, has reached a key behind it.
///
/// # Errors
///
/// [`Error::Heap`] if `key` does not lie behind `from`: see [`behind`].
pub fn check_progress(
    order: Order,
    key: &[u8],
    from: Bound<&[u8]>,
    direction: Direction,
) -> Result<(), Error> {
    let remaining = match direction {
        Direction::Forward => (from, Bound::Unbounded),
        Direction::Reverse => (Bound::Unbounded, from),
    };
    if order.contains(remaining, key) {
        Ok(())
    } else {
        Err(Error::Heap(heap::Error::Damaged {
            what: "a key out of order",
            offset: 0,
        }))
    }
}

/// The bounds that contain exactly the keys with this prefix.
pub fn prefix_bounds(prefix: &[u8]) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let upper = match prefix.iter().rposition(|&byte| byte != 0xff) {
        // No key is above all keys with this prefix.
        None => Bound::Unbounded,
        Some(last) => {
            let mut after = prefix[..=last].to_vec();
            after[last] += 1;
            Bound::Excluded(after)
        }
    };
    (Bound::Included(prefix.to_vec()), upper)
}
