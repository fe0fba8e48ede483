//! Group commit: the first waiting thread syncs for all.
//!
//! G1 One thread syncs at a time, the leader. It reads the end of the log, or that of the full segments, syncs, and
//!    only then moves `durable` there.
//! G2 Records appended while it syncs belong to the next group, whose threads wait on the other condition variable.
//!    When the leader is done, it wakes all of its own group, and one of the next group to lead it. (After a sync of
//!    the full segments alone, one of its own group may lead instead.)
//! G3 A failed sync is not repeated: the log has failed, and `durable` stays. A thread that finds the log failed, by a
//!    sync or otherwise, wakes all that wait, since none of them can lead.

use crate::group::State;
use crate::lock::lock;
use crate::tail::{BULK, End};
use crate::{Disk, DiskError, DiskFile, Error, Log, Lsn};
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Instant;

impl<D: Disk> Log<D> {
    /// Returns when everything below `lsn` is durable. The first waiting thread syncs for all that wait.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] if the sync fails or the log has failed before; [`Error::Position`] if `lsn` is beyond the end
    /// of the log.
    pub fn wait_durable(&self, lsn: Lsn) -> Result<(), Error> {
        if self.durable() >= lsn {
            return Ok(());
        }
        self.counters.own_waits.fetch_add(1, Ordering::Relaxed);
        self.make_durable(lsn)
    }

    fn make_durable(&self, lsn: Lsn) -> Result<(), Error> {
        if lsn > self.appended() {
            return Err(Error::Position {
                lsn,
                what: "beyond the end of the log",
            });
        }
        if self.wait_in_group(lsn, None)? {
            // A thread that has led prepares the segment that the next append may need, now that its own record is
            // durable. An error is ignored here: the append that needs the segment reports it.
            let _ = self.prepare();
        }
        Ok(())
    }

    /// Makes everything appended durable, and returns its end.
    ///
    /// # Errors
    ///
    /// As for [`wait_durable`](Log::wait_durable).
    pub fn sync(&self) -> Result<Lsn, Error> {
        let end = self.appended();
        if self.durable() < end {
            self.make_durable(end)?;
        }
        Ok(end)
    }

    /// Makes the records that lie in full segments durable, and returns the end of the last of them. Appends continue
    /// undisturbed, because their own segment is not synced: its pages stay writable.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`].
    pub fn sync_full(&self) -> Result<Lsn, Error> {
        let end = lock(&self.tail).full_end();
        if self.durable() < end.lsn {
            self.wait_in_group(end.lsn, Some(end))?;
        }
        Ok(end.lsn)
    }

    /// Number of calls of [`wait_durable`](Log::wait_durable) that had to wait; calls of [`sync`](Log::sync) do not
    /// count.
    pub fn waits(&self) -> u64 {
        self.counters.own_waits.load(Ordering::Relaxed)
    }

    /// Waits until everything below `lsn` is durable; returns whether this thread has led a group. It leads up to `to`,
    /// or else to the end of the log.
    fn wait_in_group(&self, lsn: Lsn, to: Option<End>) -> Result<bool, Error> {
        let mut led = false;
        let mut state = lock(&self.group.state);
        state.waits += 1;
        while self.durable() < lsn {
            if let Err(failed) = self.check_failed() {
                // If it was not a sync that failed, the leader has woken one thread of the next group only: this one,
                // which does not lead.
                self.group.wake_all();
                return Err(failed);
            }
            state = match state.syncing {
                None => {
                    led = true;
                    self.lead(state, to)
                }
                Some(to) if lsn <= to => {
                    let turn = state.turn;
                    self.group.wait(turn, state)
                }
                Some(_) => {
                    let turn = 1 - state.turn;
                    self.group.wait(turn, state)
                }
            };
        }
        Ok(led)
    }

    /// Syncs for all waiting threads, up to the given end of full segments, or else up to the end of the log.
    fn lead<'g>(&'g self, mut state: MutexGuard<'g, State>, end: Option<End>) -> MutexGuard<'g, State> {
        let (from, is_full) = (self.durable(), end.is_some());
        let End { lsn: to, records } = end.unwrap_or_else(|| End {
            lsn: self.appended(),
            records: self.counters.records.load(Ordering::Relaxed),
        });
        state.syncing = Some(to);
        state.turn = 1 - state.turn;
        drop(state);

        if to.0 - from.0 >= BULK {
            let mut tail = lock(&self.tail);
            if !is_full {
                tail.prepare_sync();
            }
            let full = tail.take_full();
            drop(tail);
            drop(full);
        }
        let started = Instant::now();
        let synced = self.sync_segments(from, to);
        let elapsed = started.elapsed();
        if synced.is_ok() {
            self.close_segments(from, to);
        }

        let mut state = lock(&self.group.state);
        let turn = state.turn;
        state.syncing = None;
        self.group.turns[turn].notify_all();
        match synced {
            Ok(()) => {
                self.ends.set_durable(to);
                state.syncs += 1;
                state.sync_time += elapsed;
                state.sync_micros.add(elapsed.as_micros() as u64);
                let before = std::mem::replace(&mut state.records, records);
                state.group_sizes.add(records.saturating_sub(before));
                self.group.turns[1 - turn].notify_one();
            }
            Err(error) => {
                self.fail(&error);
                self.group.turns[1 - turn].notify_all();
            }
        }
        state
    }

    /// Syncs the segments that hold `from..to`.
    fn sync_segments(&self, from: Lsn, to: Lsn) -> Result<(), DiskError> {
        let first = self.geometry.segment(self.geometry.place(from));
        let last = self.geometry.segment(Lsn(to.0 - 1));
        let segments = lock(&self.segments);
        let touched = segments
            .iter()
            .filter(|segment| (first..=last).contains(&segment.number));
        let touched = touched
            .map(|segment| segment.file(&*self.disk))
            .collect::<Result<Vec<_>, _>>();
        drop(segments);
        touched?.iter().try_for_each(|file| file.sync())
    }

    /// Closes the segments that are durable as a whole after a sync of `from..to` (S3).
    fn close_segments(&self, from: Lsn, to: Lsn) {
        let [first, next] = [from, to].map(|lsn| self.geometry.segment(self.geometry.place(lsn)));
        if first == next {
            return;
        }
        let mut segments = lock(&self.segments);
        let durable = segments
            .iter_mut()
            .filter(|segment| (first..next).contains(&segment.number));
        let closed: Vec<_> = durable.filter_map(|segment| segment.file.take()).collect();
        drop(segments);
        drop(closed);
    }
}
