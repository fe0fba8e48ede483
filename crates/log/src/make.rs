//! Making segments ready, from spares or as new files, ahead of the appends that need them.
//!
//! M1 A segment's header and length are durable before it gets its name, and the name before anything is appended to
//!    it (S1).
//! M2 A failure while a segment is made affects no segment in use. If the system was short of something, another
//!    attempt with another file may succeed; if the disk failed, the log has failed.

use crate::geometry::SEGMENT_HEADER;
use crate::lock::lock;
use crate::log::{Maker, MappingOf, SegmentOf};
use crate::segment::{self, Segment, log_name, spare_name};
use crate::{Disk, DiskError, DiskFile, Error, Log, Lsn, Mapping};
use std::sync::atomic::Ordering;
use std::sync::{Arc, TryLockError};

/// Maximum number of segments after the current one that [`Log::prepare_for`] makes ready.
const AHEAD: u64 = 8;

impl<D: Disk> Log<D> {
    /// Makes the next segment ready, if the current one is half full and the next is not ready yet, so that no append
    /// has to do it. Waiting threads and the [`Syncer`](crate::Syncer) call this themselves.
    ///
    /// # Errors
    ///
    /// Errors of the disk.
    pub fn prepare(&self) -> Result<(), Error> {
        let mut tail = lock(&self.tail);
        let full = tail.take_full();
        let last_byte = self.geometry.offset(Lsn(tail.end().0 - 1));
        let needed = tail.lacks_ready() && last_byte >= self.geometry.size() / 2;
        let next = tail.next();
        drop(tail);
        drop(full);
        if !needed {
            return Ok(());
        }
        match self.maker.try_lock() {
            Ok(mut maker) => self.make_through(&mut maker, next, false),
            Err(TryLockError::Poisoned(poisoned)) => {
                self.make_through(&mut poisoned.into_inner(), next, false)
            }
            Err(TryLockError::WouldBlock) => Ok(()),
        }
    }

    /// Makes the segments for the next `bytes` ready, at most eight: for a log that grows fast while no thread waits
    /// for syncs. The calling thread takes the page faults of their mappings, and the appends take none. That makes all
    /// of their pages dirty, so that the first sync of such a segment writes all of it.
    ///
    /// # Errors
    ///
    /// Errors of the disk.
    pub fn prepare_for(&self, bytes: u64) -> Result<(), Error> {
        let end = lock(&self.tail).end();
        let current = self.geometry.segment(Lsn(end.0 - 1));
        let last = self.geometry.segment(Lsn(end.0.saturating_add(bytes)));
        self.make_through(&mut lock(&self.maker), last.min(current + AHEAD), true)
    }

    /// Makes all segments up to `last` ready.
    pub(crate) fn make_ready(&self, last: u64) -> Result<(), Error> {
        self.make_through(&mut lock(&self.maker), last, false)
    }

    /// `in_bulk`: prepares the mappings for stores into all of their pages.
    fn make_through(&self, maker: &mut Maker, last: u64, in_bulk: bool) -> Result<(), Error> {
        loop {
            self.check_failed()?;
            let tail = lock(&self.tail);
            let (number, incarnation) = (tail.next(), tail.incarnation());
            drop(tail);
            if number > last {
                return Ok(());
            }
            let (segment, mut mapping) = self.make(maker, number, incarnation)?;
            if in_bulk {
                mapping.prepare_stores(SEGMENT_HEADER, self.geometry.size() - SEGMENT_HEADER);
            }
            lock(&self.segments).push_back(segment);
            lock(&self.tail).add_ready(number, mapping, in_bulk);
        }
    }

    fn make(
        &self,
        maker: &mut Maker,
        number: u64,
        incarnation: u32,
    ) -> Result<(SegmentOf<D>, MappingOf<D>), Error> {
        if maker.spares.is_empty() {
            self.recycle_given_up(maker)?;
        }
        let spare = maker.spares.pop_first();
        let name = spare_name(spare.unwrap_or(number));
        let made = self.try_make(&name, spare.is_some(), number, incarnation);
        made.map_err(|error| {
            // M2: the next attempt uses another file. One whose removal fails stays until a later attempt needs its
            // name, or until the next opening (O3).
            let _ = self.disk.remove(&name);
            let _ = self.disk.remove(&log_name(number));
            if error.is_full() {
                self.counters.disk_full.fetch_add(1, Ordering::Relaxed);
                Error::DiskFull(error)
            } else if error.is_shortage() {
                Error::Disk(error)
            } else {
                self.fail(&error)
            }
        })
    }

    fn try_make(
        &self,
        name: &str,
        recycled: bool,
        number: u64,
        incarnation: u32,
    ) -> Result<(SegmentOf<D>, MappingOf<D>), DiskError> {
        let names = self.change_names();
        let file = if recycled {
            self.counters.recycled.fetch_add(1, Ordering::Relaxed);
            self.disk.open(name)?
        } else {
            let file = match self.disk.create(name) {
                // An earlier attempt has left the file, because the disk had no room even for its removal.
                Err(error) if error.is_existing() => {
                    self.disk.remove(name)?;
                    self.disk.create(name)?
                }
                created => created?,
            };
            file.preallocate(self.geometry.size())?;
            file
        };
        let header = segment::Header {
            geometry: self.geometry,
            id: self.id,
            number,
            incarnation,
            durable: self.durable(),
        };
        file.write_at(0, &header.encode())?;
        file.sync()?;
        self.disk.rename(name, &log_name(number))?;
        self.sync_names(names)?;
        let file = self.disk.open(&log_name(number))?;
        let mapping = file.map(self.geometry.size())?;
        self.counters.prepared.fetch_add(1, Ordering::Relaxed);
        let file = Some(Arc::new(file));
        Ok((Segment { number, file }, mapping))
    }
}
