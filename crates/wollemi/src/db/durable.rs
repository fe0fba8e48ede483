//! Durability of writes; the log and its checkpoints.

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
    /// Waits until all writes that have returned are durable, including [eventual](crate::Durability::Eventual) ones.
    /// In a [turn](Db::turn) it returns at once, and the turn's end waits for them. At the levels `process` and `power`
    /// all writes are durable already.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if the disk fails.
    pub fn sync(&self) -> Result<(), Error> {
        match self.journal() {
            Some(journal) => Ok(journal.settle(journal.log().appended())?),
            None => Ok(()),
        }
    }

    fn journal(&self) -> Option<&Arc<Journal>> {
        self.store().traffic.journal.get()
    }

    /// Begins a turn: this thread's operations do not wait for durability one by one; they wait together when the turn
    /// [ends](Turn::end). Until then their results must not leave the program. (A server uses it for requests that
    /// arrive together.) At levels other than `disk` it has no effect.
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

    /// Continues a turn that was [paused](Turn::pause), possibly on another thread. A turn of another database remains
    /// a turn of that database.
    pub fn resume(&self, turn: PausedTurn) -> Turn<'_> {
        Turn::resume(self.journal(), turn)
    }

    /// Returns whether all results of this thread's newest turn are already durable, so that its end would not wait.
    #[inline]
    pub fn is_turn_durable(&self) -> bool {
        self.journal().is_none_or(|journal| journal.is_turn_durable())
    }

    /// Waits until all results of this thread's newest turn so far are durable. The turn continues; older turns are not
    /// waited for.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if it is not known whether they are durable.
    pub fn settle_turn(&self) -> Result<(), Error> {
        match self.journal() {
            Some(journal) => Ok(journal.settle_turn()?),
            None => Ok(()),
        }
    }

    /// Returns the failed sync that has stopped all writing, in a database of level `disk`; `None` if there was none.
    /// Until the database is reopened, writes fail, and so do reads of immediate writes that were not durable at the
    /// failure. Reads of [eventual](Durability::Eventual) writes never wait, so they continue.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.journal()?.log().failure()
    }

    /// Returns the default durability of writes, in a database of level `disk`.
    pub fn durability(&self) -> Durability {
        self.journal()
            .map_or(Durability::Immediate, |journal| journal.durability())
    }

    /// Sets the default durability of writes, in a database of level `disk`. After it has set
    /// [`Immediate`](Durability::Immediate), no eventual write by the former default is in progress: [`sync`](Db::sync)
    /// then makes all of them durable.
    pub fn set_durability(&self, durability: Durability) {
        let Some(journal) = self.journal() else {
            return;
        };
        journal.set_durability(durability);
        if durability == Durability::Immediate {
            // Lets writers that have already read the default finish. The gate is shut for good only where no write can
            // succeed.
            let Store { heap, traffic, .. } = self.store();
            drop(traffic.gate.close(heap.media()));
        }
    }

    /// Sets the time within which [eventual](Durability::Eventual) writes become durable, at least 1 ms, in a database
    /// of level `disk`. `None` leaves them to the operating system: a loss of power then loses the writes that it had
    /// not written yet, which are always the newest, and at most as much as the log may grow between two checkpoints.
    pub fn set_sync_within(&self, time: impl Into<Option<Duration>>) {
        if let Some(keeper) = &self.inner.keeper {
            keeper.set_sync_within(time.into());
        }
    }

    /// Takes a checkpoint of a database of level `disk`, so that the log can drop older records. It covers all maps if
    /// `full`, otherwise only the changes since the last checkpoint if these are fewer. Returns `None` at other levels.
    /// The database takes checkpoints by itself as the log grows.
    ///
    /// # Errors
    ///
    /// [`Error::Files`] if the disk fails. The previous checkpoint then stays the current one, and the log keeps its
    /// records.
    pub fn checkpoint(&self, full: bool) -> Result<Option<Checkpoint>, Error> {
        let keeper = self.inner.keeper.as_ref();
        keeper.map(|keeper| keeper.checkpoint(full)).transpose()
    }

    /// Requests a checkpoint from the database's own thread, in a database of level `disk`; after a failed checkpoint
    /// the thread waits some seconds. Returns whether such a thread exists.
    pub fn request_checkpoint(&self) -> bool {
        let keeper = self.inner.keeper.as_ref();
        keeper.map(|keeper| keeper.request_checkpoint()).is_some()
    }

    /// Returns statistics of the log and the checkpoints, in a database of level `disk`.
    pub fn log_stats(&self) -> Option<LogStats> {
        self.inner.keeper.as_ref().map(|keeper| keeper.stats())
    }

    /// Ends level `disk`: removes the log and the checkpoints and closes the pool, which then has level `process`. Has
    /// no effect at other levels. ([`Options::level`](crate::Options::level) does the opposite: an opening begins a
    /// log.) It needs the last handle because every handle of the database and of its maps writes through the log,
    /// which has to hold all changes since the checkpoint: a level changes only while no write can be in progress.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] while the database has another handle or a reader; [`Error::Pool`] and [`Error::Files`] if the
    /// disk fails: then the database still has level `disk`, or files are left over that the next opening removes.
    pub fn end_log(self) -> Result<(), Error> {
        let inner = Arc::into_inner(self.inner).ok_or(Error::InUse)?;
        let Some(remove) = inner.keeper.as_ref().map(|keeper| keeper.removal()) else {
            return Ok(());
        };
        inner.into_pool()?.close_without_log()?;
        remove()
    }

    /// Closes the database, and returns when the pool is on the medium and marked as closed. Dropping the last handle
    /// does the same without reporting errors. A program whose next step relies on the file, such as renaming or
    /// copying it, should call this first.
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
    /// [`Error::InUse`] while another handle of the database or of a map, or a reader, exists: the last of these to be
    /// dropped closes it. [`Error::Pool`] and [`Error::Files`] if the medium fails: the pool then counts as one whose
    /// process was killed, and which writes reached the medium is unknown. A retry would prove nothing, since the
    /// kernel reports such a failure only once.
    pub fn close(self) -> Result<(), Error> {
        let inner = Arc::into_inner(self.inner).ok_or(Error::InUse)?;
        Ok(inner.into_pool()?.close()?)
    }

    /// Makes the close of the database write nothing of the pool to its medium, for a program that removes the pool
    /// next. The pool counts as one whose process was killed. Until the close the database continues as before.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("a.pool");
    /// let db = wollemi::Db::open(&path)?;
    /// db.map("letters")?.upsert("a", "alpha")?;
    /// db.abandon();
    /// db.close()?;
    /// std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn abandon(&self) {
        self.store().heap.pool().abandon();
    }

    /// Returns the level: which failures acknowledged operations survive.
    pub fn level(&self) -> Level {
        self.store().level()
    }
}

impl<M: Media> Inner<M> {
    /// Stops the database's own threads, and returns its pool, still open.
    fn into_pool(self) -> Result<Pool<M>, Error> {
        let Inner { maps, keeper, .. } = self;
        if let Some(keeper) = keeper {
            if Arc::strong_count(&keeper) > 1 {
                return Err(Error::InUse);
            }
            // After the log has failed it is unknown how much of the pool the log holds, so the log stays.
            if let Some(journal) = maps.store.traffic.journal.get() {
                // `Journal::settle` would not wait in a turn, but only note the position.
                let log = journal.log();
                log.wait_durable(log.appended()).map_err(FilesError::from)?;
            }
            drop(keeper);
        }
        let Store { heap, traffic, .. } = maps.store;
        drop(traffic);
        // An iterator, for example, keeps the pool open.
        heap.into_pool().ok_or(Error::InUse)
    }
}
