//! Entries, in the form that all components use: pairs, or marks of removed keys.

pub(crate) use index::codec::{SearchKey, in_place};

use index::Direction;
use index::codec::PairWords;
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

/// The order in which a walk in this direction meets two keys.
#[inline]
pub(crate) fn in_direction(order: Ordering, direction: Direction) -> Ordering {
    match direction {
        Direction::Forward => order,
        Direction::Reverse => order.reverse(),
    }
}
