//! The buffered changes to one map.
//!
//! I1 The map with the changes has no key outside of the *rest*, the bounds of what pops have left. A pop narrows the
//!    rest to what lies behind the popped key, and a key that is put outside of the rest widens it again.

use crate::Map;
use crate::read::merge::Bounds;
use index::Direction;
use std::collections::BTreeMap;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// The changed keys of a map, and their new values; `None`: removed.
pub(crate) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The buffered changes to a map.
#[derive(Debug)]
pub(super) struct Layer {
    pub map: Map,
    pub changes: Changes,
    /// Bytes of keys and values.
    pub bytes: usize,
    /// The bounds of what pops have left of the map.
    rest: (Bound<Vec<u8>>, Bound<Vec<u8>>),
}

impl Layer {
    pub fn new(map: &Map) -> Layer {
        Layer {
            map: map.clone(),
            changes: Changes::new(),
            bytes: 0,
            rest: (Bound::Unbounded, Bound::Unbounded),
        }
    }

    /// Returns whether it is of this map. All handles to a map share its index; maps of the same name in other
    /// databases do not.
    pub fn is_of(&self, map: &Map) -> bool {
        std::ptr::addr_eq(Arc::as_ptr(&self.map.index), Arc::as_ptr(&map.index))
    }

    /// Returns the bounds of what pops have left of the map.
    pub fn rest(&self) -> Bounds<'_> {
        let (lower, upper) = &self.rest;
        (
            lower.as_ref().map(Vec::as_slice),
            upper.as_ref().map(Vec::as_slice),
        )
    }

    /// Narrows the rest to what lies behind the first key in this direction, which was removed.
    pub fn exclude(&mut self, key: &[u8], direction: Direction) {
        let behind = Bound::Excluded(key.to_vec());
        match direction {
            Direction::Forward => self.rest.0 = behind,
            Direction::Reverse => self.rest.1 = behind,
        }
    }

    /// Widens the rest, if need be, to contain a key that is put.
    pub fn include(&mut self, key: &[u8]) {
        let (lower, upper) = self.rest();
        let is_above = RangeBounds::<[u8]>::contains(&(lower, Bound::Unbounded), key);
        let is_below = RangeBounds::<[u8]>::contains(&(Bound::Unbounded, upper), key);
        if !is_above {
            self.rest.0 = Bound::Included(key.to_vec());
        }
        if !is_below {
            self.rest.1 = Bound::Included(key.to_vec());
        }
    }
}
