//! Creating and removing logs, and the first use of a log that was created or opened.

use crate::fragment::Key;
use crate::geometry::{Geometry, SEGMENT_HEADER};
use crate::group::Group;
use crate::kept::Kept;
use crate::log::{Ends, Maker, MappingOf, SegmentOf};
use crate::segment::{self, Files, SIZES};
use crate::stats::Counters;
use crate::tail::Tail;
use crate::{Disk, Error, Log, LogOptions, Lsn};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

/// The maximum limit: a fragment's distance from the durable end must fit its field.
const LIMIT_MAX: u64 = 16 << 30;

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

impl<D: Disk> Log<D> {
    /// Creates a log, durable when this returns. `id` distinguishes it from logs of other databases.
    ///
    /// # Errors
    ///
    /// [`Error::Exists`] if the directory has a segment of a log, even of one whose creation a crash interrupted
    /// ([`open`](Log::open) or [`remove`](Log::remove) it; spares alone are removed here); invalid settings; and errors
    /// of the disk.
    pub fn create(disk: Arc<D>, id: u128, options: LogOptions) -> Result<Log<D>, Error> {
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
        let first = Lsn(SEGMENT_HEADER);
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
    /// in the middle never leaves spares without a segment: the removal of the spares is durable before the first
    /// segment is removed.
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
        options: LogOptions,
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
            ends: Ends::new(start.end),
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
}
