//! Guards: what readers hold while they use objects that a writer may unlink.
//!
//! The type is the heap's own, and only [`pin`] makes one. A guard of another collector would protect nothing here.

use crate::exact::{self, Pin};
use std::fmt;

/// A pin of the current epoch: what it protects is not reused until it is dropped.
///
/// It stays on its thread.
pub struct Guard {
    epoch: crossbeam_epoch::Guard,
    /// Dropped after the epoch's guard.
    exact: Option<Pin>,
}

impl Guard {
    /// Moves the pin to the current epoch, if this is the thread's only guard: what the guard protected until now may
    /// be reused.
    #[inline]
    pub fn repin(&mut self) {
        self.epoch.repin();
        if self.exact.take().is_some() {
            self.exact = exact::pin();
        }
    }

    /// Hands what this thread has retired to all threads, and frees some of what no guard protects any more.
    #[inline]
    pub fn flush(&self) {
        self.epoch.flush();
    }

    /// Has `run` called, by any thread, once every guard of now is gone.
    #[inline]
    pub(crate) fn defer<R>(&self, run: impl FnOnce() -> R + Send + 'static) {
        self.epoch.defer(run);
    }

    /// Has `run` called the moment the last guard of now is gone, under media whose threads share one thread of the
    /// system.
    pub(crate) fn defer_exactly<R>(&self, run: impl FnOnce() -> R + Send + 'static) {
        match self.exact {
            Some(_) => exact::defer(run),
            None => self.epoch.defer(run),
        }
    }

    /// The guard for values in DRAM.
    #[inline]
    pub(crate) fn epoch(&self) -> &crossbeam_epoch::Guard {
        &self.epoch
    }
}

impl fmt::Debug for Guard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").finish_non_exhaustive()
    }
}

/// Pins the current epoch.
#[inline]
pub fn pin() -> Guard {
    Guard {
        epoch: crossbeam_epoch::pin(),
        exact: exact::pin(),
    }
}

/// Whether this thread holds a guard: then it does not wait for what waits for guards.
pub fn is_pinned() -> bool {
    crossbeam_epoch::is_pinned()
}

/// Has what was retired come back, as far as no thread holds a guard of then. Of use under no guard only.
pub(crate) fn flush_retired() {
    // An epoch goes by with each, and garbage is two old when it goes.
    for _ in 0..3 {
        pin().flush();
    }
}
