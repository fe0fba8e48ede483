//! A map's index behind the gate, and the plan of a commit. The two name each other: an index commits a plan, and a
//! plan names the indexes of the maps that it reads and changes.

use crate::write::gate::{Closed, Gate};
use crate::write::intent::KeyChange;
use crate::write::journal::{Durability, Journal};
use crate::write::stripes::StripeId;
use crate::write::watch::Watches;
use crate::{Entry, Error};
use heap::Guard;
use index::{Action, Edit, Index, Remove, Upsert};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

/// An index behind the gate.
pub(crate) trait MapIndex: Index {
    /// Returns the map's name.
    fn name(&self) -> &str;

    /// Writes with this durability, or with the database's default.
    fn write_durably(
        &self,
        key: &[u8],
        edit: &mut dyn Edit,
        durability: Option<Durability>,
    ) -> Result<Action, index::Error>;

    /// Writes, for a thread that holds the key's stripe. Appends the change to the log if [`Recording`] says so.
    fn write_held(
        &self,
        key: &[u8],
        edit: &mut dyn Edit,
        recording: Recording,
    ) -> Result<Action, index::Error>;

    /// Returns the index itself: its reads do not wait for durability, and its writes are not logged.
    fn bare(&self) -> &dyn Index;

    /// Returns the stripe of a key.
    fn stripe_of(&self, key: &[u8]) -> StripeId;

    /// Closes the database's gate.
    fn close_gate(&self) -> Result<Closed<'_>, index::Error>;

    /// Returns the database's gate, which no other database has.
    fn gate(&self) -> &Gate;

    /// Returns the database's log, if it has one.
    fn journal(&self) -> Option<&Arc<Journal>>;

    /// Returns the watches of the database's maps.
    fn watches(&self) -> &Arc<Watches>;

    /// Commits what `plan` returns; calls it again after a conflict, as the default [`Retry`](crate::Retry) says.
    fn commit(&self, plan: &mut dyn FnMut() -> Result<Plan, Error>) -> Result<(), Error>;
}

impl std::fmt::Debug for dyn MapIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MapIndex")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// Whether a write must be appended to the log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recording {
    /// It must, with this durability; `None`: the database's default.
    Append(Option<Durability>),
    /// Its commit has already appended it.
    Done,
}

/// Applies a change in the map's index, for a thread that holds its stripe.
pub(crate) fn make(change: &KeyChange<'_>, index: &dyn MapIndex, recording: Recording) -> Result<(), Error> {
    match change.value {
        Some(value) => index.write_held(change.key, &mut Upsert(value), recording)?,
        None => index.write_held(change.key, &mut Remove, recording)?,
    };
    Ok(())
}

/// A key and its present or future value.
#[derive(Clone, Debug)]
pub(crate) struct KeyState {
    pub map: Arc<dyn MapIndex>,
    pub key: Vec<u8>,
    pub value: Option<Vec<u8>>,
}

impl KeyState {
    pub fn new(map: &Arc<dyn MapIndex>, key: &[u8], value: Option<&[u8]>) -> KeyState {
        KeyState {
            map: map.clone(),
            key: key.to_vec(),
            value: value.map(<[u8]>::to_vec),
        }
    }

    pub fn change(&self) -> KeyChange<'_> {
        KeyChange {
            map: self.map.name(),
            key: &self.key,
            value: self.value.as_deref(),
        }
    }

    pub fn stripe(&self) -> StripeId {
        self.map.stripe_of(&self.key)
    }

    pub fn conflict(&self) -> Error {
        Error::conflict(self.map.name(), &self.key)
    }

    pub fn holds(&self, guard: &Guard) -> Result<bool, Error> {
        let found = self.map.bare().get(&self.key, guard)?;
        Ok(found.as_deref() == self.value.as_deref())
    }
}

/// A commit's content: changes of different keys, to be applied if all expectations and reads still hold.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub changes: Arc<[KeyState]>,
    pub expected: Vec<KeyState>,
    pub points: Arc<Points>,
    pub ranges: Arc<[RangeRead]>,
    /// Whether the single keys read are checked as ranges of one key.
    pub announces_points: bool,
    /// `None`: the database's default.
    pub durability: Option<Durability>,
}

/// The single keys read, by their stripes.
#[derive(Debug, Default)]
pub(crate) struct Points(pub BTreeMap<StripeId, Point>);

/// The keys of a stripe that were read, and their values; none was read before the stripe had this version.
#[derive(Debug)]
pub(crate) struct Point {
    pub version: u64,
    pub first: KeyState,
    pub others: Vec<KeyState>,
}

/// A part of a map that was read from one end to the other.
#[derive(Debug)]
pub(crate) struct RangeRead {
    pub map: Arc<dyn MapIndex>,
    pub lower: Bound<Vec<u8>>,
    pub upper: Bound<Vec<u8>>,
    /// All its entries, in ascending order.
    pub entries: Vec<Entry>,
}
