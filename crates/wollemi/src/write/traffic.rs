//! The steps that writes of all maps of a database share.

use crate::write::active::Active;
use crate::write::before_images::BeforeImages;
use crate::write::gate::Gate;
use crate::write::journal::{Journal, WriteError};
use crate::write::stripes::{StripeId, Stripes};
use crate::write::watch::Watches;
use index::Error;
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

impl Traffic {
    /// Waits until all immediate writes that a read of a key with this stripe can have seen are durable.
    #[inline]
    pub fn settle_key(&self, stripe: impl FnOnce() -> StripeId) -> Result<(), Error> {
        match self.journal.get() {
            Some(journal) if !journal.log().is_settled() => journal.settle(journal.last(stripe())),
            _ => Ok(()),
        }
    }

    /// Waits until all immediate writes that a read can have seen are durable.
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

    /// Returns whether [`settle`](Traffic::settle) would wait.
    #[inline]
    pub fn would_wait(&self, end: Lsn) -> bool {
        self.journal.get().is_some_and(|journal| journal.would_wait(end))
    }

    /// Waits until everything appended is durable, for a write that failed after appending its record. If the pool had
    /// no room for the write, another record undoes the first: if only the first survived a loss of power, the write
    /// would be applied. If the write was committed but cannot be completed, its error says that it is committed, so
    /// its record must survive.
    #[cold]
    pub fn settle_appended(&self) -> Result<(), Error> {
        match self.journal.get() {
            Some(journal) => journal.settle(journal.log().appended()),
            None => Ok(()),
        }
    }

    /// Called after a write: ends the refusal of writes once the log has room again.
    #[inline]
    pub fn note_log_room(&self) {
        if let Some(journal) = self.journal.get() {
            journal.note_room();
        }
    }

    /// Runs an operation that the log may refuse because of its limit, and again when there is room.
    pub fn with_log_room<R, E: From<Error> + WriteError>(
        &self,
        mut run: impl FnMut() -> Result<R, E>,
    ) -> Result<R, E> {
        match self.journal.get() {
            Some(journal) => journal.with_room(run),
            None => run(),
        }
    }
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
