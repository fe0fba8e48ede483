//! The stations that writes of all maps of a database pass, and a map's index as the code behind them sees it.

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

/// What the maps of a database have in common.
#[derive(Debug, Default)]
pub(crate) struct Traffic {
    pub gate: Gate,
    pub stripes: Stripes,
    pub active: Active,
    pub before_images: BeforeImages,
    pub watches: Arc<Watches>,
    /// The log, of a database that has one.
    pub journal: OnceLock<Arc<Journal>>,
    #[cfg(feature = "doubles")]
    pub doubles: Doubles,
}

/// What lives as long as any handle of a database or of a map.
pub(crate) trait Alive: Send + Sync {}

/// An index behind the gate.
pub(crate) trait MapIndex: Index {
    /// The map's name.
    fn name(&self) -> &str;

    /// Writes, and is durable as asked for; where nothing is asked for, as the database's writes are.
    fn write_durably(
        &self,
        key: &[u8],
        edit: &mut dyn Edit,
        durability: Option<Durability>,
    ) -> Result<Action, Error>;

    /// Writes, for a thread that holds the key's stripe. A change that is [not in the log](Recording::Append) yet is
    /// appended.
    fn write_held(&self, key: &[u8], edit: &mut dyn Edit, recording: Recording) -> Result<Action, Error>;

    /// The index itself: reads of it do not wait until what they see is durable, and its writes are in no log.
    fn bare(&self) -> &dyn Index;

    /// The stripe of a key.
    fn stripe_of(&self, key: &[u8]) -> StripeId;

    /// Closes the database's gate.
    fn close_gate(&self) -> Result<Closed<'_>, Error>;

    /// The database's.
    fn traffic(&self) -> &Arc<Traffic>;

    /// Commits what `plan` plans; has it plan anew after a conflict, as the default [`Retry`](crate::Retry) says.
    fn commit(&self, plan: &mut dyn FnMut() -> Result<Plan, crate::Error>) -> Result<(), crate::Error>;
}

impl std::fmt::Debug for dyn MapIndex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MapIndex")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// Whether a write has to be appended to the log.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recording {
    /// It is to be, so durable; as the database's writes are, if nothing is said.
    Append(Option<Durability>),
    /// It is there already, as a part of a commit.
    Done,
}

impl Traffic {
    /// Returns when what was read of keys with this stripe is durable.
    #[inline]
    pub fn settle_key(&self, stripe: impl FnOnce() -> StripeId) -> Result<(), Error> {
        match self.journal.get() {
            Some(journal) if !journal.log().is_settled() => journal.settle(journal.last(stripe())),
            _ => Ok(()),
        }
    }

    /// Returns when all that could be read is durable.
    #[inline]
    pub fn settle_all(&self) -> Result<(), Error> {
        match self.journal.get() {
            Some(journal) => journal.settle(journal.newest()),
            None => Ok(()),
        }
    }

    /// The end of the last record of an immediate write of keys with these stripes.
    pub fn last(&self, stripes: impl Iterator<Item = StripeId>) -> Lsn {
        match self.journal.get() {
            Some(journal) => stripes.map(|id| journal.last(id)).max().unwrap_or_default(),
            None => Lsn::default(),
        }
    }

    /// Returns when everything below the position is durable.
    pub fn settle(&self, end: Lsn) -> Result<(), Error> {
        match self.journal.get() {
            Some(journal) => journal.settle(end),
            None => Ok(()),
        }
    }

    /// Returns when all that was appended is durable: for a write that has failed after it has a record. One that finds
    /// no room in the pool has another record that undoes the first: were the first alone to survive a loss of power,
    /// the write would be made. One that is committed and cannot be finished says so.
    #[cold]
    pub fn settle_appended(&self) -> Result<(), Error> {
        match self.journal.get() {
            Some(journal) => journal.settle(journal.log().appended()),
            None => Ok(()),
        }
    }

    /// Runs what may be refused since the log has reached its limit, and once more when there is room in it.
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

/// Makes a change, in the map's index, for a thread that holds its stripe.
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

/// What a test has put before the commits of a database.
#[cfg(feature = "doubles")]
#[derive(Default)]
pub(crate) struct Doubles(pub std::sync::OnceLock<BeforeCommit>);

/// What is asked before each commit.
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
