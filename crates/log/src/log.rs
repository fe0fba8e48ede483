//! The log.

use crate::{Change, Changes, Disk, Error, Lsn, Options, Stats};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// A write-ahead log over the files of a [`Disk`]. All calls may be made by many threads.
pub struct Log<D: Disk>(D);

impl<D: Disk> Log<D> {
    /// Creates a log, durable when this returns. `id` tells it from logs of other databases.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`], or what the disk said. What an attempt that a crash interrupted has left is no obstacle.
    pub fn create(disk: Arc<D>, id: u128, options: Options) -> Result<Log<D>, Error> {
        todo!()
    }

    /// Opens a log, which is whole and durable when this returns: all records from `needed.start` (the beginning of a
    /// record, or the log's end) are checked, what a crash has left incomplete at the end is cut, and what was not known
    /// to be durable is written and synced again. Segments below `needed.start` are dropped. A replay follows by
    /// [`scan`](Log::scan).
    ///
    /// # Errors
    ///
    /// The log of another database, a missing segment, damage, an end before `needed.end`, or what the disk said.
    /// Nothing has changed then but that spare segments may be gone.
    pub fn open(disk: Arc<D>, id: u128, needed: Range<Lsn>, options: Options) -> Result<Log<D>, Error> {
        todo!()
    }

    /// Appends a record, whose changes count together or not at all, and returns its end. When this returns, the record
    /// survives the end of the process; [`wait_durable`](Log::wait_durable) with the position makes sure that it
    /// survives the loss of power. Never waits for the disk, but where a segment has to be made ready that nobody has
    /// made ready ahead.
    ///
    /// # Errors
    ///
    /// See [`Error`]; nothing was appended.
    pub fn append(&self, changes: &[Change<'_>]) -> Result<Lsn, Error> {
        todo!()
    }

    /// Returns when everything below `lsn` is durable. The first thread that waits syncs for all that wait.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if the sync failed, or one before it.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), Error> {
        todo!()
    }

    /// Makes all that has been appended durable, and returns its end.
    ///
    /// # Errors
    ///
    /// As [`wait_durable`](Log::wait_durable).
    pub fn sync(&self) -> Result<Lsn, Error> {
        todo!()
    }

    /// The end of the last record.
    pub fn appended(&self) -> Lsn {
        todo!()
    }

    /// Up to where all records are durable.
    pub fn durable(&self) -> Lsn {
        todo!()
    }

    /// Whether all that has been appended is durable: two loads from one cache line.
    pub fn is_settled(&self) -> bool {
        todo!()
    }

    /// Where the oldest record begins that is kept.
    pub fn begin(&self) -> Lsn {
        todo!()
    }

    /// Why the log takes no more records, if it does not.
    pub fn failure(&self) -> Option<Arc<str>> {
        todo!()
    }

    /// The records of `range`, in order; `range.start` is the beginning of a record, `range.end` at most
    /// [`appended`](Log::appended). Other threads may append meanwhile. What a living scan still needs is not dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Position`].
    pub fn scan(&self, range: Range<Lsn>) -> Result<Scan<D>, Error> {
        todo!()
    }

    /// Gives up all records below `lsn`, as far as they fill segments; their files are used again. The caller has made
    /// durable what replaces them.
    ///
    /// # Errors
    ///
    /// What the disk said.
    pub fn drop_below(&self, lsn: Lsn) -> Result<(), Error> {
        todo!()
    }

    /// Bytes that can still be appended below the limit.
    pub fn room(&self) -> u64 {
        todo!()
    }

    /// Waits until `bytes` can be appended below the limit, at most for `timeout`; whether they can. Hold no lock that
    /// a checkpoint needs: [`append`](Log::append) itself refuses and never waits for room.
    pub fn wait_for_room(&self, bytes: u64, timeout: Duration) -> bool {
        todo!()
    }

    /// Makes the next segment ready, if the present one is half full and it is not ready yet, so that no append has to
    /// do it. Waiting threads and the [`Syncer`](crate::Syncer) call this themselves.
    ///
    /// # Errors
    ///
    /// What the disk said.
    pub fn prepare(&self) -> Result<(), Error> {
        todo!()
    }

    /// Syncs the log and notes at its end that nothing is missing, so that the next opening tells any damage from an
    /// end.
    ///
    /// # Errors
    ///
    /// As [`sync`](Log::sync).
    pub fn close(&self) -> Result<(), Error> {
        todo!()
    }

    /// What the log has done.
    pub fn stats(&self) -> Stats {
        todo!()
    }
}

/// The records of a part of a log, in order.
pub struct Scan<D: Disk>(D);

/// A record of a log.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// Where it begins.
    pub start: Lsn,
    /// Where it ends: what [`Log::append`] returned.
    pub end: Lsn,
    /// What it says.
    pub changes: Changes<'a>,
}

impl<D: Disk> Scan<D> {
    /// The next record, borrowed from the scan's buffer.
    ///
    /// # Errors
    ///
    /// Damage, or what the disk said. The scan ends there.
    #[expect(clippy::should_implement_trait, reason = "the record borrows from the scan")]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        todo!()
    }
}

/// A thread that syncs what nobody waits for, within a bounded time.
pub struct Syncer(());

impl Syncer {
    /// Starts the thread. A record that was appended is being synced `bound` later at the latest. Dropping the value
    /// ends the thread, after a last sync.
    ///
    /// # Errors
    ///
    /// If the system starts no thread.
    pub fn start<D: Disk>(log: Arc<Log<D>>, bound: Duration) -> std::io::Result<Syncer> {
        todo!()
    }
}
