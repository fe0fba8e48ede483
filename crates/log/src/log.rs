//! The log itself: the state that its parts share. Each part has a file, see the crate's chapter.

use crate::append::Tail;
use crate::fragment::Key;
use crate::group::Group;
use crate::keep::Kept;
use crate::lsn::Geometry;
use crate::make::Maker;
use crate::names::FailedSyncs;
use crate::segment::{self, Files, SIZES, Segment};
use crate::stats::Counters;
use crate::{Disk, DiskError, Error, Lsn, Options, Stats};
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A write-ahead log over the files of a [`Disk`]. Any number of threads may call it.
pub struct Log<D: Disk> {
    pub(crate) disk: Arc<D>,
    pub(crate) id: u128,
    pub(crate) key: Key,
    pub(crate) geometry: Geometry,
    pub(crate) options: Options,
    pub(crate) ends: Ends,
    pub(crate) tail: Mutex<Tail<MappingOf<D>>>,
    pub(crate) group: Group,
    /// The segments in use and those made ready, ascending.
    pub(crate) segments: Mutex<VecDeque<SegmentOf<D>>>,
    pub(crate) maker: Mutex<Maker>,
    pub(crate) kept: Kept,
    pub(crate) counters: Counters,
    /// The failed syncs of the directory. A thread holds the lock while it syncs.
    pub(crate) failed_name_syncs: Mutex<FailedSyncs>,
    /// The end of the last record found when the log was opened.
    found_end: Lsn,
    failure: OnceLock<Arc<str>>,
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

/// The state in which a log is first used, as found by its opening.
pub(crate) struct Start<D: Disk> {
    pub(crate) geometry: Geometry,
    /// The end of the last record; everything below is durable.
    pub(crate) end: Lsn,
    /// Records below are not needed.
    pub(crate) begin: Lsn,
    /// The incarnation of the last record.
    pub(crate) incarnation: u32,
    /// The segments in use. The next record goes into the last of them, or into one that is not made yet.
    pub(crate) segments: VecDeque<SegmentOf<D>>,
    /// The mapping of the last one, if the next record goes there.
    pub(crate) current: Option<(u64, MappingOf<D>)>,
    pub(crate) spares: std::collections::BTreeSet<u64>,
}

/// Locks; a thread that panicked while it held the lock has left no inconsistent state.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Creates a log, durable when this returns. `id` distinguishes it from logs of other databases.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if the directory has files of a log, even of one whose creation a crash interrupted
    /// ([`open`](Log::open) or [`remove`](Log::remove) it); invalid settings; and errors of the disk.
    pub fn create(disk: Arc<D>, id: u128, options: Options) -> Result<Log<D>, Error> {
        let size = options.segment_size;
        if !size.is_power_of_two() || !SIZES.contains(&size) {
            return Err(Error::Setting {
                what: "segment size",
                bytes: size.into(),
                least: (*SIZES.start()).into(),
                max: (*SIZES.end()).into(),
            });
        }
        let files = Files::list(&*disk)?;
        if let Some(&number) = files.logs.first() {
            return Err(Error::Exists {
                file: segment::log_name(number),
            });
        }
        for &number in &files.spares {
            disk.remove(&segment::spare_name(number))?;
        }
        let first = Lsn(segment::HEADER);
        let start = Start {
            geometry: Geometry { segment_size: size },
            end: first,
            begin: first,
            incarnation: 0,
            segments: VecDeque::new(),
            current: None,
            spares: Default::default(),
        };
        Self::begin_incarnation(disk, id, options, start)
    }

    /// Removes all files of a log. Durable when the directory is synced, as the creation of another log does. A crash
    /// in the middle leaves at least one segment, unless it leaves nothing: the removal of the spares is durable
    /// before the first segment is removed.
    ///
    /// # Errors
    ///
    /// Errors of the disk.
    pub fn remove(disk: &D) -> Result<(), Error> {
        let files = Files::list(disk)?;
        let logs = files.logs.iter().rev().map(|&number| segment::log_name(number));
        let spares = files.spares.iter().map(|&number| segment::spare_name(number));
        for name in spares {
            disk.remove(&name)?;
        }
        if !files.spares.is_empty() {
            disk.sync_dir()?;
        }
        for name in logs {
            disk.remove(&name)?;
        }
        Ok(())
    }

    /// Makes the log usable: the mark of the next incarnation is durable before anything is appended.
    pub(crate) fn begin_incarnation(
        disk: Arc<D>,
        id: u128,
        options: Options,
        start: Start<D>,
    ) -> Result<Log<D>, Error> {
        let least = 4 * start.geometry.size();
        if !(least..=LIMIT_MAX).contains(&options.limit) {
            return Err(Error::Setting {
                what: "limit",
                bytes: options.limit,
                least,
                max: LIMIT_MAX,
            });
        }
        let Some(incarnation) = start.incarnation.checked_add(1) else {
            return Err(Error::Incarnations);
        };
        let next = start
            .segments
            .back()
            .map_or_else(|| start.geometry.segment(start.end), |segment| segment.number + 1);
        let log = Log {
            disk,
            id,
            key: Key::new(id),
            geometry: start.geometry,
            ends: Ends {
                appended: AtomicU64::new(start.end.0),
                durable: AtomicU64::new(start.end.0),
            },
            tail: Mutex::new(Tail::new(start.end, start.incarnation, start.current, next)),
            group: Group::default(),
            segments: Mutex::new(start.segments),
            maker: Mutex::new(Maker {
                spares: start.spares,
                given_up: Default::default(),
            }),
            kept: Kept::new(start.begin),
            counters: Counters::default(),
            failed_name_syncs: Mutex::default(),
            found_end: start.end,
            failure: OnceLock::new(),
            options,
        };
        log.append_opened(incarnation)?;
        log.sync()?;
        Ok(log)
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

    /// An error if the log has failed.
    pub(crate) fn check_failed(&self) -> Result<(), Error> {
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
    pub fn stats(&self) -> Stats {
        // Loaded before `appended`, which is then not below it.
        let durable = self.durable();
        let mut stats = Stats {
            begin: self.begin(),
            appended: self.appended(),
            durable,
            failure: self.failure.get().map(ToString::to_string),
            ..Stats::default()
        };
        (stats.records, stats.bytes) = lock(&self.tail).totals();
        self.group.count(&mut stats);
        self.counters.count(&mut stats);
        stats
    }
}

/// The maximum limit: a fragment's distance from the durable end must fit its field.
const LIMIT_MAX: u64 = 16 << 30;
