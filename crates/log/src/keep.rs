//! The part of the log that is kept: its beginning, scans that hold it, and its limit.
//!
//! What is given up is given up in memory first, and its files follow. They hold nothing that is needed, so a call that
//! they fail in loses nothing:
//!
//! R1 A rename or a removal for which the system had too little (a full disk, say) has changed nothing. The file keeps its
//!    name and is tried again later. An opening takes it for what a crash has left (O3).
//! R2 A sync of the directory is not tried again: another one would prove nothing about these names. Files whose new names
//!    it left open are never used again, but removed.
//! R3 Any other error says that the disk fails, and the log with it, though no record is lost: an opening finds out what
//!    is there.

use crate::log::lock;
use crate::lsn::Geometry;
use crate::make::Maker;
use crate::segment::{log_name, spare_name};
use crate::{Disk, Error, Log, Lsn};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Where the log begins.
pub(crate) struct Kept {
    begin: AtomicU64,
    /// How many scans need what is behind a position.
    pins: Mutex<BTreeMap<Lsn, usize>>,
    /// Waits with `pins` for the beginning to move.
    moved: Condvar,
}

impl Kept {
    pub(crate) fn new(begin: Lsn) -> Kept {
        Kept {
            begin: AtomicU64::new(begin.0),
            pins: Mutex::default(),
            moved: Condvar::new(),
        }
    }

    /// Where the segment begins that the oldest record is in: what counts toward the limit begins here.
    pub(crate) fn start(&self, geometry: Geometry) -> Lsn {
        let begin = Lsn(self.begin.load(Ordering::Acquire));
        geometry.start(geometry.segment(begin))
    }

    /// Wakes the threads that wait for room.
    pub(crate) fn wake(&self) {
        let _pins = lock(&self.pins);
        self.moved.notify_all();
    }
}

/// Keeps what is behind a position while it lives.
pub(crate) struct Pin<'k> {
    kept: &'k Kept,
    lsn: Lsn,
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        let mut pins = lock(&self.kept.pins);
        if let Some(count) = pins.get_mut(&self.lsn) {
            *count -= 1;
            if *count == 0 {
                pins.remove(&self.lsn);
            }
        }
    }
}

impl<D: Disk> Log<D> {
    /// Where the oldest record begins that is kept.
    pub fn begin(&self) -> Lsn {
        Lsn(self.kept.begin.load(Ordering::Acquire))
    }

    /// Keeps what is behind `lsn`.
    pub(crate) fn pin(&self, lsn: Lsn) -> Result<Pin<'_>, Error> {
        let mut pins = lock(&self.kept.pins);
        if lsn < self.begin() {
            return Err(Error::Position {
                lsn,
                what: "the log begins behind it",
            });
        }
        *pins.entry(lsn).or_default() += 1;
        Ok(Pin {
            kept: &self.kept,
            lsn,
        })
    }

    /// Gives up all records below `lsn`, which is the beginning of a record or the end of one; files that hold none of
    /// the others are used again, on a full disk later, when there is room. The caller has made durable what replaces
    /// the records. Segments that a live [`Scan`] needs are kept, until a later call.
    ///
    /// # Errors
    ///
    /// [`Error::Position`] if what is given up is not durable; or what the disk said.
    ///
    /// [`Scan`]: crate::Scan
    pub fn drop_below(&self, lsn: Lsn) -> Result<(), Error> {
        self.check_failed()?;
        if lsn > self.durable() {
            return Err(Error::Position {
                lsn,
                what: "the log is not durable up to there",
            });
        }
        let mut maker = lock(&self.maker);
        let pins = lock(&self.kept.pins);
        let lowest = pins.first_key_value().map_or(lsn, |(&pinned, _)| pinned.min(lsn));
        let begin = self.begin().max(lowest);
        self.kept.begin.store(begin.0, Ordering::Release);
        self.kept.moved.notify_all();
        drop(pins);
        // The segment in which the log ends stays, whatever is needed of it: the next opening begins there.
        let last = self.geometry.segment(Lsn(self.durable().0 - 1));
        let first = self.geometry.segment(self.geometry.place(begin)).min(last);
        self.recycle(&mut maker, first)
    }

    /// Makes spares of the segments below `first`.
    fn recycle(&self, maker: &mut Maker, first: u64) -> Result<(), Error> {
        let mut segments = lock(&self.segments);
        while segments.front().is_some_and(|segment| segment.number < first) {
            maker
                .given_up
                .extend(segments.pop_front().map(|segment| segment.number));
        }
        drop(segments);
        self.recycle_given_up(maker)
    }

    /// Makes spares of the segments that were given up, and removes those beyond the number that is kept. Those that the
    /// system has too little for stay for the next call.
    pub(crate) fn recycle_given_up(&self, maker: &mut Maker) -> Result<(), Error> {
        if maker.given_up.is_empty() {
            return Ok(());
        }
        let (names, mut spares) = (self.change_names(), Vec::new());
        let mut done = Ok(());
        while let Some(&number) = maker.given_up.first() {
            let is_kept = maker.spares.len() + spares.len() < self.options.spares;
            done = match is_kept {
                true => self.disk.rename(&log_name(number), &spare_name(number)),
                false => self.disk.remove(&log_name(number)),
            };
            if done.is_err() {
                break;
            }
            maker.given_up.pop_first();
            spares.extend(is_kept.then_some(number));
        }
        // S2: spares count only when their names are durable.
        let synced = self.sync_names(names);
        match &synced {
            Ok(()) => maker.spares.extend(spares),
            // R2. What cannot be removed either is found by the next opening.
            Err(_) => spares.iter().for_each(|&number| {
                let _ = self.disk.remove(&spare_name(number));
            }),
        }
        match [done, synced]
            .into_iter()
            .find(|done| matches!(done, Err(error) if !error.is_shortage()))
        {
            Some(Err(error)) => Err(self.fail(&error)),
            _ => Ok(()),
        }
    }

    /// Maximum length of the log that is kept, in bytes.
    pub fn limit(&self) -> u64 {
        self.options.limit
    }

    /// Bytes that can still be appended below the limit, headers included.
    pub fn room(&self) -> u64 {
        // Another thread may append, and move the beginning, between the two.
        let used = self.appended().0.saturating_sub(self.kept.start(self.geometry).0);
        self.options.limit.saturating_sub(used)
    }

    /// Waits until [`room`](Log::room) is at least `bytes`, at most for `timeout`; whether it is. Hold no lock that a
    /// checkpoint needs: [`append`](Log::append) itself refuses and never waits for room.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`].
    pub fn wait_for_room(&self, bytes: u64, timeout: Duration) -> Result<bool, Error> {
        if self.room() >= bytes {
            return Ok(true);
        }
        if timeout.is_zero() {
            // A look, and no wait that the statistics count.
            return self.check_failed().map(|()| false);
        }
        let started = Instant::now();
        let mut pins = lock(&self.kept.pins);
        let has_room = loop {
            self.check_failed()?;
            let left = timeout.saturating_sub(started.elapsed());
            if self.room() >= bytes || left.is_zero() {
                break self.room() >= bytes;
            }
            let waited = self.kept.moved.wait_timeout(pins, left);
            pins = waited.unwrap_or_else(PoisonError::into_inner).0;
        };
        drop(pins);
        let nanos = started.elapsed().as_nanos() as u64;
        self.counters.room_waits.fetch_add(1, Ordering::Relaxed);
        self.counters.room_wait_nanos.fetch_add(nanos, Ordering::Relaxed);
        Ok(has_room)
    }
}
