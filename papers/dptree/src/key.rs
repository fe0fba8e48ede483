//! Entries, in the form that all components use: pairs, or marks of removed keys.

pub(crate) use index::codec::{SearchKey, in_place};

use heap::Access;
use index::Direction;
use index::codec::{PairWords, checksum};
use pmem::{Fault, Media};
use std::cmp::Ordering;
use std::ops::Deref;

/// A key with its value, or with a mark that it was removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MarkedPair {
    pub(crate) pair: PairWords,
    /// Whether the key was removed.
    pub(crate) removed: bool,
}

impl Deref for MarkedPair {
    type Target = PairWords;
    #[inline]
    fn deref(&self) -> &PairWords {
        &self.pair
    }
}

impl MarkedPair {
    /// The hash of the key.
    #[inline]
    pub(crate) fn hash<M: Media>(&self, heap: &Access<M>) -> Result<u64, Fault> {
        match self.link.is_null() {
            true => Ok(checksum(&self.prefix.to_be_bytes())),
            false => Ok(self.key(heap, &mut [0; 8])?.hash()),
        }
    }
}

/// The order in which a walk in this direction meets two keys.
#[inline]
pub(crate) fn in_direction(order: Ordering, direction: Direction) -> Ordering {
    match direction {
        Direction::Forward => order,
        Direction::Reverse => order.reverse(),
    }
}
