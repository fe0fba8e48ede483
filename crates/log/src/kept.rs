//! The beginning of the log, and the scans that pin it.

use crate::geometry::Geometry;
use crate::lock::lock;
use crate::{Error, Lsn};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};

/// The beginning of the log.
pub(crate) struct Kept {
    pub(crate) begin: AtomicU64,
    /// The number of scans that need the log from a position on.
    pub(crate) pins: Mutex<BTreeMap<Lsn, usize>>,
    /// Notified when the beginning moves or the log fails. Threads wait on it with the lock of `pins`.
    pub(crate) moved: Condvar,
}

impl Kept {
    pub(crate) fn new(begin: Lsn) -> Kept {
        Kept {
            begin: AtomicU64::new(begin.0),
            pins: Mutex::default(),
            moved: Condvar::new(),
        }
    }

    /// The position from which on records are kept.
    pub(crate) fn begin(&self) -> Lsn {
        Lsn(self.begin.load(Ordering::Acquire))
    }

    /// The start of the segment in which the beginning lies: the log counts toward the limit from here on.
    pub(crate) fn start(&self, geometry: Geometry) -> Lsn {
        geometry.start(geometry.segment(self.begin()))
    }

    /// Wakes the threads that wait for room.
    pub(crate) fn wake(&self) {
        let _pins = lock(&self.pins);
        self.moved.notify_all();
    }
}

/// Keeps the log from a position on while it lives.
pub(crate) struct Pin<'k> {
    kept: &'k Kept,
    lsn: Lsn,
}

impl<'k> Pin<'k> {
    /// Keeps the log from `lsn` on.
    ///
    /// # Errors
    ///
    /// [`Error::Position`] if the log begins after it.
    pub(crate) fn new(kept: &'k Kept, lsn: Lsn) -> Result<Pin<'k>, Error> {
        let mut pins = lock(&kept.pins);
        if lsn < kept.begin() {
            return Err(Error::Position {
                lsn,
                what: "the log begins after it",
            });
        }
        *pins.entry(lsn).or_default() += 1;
        Ok(Pin { kept, lsn })
    }
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
