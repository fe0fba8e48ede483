//! The log itself: the state that its parts share. Each part has a file, see the crate's chapter.

use crate::fragment::Key;
use crate::geometry::Geometry;
use crate::group::Group;
use crate::kept::Kept;
use crate::lock::lock;
use crate::segment::Segment;
use crate::stats::Counters;
use crate::tail::Tail;
use crate::{Disk, DiskError, Error, LogOptions, LogStats, Lsn};
use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// A write-ahead log over the files of a [`Disk`]. Any number of threads may call it.
pub struct Log<D: Disk> {
    pub(crate) disk: Arc<D>,
    pub(crate) id: u128,
    pub(crate) key: Key,
    pub(crate) geometry: Geometry,
    pub(crate) options: LogOptions,
    pub(crate) ends: Ends,
    pub(crate) tail: Mutex<Tail<MappingOf<D>>>,
    pub(crate) group: Group,
    /// The segments in use and those made ready, ascending.
    pub(crate) segments: Mutex<VecDeque<SegmentOf<D>>>,
    pub(crate) maker: Mutex<Maker>,
    pub(crate) kept: Kept,
    pub(crate) counters: Counters,
    /// The failed syncs of the directory. A thread holds the lock while it syncs the directory.
    pub(crate) failed_name_syncs: Mutex<FailedSyncs>,
    /// The end of the last record found when the log was opened.
    pub(crate) found_end: Lsn,
    pub(crate) failure: OnceLock<Arc<str>>,
}

/// The files from which segments are made. Its lock is taken before the tail's.
pub(crate) struct Maker {
    /// Files that wait for reuse; their names are durable.
    pub(crate) spares: BTreeSet<u64>,
    /// Segments that were dropped but still have the names of segments (R1).
    pub(crate) given_up: BTreeSet<u64>,
}

/// The failed syncs of the directory.
#[derive(Debug, Default)]
pub(crate) struct FailedSyncs {
    pub(crate) count: u64,
    /// The system's error of the last one.
    pub(crate) errno: Option<i32>,
}

/// A mapping of a disk's file.
pub(crate) type MappingOf<D> = <<D as Disk>::File as crate::DiskFile>::Mapping;

/// A segment on a disk.
pub(crate) type SegmentOf<D> = Segment<<D as Disk>::File>;

/// The end of the log, and the position up to which it is durable: readers compare them after each read, so they
/// share a line.
#[repr(align(64))]
pub(crate) struct Ends {
    appended: AtomicU64,
    durable: AtomicU64,
}

impl Ends {
    /// Everything up to here is durable.
    pub(crate) fn new(end: Lsn) -> Ends {
        Ends {
            appended: AtomicU64::new(end.0),
            durable: AtomicU64::new(end.0),
        }
    }

    pub(crate) fn appended(&self) -> Lsn {
        Lsn(self.appended.load(Ordering::Acquire))
    }

    pub(crate) fn durable(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    pub(crate) fn set_appended(&self, lsn: Lsn) {
        self.appended.store(lsn.0, Ordering::Release);
    }

    pub(crate) fn set_durable(&self, lsn: Lsn) {
        self.durable.store(lsn.0, Ordering::Release);
    }
}

impl<D: Disk> fmt::Debug for Log<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("Log");
        fields
            .field("appended", &self.appended())
            .field("durable", &self.durable());
        fields.finish_non_exhaustive()
    }
}

impl<D: Disk> Log<D> {
    /// The position from which on records are kept: the beginning or the end of a record.
    pub fn begin(&self) -> Lsn {
        self.kept.begin()
    }

    /// The end of the last record.
    #[inline]
    pub fn appended(&self) -> Lsn {
        self.ends.appended()
    }

    /// The end of the last record found when the log was opened.
    pub fn found_end(&self) -> Lsn {
        self.found_end
    }

    /// The position below which all records are durable.
    #[inline]
    pub fn durable(&self) -> Lsn {
        self.ends.durable()
    }

    /// Whether everything appended before this call is durable: two loads from one cache line.
    #[inline]
    pub fn is_settled(&self) -> bool {
        let appended = self.ends.appended();
        self.ends.durable() >= appended
    }

    /// Why the log accepts no more records, if it has failed.
    pub fn failure(&self) -> Option<Arc<str>> {
        self.failure.get().cloned()
    }

    /// Returns [`Error::Failed`] if the log has failed.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`].
    pub fn check_failed(&self) -> Result<(), Error> {
        match self.failure.get() {
            None => Ok(()),
            Some(why) => Err(Error::Failed(why.clone())),
        }
    }

    /// Fails the log: the state of records that were not durable is unknown, and their sync is not repeated.
    pub(crate) fn fail(&self, error: &DiskError) -> Error {
        let why = self.failure.get_or_init(|| error.to_string().into());
        self.kept.wake();
        Error::Failed(why.clone())
    }

    /// The log's statistics.
    pub fn stats(&self) -> LogStats {
        // Loaded before `appended`, which is then not below it.
        let durable = self.durable();
        let mut stats = LogStats {
            begin: self.begin(),
            appended: self.appended(),
            durable,
            failure: self.failure.get().map(ToString::to_string),
            ..LogStats::default()
        };
        (stats.records, stats.bytes) = lock(&self.tail).totals();
        self.group.count(&mut stats);
        self.counters.count(&mut stats);
        stats
    }
}
