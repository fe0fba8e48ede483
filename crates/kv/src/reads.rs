//! What a transaction has read, and whether it still holds.
//!
//! I1 The version of a stripe is noted before a key of it is read.
//! I2 A range is noted as far as it was read, with all that the index had there.

use crate::stripes::{Held, StripeId, Stripes};
use crate::{Entry, Error, Map};
use heap::Guard;
use index::Direction;
use std::collections::{BTreeMap, btree_map};
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::Arc;

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    points: BTreeMap<StripeId, Point>,
    pub ranges: Vec<RangeRead>,
}

/// The first key of a stripe that was read, and the stripe's version then.
#[derive(Debug)]
struct Point {
    version: u64,
    map: Map,
    key: Vec<u8>,
}

/// A part of a map that was read from one end to the other.
#[derive(Debug)]
pub(crate) struct RangeRead {
    pub map: Map,
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
    /// All entries there were, in ascending order.
    pub entries: Vec<Entry>,
}

impl Reads {
    /// Notes that a key is about to be read, of a stripe that has this version now.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if another key of the stripe was read at another version.
    pub fn note(&mut self, id: StripeId, version: u64, map: &Map, key: &[u8]) -> Result<(), Error> {
        match self.points.entry(id) {
            btree_map::Entry::Vacant(vacant) => {
                vacant.insert(Point {
                    version,
                    map: map.clone(),
                    key: key.to_vec(),
                });
                Ok(())
            }
            btree_map::Entry::Occupied(point) if point.get().version == version => Ok(()),
            btree_map::Entry::Occupied(point) => Err(point.get().conflict()),
        }
    }

    /// The reads as a commit checks them: ranges are shared with those who look for them.
    pub fn into_parts(self) -> (Points, Arc<[RangeRead]>) {
        (Points(self.points), self.ranges.into())
    }
}

/// The single keys that were read.
#[derive(Debug, Default)]
pub(crate) struct Points(BTreeMap<StripeId, Point>);

impl Points {
    /// Checks that none was changed since it was read, and that none is being changed but by the caller, who holds `held`.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`]
    pub fn check(&self, stripes: &Stripes, held: &[Held<'_>]) -> Result<(), Error> {
        for (&id, point) in &self.0 {
            if !stripes.is_unchanged(id, point.version, held) {
                return Err(point.conflict());
            }
        }
        Ok(())
    }
}

impl Point {
    fn conflict(&self) -> Error {
        Error::conflict(self.map.name(), &self.key)
    }
}

impl RangeRead {
    /// Whether a key of a map lies in it.
    pub fn has(&self, map: &str, key: &[u8]) -> bool {
        let bounds = (
            self.lower.as_ref().map(Vec::as_slice),
            self.upper.as_ref().map(Vec::as_slice),
        );
        self.map.name() == map && RangeBounds::<[u8]>::contains(&bounds, key)
    }

    /// Reads it again, and checks that it holds what it held.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`]
    pub fn check(&self, guard: &Guard) -> Result<(), Error> {
        let mut then = self.entries.iter();
        let mut differs: Option<Vec<u8>> = None;
        self.map.index.scan(
            self.lower.as_ref().map(Vec::as_slice),
            self.upper.as_ref().map(Vec::as_slice),
            Direction::Forward,
            guard,
            &mut |key, value| match then.next() {
                Some((old, held)) if old == key && **held == *value => ControlFlow::Continue(()),
                Some((old, _)) => {
                    differs = Some(key.min(old).to_vec());
                    ControlFlow::Break(())
                }
                None => {
                    differs = Some(key.to_vec());
                    ControlFlow::Break(())
                }
            },
        )?;
        match differs.or_else(|| then.next().map(|(key, _)| key.clone())) {
            Some(key) => Err(Error::conflict(self.map.name(), &key)),
            None => Ok(()),
        }
    }

    /// Forgets what lies behind `last`, which is a key of it, as seen by a reader that goes in this direction.
    pub fn shorten(&mut self, last: &[u8], direction: Direction) {
        match direction {
            Direction::Forward => {
                self.entries.retain(|(key, _)| **key <= *last);
                self.upper = Bound::Included(last.to_vec());
            }
            Direction::Reverse => {
                self.entries.retain(|(key, _)| **key >= *last);
                self.lower = Bound::Included(last.to_vec());
            }
        }
    }
}
