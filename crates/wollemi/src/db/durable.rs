//! When writes are durable; the log and its checkpoints.

use super::{Db, Inner};
use crate::files_error::FilesError;
use crate::report::{Checkpoint, LogStats};
use crate::write::journal::{Durability, Journal};
use crate::write::store::Store;
use crate::write::turn::{PausedTurn, Turn};
use crate::{Error, Level, Media};
use pmem::Pool;
use std::sync::Arc;
use std::time::Duration;

impl<M: Media> Db<M> {
    /// Waits until all writes that have returned are durable, [eventual](crate::Durability::Eventual) ones included. In
    /// a [turn](Db::turn) it returns at once, and the turn waits for them. At the levels `process` and `power` all are
    /// durable already.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] where the disk refuses.
    pub fn sync(&self) -> Result<(), Error> {
        match self.journal() {
            Some(journal) => Ok(journal.settle(journal.log().appended())?),
            None => Ok(()),
        }
    }

    fn journal(&self) -> Option<&Arc<Journal>> {
        self.store().traffic.journal.get()
    }

    /// Begins a turn: operations of this thread that do not each wait until they are durable; they wait together when
    /// the turn [ends](Turn::end). Until then their results must not leave the program. (A server does so with requests
    /// that came together.) At levels other than `disk` it does nothing.
    ///
    /// ```
    /// # let db = wollemi::Db::anonymous()?;
    /// # let map = db.map("letters")?;
    /// let turn = db.turn();
    /// map.upsert("a", "alpha")?;
    /// map.upsert("b", "beta")?;
    /// turn.end()?; // one sync for both
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn turn(&self) -> Turn<'_> {
        self.resume(PausedTurn::default())
    }

    /// Continues a turn that was [paused](Turn::pause), perhaps on another thread. A turn of another database stays that
    /// database's.
    pub fn resume(&self, turn: PausedTurn) -> Turn<'_> {
        Turn::resume(self.journal(), turn)
    }

    /// Whether all results of this thread's turn are durable already, so that its end would not wait.
    #[inline]
    pub fn is_turn_durable(&self) -> bool {
        self.journal().is_none_or(|journal| journal.is_turn_durable())
    }

    /// Waits until all results of this thread's turn so far are durable; the turn continues.
    ///
    /// # Errors
    ///
    /// [`Error::Index`], where it is not known whether it is.
    pub fn settle_turn(&self) -> Result<(), Error> {
        match self.journal() {
            Some(journal) => Ok(journal.settle_turn()?),
            None => Ok(()),
        }
    }

    /// The failed sync that has stopped all writing, in a database of level `disk`; `None` if there was none. Until the
    /// database is opened again, writes fail, and so do reads of data that was not durable then.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.journal()?.log().failure()
    }

    /// The default durability of writes, in a database of level `disk`.
    pub fn durability(&self) -> Durability {
        self.journal()
            .map_or(Durability::Immediate, |journal| journal.durability())
    }

    /// Sets the default durability of writes, in a database of level `disk`. No write that is still eventual by the
    /// former default is under way when [`Immediate`](Durability::Immediate) has been set: [`sync`](Db::sync) makes all
    /// of them durable then.
    pub fn set_durability(&self, durability: Durability) {
        let Some(journal) = self.journal() else {
            return;
        };
        journal.set_durability(durability);
        if durability == Durability::Immediate {
            // Writers who have asked before go on, and the gate is shut for good only where no write succeeds.
            let Store { heap, traffic, .. } = self.store();
            drop(traffic.gate.close(heap.media()));
        }
    }

    /// Sets within which time [eventual](Durability::Eventual) writes are durable, at least 1 ms, in a database of level
    /// `disk`, from now on. `None` leaves them to the operating system: a loss of power takes back what it had not written yet, at
    /// most as much as the log may have grown by between two checkpoints, and always the newest of them.
    pub fn set_sync_within(&self, time: impl Into<Option<Duration>>) {
        if let Some(keeper) = &self.inner.keeper {
            keeper.set_sync_within(time.into());
        }
    }

    /// Takes a checkpoint of a database of level `disk`, so that the log can drop older records: of all maps if `full`,
    /// else of the changes since the last one if these are fewer. `None` at other levels. The database takes
    /// checkpoints by itself when the log has grown.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the disk fails. The previous checkpoint then stays the current one, and the log keeps its
    /// records.
    pub fn checkpoint(&self, full: bool) -> Result<Option<Checkpoint>, Error> {
        let keeper = self.inner.keeper.as_ref();
        keeper.map(|keeper| keeper.checkpoint(full)).transpose()
    }

    /// Asks the database's own thread for a checkpoint, in a database of level `disk`; after a failed one the thread
    /// waits some seconds. Returns whether there is a thread.
    pub fn ask_for_checkpoint(&self) -> bool {
        let keeper = self.inner.keeper.as_ref();
        keeper.map(|keeper| keeper.ask_for_checkpoint()).is_some()
    }

    /// Statistics of the log and the checkpoints, in a database of level `disk`.
    pub fn log_stats(&self) -> Option<LogStats> {
        self.inner.keeper.as_ref().map(|keeper| keeper.stats())
    }

    /// Ends level `disk`: the log and the checkpoints are removed, and the pool is closed, at level `process`. Does
    /// nothing at other levels. (The other way round, [`Options::level`](crate::Options::level) has an opening begin a
    /// log.)
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] while there is another handle of the database, or anything of it that reads; [`Error::Pool`] and
    /// [`Error::Files`] where the disk refuses: then the database is still of level `disk`, or files are left over, which
    /// the next opening removes.
    pub fn end_log(self) -> Result<(), Error> {
        let inner = Arc::into_inner(self.inner).ok_or(Error::InUse)?;
        let Some(remove) = inner.keeper.as_ref().map(|keeper| keeper.removal()) else {
            return Ok(());
        };
        inner.into_pool()?.close_without_log()?;
        remove()
    }

    /// Closes the database, and returns when the pool is on the medium and marked as closed. Dropping the last handle
    /// does the same, but tells of no error: a program whose next step relies on the file, such as renaming or copying
    /// it, calls this first.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("a.pool");
    /// let db = wollemi::Db::open(&path)?;
    /// db.map("letters")?.upsert("a", "alpha")?;
    /// db.close()?;
    /// std::fs::copy(&path, dir.path().join("copy.pool"))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] while there is another handle of the database or of a map, or anything that reads: the last of
    /// these to be dropped closes it. [`Error::Pool`] and [`Error::Index`] where the medium fails: the pool then counts
    /// as one whose process was killed, and nothing is known of what was written to it. A second try would prove
    /// nothing, since the kernel reports such a failure once.
    pub fn close(self) -> Result<(), Error> {
        let inner = Arc::into_inner(self.inner).ok_or(Error::InUse)?;
        Ok(inner.into_pool()?.close()?)
    }

    /// What acknowledged operations survive.
    pub fn level(&self) -> Level {
        let pool = self.store().heap.pool();
        match (pool.log_position(), pool.level()) {
            (_, pmem::Level::Power) => Level::Power,
            (Some(_), _) => Level::Disk,
            (None, _) => Level::Process,
        }
    }
}

impl<M: Media> Inner<M> {
    /// Ends what the database does by itself, and returns its pool, still open.
    fn into_pool(self) -> Result<Pool<M>, Error> {
        let Inner { maps, keeper, .. } = self;
        if let Some(keeper) = keeper {
            if Arc::strong_count(&keeper) > 1 {
                return Err(Error::InUse);
            }
            // A log that has failed leaves open what of the pool is in it, and stays.
            if let Some(journal) = maps.store.traffic.journal.get() {
                // Even in a turn, which would only note it.
                let log = journal.log();
                log.wait_durable(log.appended()).map_err(FilesError::from)?;
            }
            drop(keeper);
        }
        let Store { heap, traffic, .. } = maps.store;
        drop(traffic);
        // An iterator keeps the pool open, for one.
        heap.into_pool().ok_or(Error::InUse)
    }
}
