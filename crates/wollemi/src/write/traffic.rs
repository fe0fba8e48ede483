//! The steps that writes of all maps of a database share, and a map's index as the code after these steps sees it.

use crate::write::active::Active;
use crate::write::before_images::BeforeImages;
use crate::write::commit::Plan;
use crate::write::gate::{Closed, Gate};
use crate::write::intent::KeyChange;
use crate::write::journal::{AsLogError, Durability, Journal};
use crate::write::stripes::{StripeId, Stripes};
use crate::write::watch::Watches;
use index::{Action, Edit, Error, Index, Remove, Upsert};
use log::Lsn;
use std::sync::{Arc, OnceLock};

/// State shared by the maps of a database.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub gate: Gate,
    pub stripes: Stripes,
    pub active: Active,
    pub before_images: BeforeImages,
    pub watches: Arc<Watches>,
    /// The log, in a database that has one.
    pub journal: OnceLock<Arc<Journal>>,
    #[cfg(feature = "doubles")]
    pub doubles: Doubles,
}

/// State that lives as long as any handle of a database or of a map.
pub(crate) trait Alive: Send + Sync {}

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
    ) -> Result<Action, Error>;

    /// Writes, for a thread that holds the key's stripe. Appends the change to the log if [`Recording`] says so.
    fn write_held(&self, key: &[u8], edit: &mut dyn Edit, recording: Recording) -> Result<Action, Error>;

    /// Returns the index itself: its reads do not wait for durability, and its writes are not logged.
    fn bare(&self) -> &dyn Index;

    /// Returns the stripe of a key.
    fn stripe_of(&self, key: &[u8]) -> StripeId;

    /// Closes the database's gate.
    fn close_gate(&self) -> Result<Closed<'_>, Error>;

    /// Returns the database's shared state.
    fn traffic(&self) -> &Arc<Traffic>;

    /// Commits what `plan` returns; calls it again after a conflict, as the default [`Retry`](crate::Retry) says.
    fn commit(&self, plan: &mut dyn FnMut() -> Result<Plan, crate::Error>) -> Result<(), crate::Error>;
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

impl Traffic {
    /// Waits until everything that could be read of keys with this stripe is durable.
    #[inline]
    pub fn settle_key(&self, stripe: impl FnOnce() -> StripeId) -> Result<(), Error> {
        match self.journal.get() {
            Some(journal) if !journal.log().is_settled() => journal.settle(journal.last(stripe())),
            _ => Ok(()),
        }
    }

    /// Waits until everything that could be read is durable.
    #[inline]
    pub fn settle_all(&self) -> Result<(), Error> {
        match self.journal.get() {
            Some(journal) => journal.settle(journal.newest()),
            None => Ok(()),
        }
    }

    /// Returns the end of the last record of an immediate write of keys with these stripes.
    pub fn last(&self, stripes: impl Iterator<Item = StripeId>) -> Lsn {
        match self.journal.get() {
            Some(journal) => stripes.map(|id| journal.last(id)).max().unwrap_or_default(),
            None => Lsn::default(),
        }
    }

    /// Waits until everything below the position is durable.
    pub fn settle(&self, end: Lsn) -> Result<(), Error> {
        match self.journal.get() {
            Some(journal) => journal.settle(end),
            None => Ok(()),
        }
    }

    /// Waits until everything appended is durable, for a write that failed after appending its record. If the pool had
    /// no room for the write, another record undoes the first: if only the first survived a loss of power, the write
    /// would be applied. If the write was committed but cannot be completed, its error says so.
    #[cold]
    pub fn settle_appended(&self) -> Result<(), Error> {
        match self.journal.get() {
            Some(journal) => journal.settle(journal.log().appended()),
            None => Ok(()),
        }
    }

    /// Runs an operation that the log may refuse because of its limit, and again when there is room.
    pub fn with_log_room<R, E: From<Error> + AsLogError>(
        &self,
        mut run: impl FnMut() -> Result<R, E>,
    ) -> Result<R, E> {
        match self.journal.get() {
            Some(journal) => journal.with_room(run),
            None => run(),
        }
    }
}

/// Applies a change in the map's index, for a thread that holds its stripe.
pub(crate) fn make(
    change: &KeyChange<'_>,
    index: &dyn MapIndex,
    recording: Recording,
) -> Result<(), crate::Error> {
    match change.value {
        Some(value) => index.write_held(change.key, &mut Upsert(value), recording)?,
        None => index.write_held(change.key, &mut Remove, recording)?,
    };
    Ok(())
}

/// A hook that a test has installed before the commits of a database.
#[cfg(feature = "doubles")]
#[derive(Default)]
pub(crate) struct Doubles(pub std::sync::OnceLock<BeforeCommit>);

/// The hook called before each commit.
#[cfg(feature = "doubles")]
pub(crate) type BeforeCommit = Box<dyn Fn() -> Result<(), crate::Error> + Send + Sync>;

#[cfg(feature = "doubles")]
impl Doubles {
    pub fn before_commit(&self) -> Result<(), crate::Error> {
        self.0.get().map_or(Ok(()), |before| before())
    }
}

#[cfg(feature = "doubles")]
impl std::fmt::Debug for Doubles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doubles").finish_non_exhaustive()
    }
}
