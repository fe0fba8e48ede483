//! A transaction's reads, and the check that they are still valid.
//!
//! I1 The version of a stripe is noted before one of its keys is read.
//! I2 A range is noted as far as it was read, with all entries that the index had there.

use crate::Error;
use crate::write::map_index::{KeyState, Point, Points, RangeRead};
use crate::write::stripes::{Held, StripeId, Stripes};
use heap::Guard;
use index::Direction;
use std::collections::btree_map;
use std::ops::{Bound, ControlFlow, RangeBounds};
use std::sync::Arc;

/// The reads of a transaction.
#[derive(Debug, Default)]
pub(crate) struct Reads {
    points: Points,
    pub ranges: Vec<RangeRead>,
    /// A conflict already met: it remains one, even if the key gets its old value back.
    conflict: Option<Error>,
}

impl Reads {
    /// Notes a key's value, which was read when its stripe had this version or a later one.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if the key was read before with a different value.
    pub fn note(&mut self, id: StripeId, version: u64, read: KeyState) -> Result<(), Error> {
        let point = match self.points.0.entry(id) {
            btree_map::Entry::Vacant(vacant) => {
                vacant.insert(Point {
                    version,
                    first: read,
                    others: Vec::new(),
                });
                return Ok(());
            }
            btree_map::Entry::Occupied(point) => point.into_mut(),
        };
        let same = |other: &&KeyState| other.key == read.key && other.map.name() == read.map.name();
        if let Some(before) = point.keys().find(same) {
            if before.value != read.value {
                self.conflict = Some(before.conflict());
                return Err(before.conflict());
            }
            return Ok(());
        }
        point.others.push(read);
        Ok(())
    }

    /// Returns the reads as a commit checks them: the writers that look for ranges share them.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if the reads have met one.
    pub fn into_parts(self) -> Result<(Arc<Points>, Arc<[RangeRead]>), Error> {
        match self.conflict {
            Some(conflict) => Err(conflict),
            None => Ok((Arc::new(self.points), self.ranges.into())),
        }
    }
}

/// The reads that a commit announces while it checks them: ranges, and single keys if these are not checked by their
/// stripes' versions.
#[derive(Clone, Debug, Default)]
pub(crate) struct AnnouncedReads {
    pub ranges: Arc<[RangeRead]>,
    pub points: Option<Arc<Points>>,
}

impl AnnouncedReads {
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty() && self.points.is_none()
    }

    /// Returns whether a key of a map, which has this stripe, was read.
    pub fn has(&self, stripe: StripeId, map: &str, key: &[u8]) -> bool {
        self.ranges.iter().any(|range| range.has(map, key))
            || self
                .points
                .as_ref()
                .is_some_and(|points| points.has(stripe, map, key))
    }

    /// Reads all of it again, and checks that it is unchanged.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`]
    pub fn check(&self, guard: &Guard) -> Result<(), Error> {
        self.ranges.iter().try_for_each(|range| range.check(guard))?;
        self.points.as_ref().map_or(Ok(()), |points| points.check(guard))
    }
}

impl Points {
    /// Returns the stripes of all keys.
    pub fn stripes(&self) -> impl Iterator<Item = StripeId> {
        self.0.keys().copied()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a key of a map, which has this stripe, is among them.
    fn has(&self, stripe: StripeId, map: &str, key: &[u8]) -> bool {
        let is_read = |read: &KeyState| read.key == key && read.map.name() == map;
        self.0.get(&stripe).is_some_and(|point| point.keys().any(is_read))
    }

    /// Reads them again, and checks that they are unchanged.
    fn check(&self, guard: &Guard) -> Result<(), Error> {
        self.0.values().try_for_each(|point| point.check(guard))
    }

    /// Finds, for each stripe, a version at which its keys have the values read. That is the noted version; or, if the
    /// stripe's version has changed (perhaps because of other keys only), the present one, if the keys still have these
    /// values when they are read again after that.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if a key has another value, or another thread holds its stripe.
    pub fn refresh(
        &self,
        stripes: &Stripes,
        held: &[Held<'_>],
        guard: &Guard,
    ) -> Result<Versions<'_>, Error> {
        let refresh = |(&id, point): (&StripeId, &'_ Point)| {
            let mut version = point.version;
            if !stripes.is_unchanged(id, version, held) {
                let now = stripes.version_now(id, held);
                version = now.ok_or_else(|| point.first.conflict())?;
                point.check(guard)?;
            }
            Ok((id, version))
        };
        let versions = self.0.iter().map(refresh).collect::<Result<_, Error>>()?;
        Ok(Versions {
            points: self,
            versions,
        })
    }
}

/// Versions of stripes at which all reads are valid.
#[derive(Debug)]
pub(crate) struct Versions<'p> {
    points: &'p Points,
    versions: Vec<(StripeId, u64)>,
}

impl Versions<'_> {
    /// Checks that the stripes still have these versions, and that no other thread holds one; the caller holds `held`.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`]
    pub fn check(&self, stripes: &Stripes, held: &[Held<'_>]) -> Result<(), Error> {
        for (&(id, version), point) in self.versions.iter().zip(self.points.0.values()) {
            if !stripes.is_unchanged(id, version, held) {
                return Err(point.first.conflict());
            }
        }
        Ok(())
    }
}

impl Point {
    fn keys(&self) -> impl Iterator<Item = &KeyState> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn check(&self, guard: &Guard) -> Result<(), Error> {
        for key in self.keys() {
            if !key.holds(guard)? {
                return Err(key.conflict());
            }
        }
        Ok(())
    }
}

impl RangeRead {
    /// Returns whether a key of a map lies in it.
    pub fn has(&self, map: &str, key: &[u8]) -> bool {
        let bounds = (
            self.lower.as_ref().map(Vec::as_slice),
            self.upper.as_ref().map(Vec::as_slice),
        );
        self.map.name() == map && RangeBounds::<[u8]>::contains(&bounds, key)
    }

    /// Reads it again, and checks that it is unchanged.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`]
    pub fn check(&self, guard: &Guard) -> Result<(), Error> {
        let mut then = self.entries.iter();
        let mut differs: Option<Vec<u8>> = None;
        self.map.bare().scan(
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

    /// Drops the part after the key `last`, which lies in the range, as seen by a reader in this direction.
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
