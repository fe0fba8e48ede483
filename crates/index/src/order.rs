//! The order in which an index visits its keys.
//!
//! An ordered index visits them by their bytes. One without order of keys still has *an* order, so that a walk over
//! everything can stop, and continue later behind the last key visited: a hash table uses the hash, and the bytes
//! among keys with the same hash. A key alone determines its place, so it is the whole cursor of a walk, however the
//! index changes meanwhile.

use crate::Error;
use std::cmp::Ordering;
use std::ops::Bound;

/// The direction of a walk or a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first key on.
    Forward,
    /// From the last key back.
    Reverse,
}

/// The order in which an index visits its keys.
#[derive(Clone, Copy, Debug)]
pub enum Order {
    /// By their bytes: ranges and prefixes are contiguous.
    Keys,
    /// By the rank that this function computes of a key, and by bytes among keys of the same rank; the rank of the
    /// empty key is 0, so that it comes first in every order. Such an index can be walked, but has no ranges of keys.
    Ranks(fn(&[u8]) -> u64),
}

/// The place of a key in an order.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OrderedPlace {
    rank: u64,
    /// The key.
    pub key: Box<[u8]>,
}

impl Order {
    /// Whether this is the order of the keys' bytes.
    #[inline]
    pub const fn is_by_keys(self) -> bool {
        matches!(self, Order::Keys)
    }

    #[inline]
    fn rank(self, key: &[u8]) -> u64 {
        match self {
            Order::Keys => 0,
            Order::Ranks(rank) => rank(key),
        }
    }

    /// The place of the key.
    pub fn place(self, key: &[u8]) -> OrderedPlace {
        OrderedPlace {
            rank: self.rank(key),
            key: key.into(),
        }
    }

    /// Compares the places of two keys.
    pub fn compare(self, key: &[u8], other: &[u8]) -> Ordering {
        let ranks = self.rank(key).cmp(&self.rank(other));
        ranks.then_with(|| key.cmp(other))
    }

    /// Sorts items by their keys. It ranks each key once, while a sort by [`compare`](Order::compare) would rank two
    /// at each comparison.
    pub fn sort<T>(self, items: &mut [T], key: impl Fn(&T) -> &[u8]) {
        match self {
            Order::Keys => items.sort_by(|a, b| key(a).cmp(key(b))),
            Order::Ranks(_) => items.sort_by_cached_key(|item| self.place(key(item))),
        }
    }

    /// Whether a visit in this direction reaches `key` before `other`.
    pub fn comes_first(self, key: &[u8], other: &[u8], direction: Direction) -> bool {
        self.compare(key, other)
            == match direction {
                Direction::Forward => Ordering::Less,
                Direction::Reverse => Ordering::Greater,
            }
    }

    /// Whether the key lies between the bounds.
    pub fn contains(self, (lower, upper): (Bound<&[u8]>, Bound<&[u8]>), key: &[u8]) -> bool {
        let above = match lower {
            Bound::Included(low) => self.compare(low, key).is_le(),
            Bound::Excluded(low) => self.compare(low, key).is_lt(),
            Bound::Unbounded => true,
        };
        above
            && match upper {
                Bound::Included(high) => self.compare(key, high).is_le(),
                Bound::Excluded(high) => self.compare(key, high).is_lt(),
                Bound::Unbounded => true,
            }
    }

    /// Whether anything can lie between the bounds: `BTreeMap::range` panics on crossed ones.
    pub fn has_between(self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
        match (lower, upper) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
            (Bound::Included(low), Bound::Included(high)) => self.compare(low, high).is_le(),
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
                self.compare(low, high).is_lt()
            }
        }
    }

    /// Fails unless the order is that of the keys' bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Unordered`]
    pub fn require_keys(self) -> Result<(), Error> {
        match self {
            Order::Keys => Ok(()),
            Order::Ranks(_) => Err(Error::Unordered),
        }
    }

    /// Fails for a range of keys if the order is not theirs. Unbounded on both sides does not count as a range.
    ///
    /// # Errors
    ///
    /// [`Error::Unordered`]
    pub fn take_range(self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Result<(), Error> {
        match (lower, upper) {
            (Bound::Unbounded, Bound::Unbounded) => Ok(()),
            _ => self.require_keys(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys with a smaller last byte come first; among those with the same one, the smaller key.
    fn last(key: &[u8]) -> u64 {
        key.last().copied().unwrap_or_default().into()
    }

    /// Comparisons, bounds and places agree for all pairs.
    #[test]
    fn all_that_an_order_says_agrees() {
        let keys: [&[u8]; 6] = [b"", b"a", b"ba", b"b", b"ab", b"\0"];
        for order in [Order::Keys, Order::Ranks(last)] {
            for a in keys {
                for b in keys {
                    let compared = order.compare(a, b);
                    assert_eq!(order.place(a).cmp(&order.place(b)), compared);
                    assert_eq!(order.comes_first(a, b, Direction::Forward), compared.is_lt());
                    assert_eq!(order.comes_first(a, b, Direction::Reverse), compared.is_gt());
                    let (from, to) = (Bound::Included(a), Bound::Excluded(b));
                    assert_eq!(order.contains((from, Bound::Unbounded), b), compared.is_le());
                    assert_eq!(order.contains((Bound::Unbounded, to), a), compared.is_lt());
                    assert_eq!(order.has_between(from, to), compared.is_lt());
                    assert_eq!(order.has_between(from, Bound::Included(b)), compared.is_le());
                    assert_eq!(order.take_range(from, to).is_ok(), order.is_by_keys());
                }
            }
            assert!(order.take_range(Bound::Unbounded, Bound::Unbounded).is_ok());
        }
        for order in [Order::Keys, Order::Ranks(last)] {
            let mut sorted = keys;
            order.sort(&mut sorted, |key| key);
            assert!(sorted.is_sorted_by(|a, b| order.compare(a, b).is_lt()));
        }
        assert_eq!(Order::Ranks(last).compare(b"ba", b"b"), Ordering::Less);
        assert_eq!(Order::Keys.compare(b"ba", b"b"), Ordering::Greater);
    }
}
