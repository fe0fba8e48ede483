//! Dropping records that are not needed any more, and the limit of the others.
//!
//! Segments are dropped in memory first, and their files follow. They hold nothing that is needed, so a call that
//! fails on them loses nothing:
//!
//! R1 A rename or removal that failed because the system was short of something (a full disk, say) has changed
//!    nothing. The file keeps its name, and the next call tries again. An opening turns it into a spare or removes it,
//!    like every segment that does not belong to the log any more (O3).
//! R2 A spare's new name need not be durable. After a crash the file may have its old name, alone or beside its next
//!    one; the next opening resolves that (O4).
//! R3 An error of a rename or a removal for any reason but a shortage means that the disk fails, and the log
//!    with it, though no record is lost: the next opening lists the files that exist.

use crate::lock::lock;
use crate::log::Maker;
use crate::segment::{log_name, spare_name};
use crate::{Disk, Error, Histogram, Log, Lsn};
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

impl<D: Disk> Log<D> {
    /// Drops all records below `lsn`, which is the beginning or the end of a record. Files that hold no other records
    /// are reused, or removed if there are [spares](crate::LogOptions::spares) enough; on a full disk this happens
    /// later, when there is space. The caller has made durable whatever replaces the records. Segments that a live
    /// [`Scan`] needs are kept, until a later call.
    ///
    /// # Errors
    ///
    /// [`Error::Position`] if dropped records would not be durable; [`Error::Failed`] if the log has failed, or the
    /// disk fails now. A shortage is no error: the files are reused later.
    ///
    /// [`Scan`]: crate::Scan
    pub fn drop_below(&self, lsn: Lsn) -> Result<(), Error> {
        self.check_failed()?;
        if lsn > self.durable() {
            return Err(Error::Position {
                lsn,
                what: "the log is not durable up to it",
            });
        }
        let mut maker = lock(&self.maker);
        let pins = lock(&self.kept.pins);
        let lowest = pins.first_key_value().map_or(lsn, |(&pinned, _)| pinned.min(lsn));
        let begin = self.begin().max(lowest);
        self.kept.begin.store(begin.0, Ordering::Release);
        self.kept.moved.notify_all();
        drop(pins);
        // The segment of the last durable byte always stays, even if no record in it is kept: if `begin` lies in a
        // segment that does not exist yet, an opening starts in the one before.
        let last = self.geometry.segment(Lsn(self.durable().0 - 1));
        let first = self.geometry.segment(self.geometry.place(begin)).min(last);
        self.recycle(&mut maker, first)
    }

    /// Turns the segments below `first` into spares.
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

    /// Turns dropped segments into spares, and removes those beyond the maximum number. If the system is short of
    /// something, they stay for the next call.
    pub(crate) fn recycle_given_up(&self, maker: &mut Maker) -> Result<(), Error> {
        while let Some(&number) = maker.given_up.first() {
            let is_kept = maker.spares.len() < self.options.spares;
            let done = match is_kept {
                true => self.disk.rename(&log_name(number), &spare_name(number)),
                false => self.disk.remove(&log_name(number)),
            };
            match done {
                // The next call tries again.
                Err(error) if error.is_shortage() => return Ok(()),
                Err(error) => return Err(self.fail(&error)),
                Ok(()) => maker.given_up.pop_first(),
            };
            if is_kept {
                maker.spares.insert(number);
            }
        }
        Ok(())
    }

    /// Maximum length of the log in bytes.
    pub fn limit(&self) -> u64 {
        self.options.limit
    }

    /// Bytes that can still be appended below the limit, headers included.
    pub fn room(&self) -> u64 {
        // Another thread may append, and move the beginning, between the two loads.
        let used = self.appended().0.saturating_sub(self.kept.start(self.geometry).0);
        self.options.limit.saturating_sub(used)
    }

    /// Waits until [`room`](Log::room) is at least `bytes`, at most for `timeout`; returns whether it is. The caller
    /// must hold no lock that a checkpoint needs. [`append`](Log::append) itself fails and never waits for room.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`].
    pub fn wait_for_room(&self, bytes: u64, timeout: Duration) -> Result<bool, Error> {
        if self.room() >= bytes {
            return Ok(true);
        }
        if timeout.is_zero() {
            // Only a check, not a wait to be counted.
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
        let bucket = Histogram::bucket(nanos / 1000);
        self.counters.room_waits.fetch_add(1, Ordering::Relaxed);
        self.counters.room_wait_nanos.fetch_add(nanos, Ordering::Relaxed);
        self.counters.room_wait_micros[bucket].fetch_add(1, Ordering::Relaxed);
        Ok(has_room)
    }
}
