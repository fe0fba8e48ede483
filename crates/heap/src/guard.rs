//! Guards: readers hold one while they use objects that a writer may unlink.
//!
//! The type is the heap's own, and only [`pin`] creates one. A guard of another collector would protect nothing here.

use crate::exact::{self, Pin};
use std::fmt;

/// A pin of the current epoch: objects that it protects are not reused until it is dropped.
///
/// It stays on its thread.
pub struct Guard {
    epoch: crossbeam_epoch::Guard,
    /// Dropped after the epoch's guard.
    exact: Option<Pin>,
}

impl Guard {
    /// Moves the pin to the current epoch, if this is the thread's only guard: objects that the guard protected until
    /// now may be reused.
    #[inline]
    pub fn repin(&mut self) {
        self.epoch.repin();
        if self.exact.take().is_some() {
            self.exact = exact::pin();
        }
    }

    /// Makes this thread's garbage available to all threads, and frees some of what no guard protects any more.
    #[inline]
    pub fn flush(&self) {
        self.epoch.flush();
    }

    /// Defers `run` until every guard that exists now is gone. Any thread may then run it.
    #[inline]
    pub(crate) fn defer<R>(&self, run: impl FnOnce() -> R + Send + 'static) {
        self.epoch.defer(run);
    }

    /// Like [`defer`](Guard::defer); under media whose threads share one system thread, `run` is called at the very
    /// moment when the last guard that exists now is dropped.
    pub(crate) fn defer_exactly<R>(&self, run: impl FnOnce() -> R + Send + 'static) {
        match self.exact {
            Some(_) => exact::defer(run),
            None => self.epoch.defer(run),
        }
    }

    /// The epoch guard, for values in DRAM.
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

/// Whether this thread holds a guard: then it must not wait for anything that waits for guards.
pub fn is_pinned() -> bool {
    crossbeam_epoch::is_pinned()
}

/// Frees retired objects, as far as no thread holds a guard from before their retirement. Useful only if the caller
/// holds no guard.
pub(crate) fn flush_retired() {
    // Each flush advances the epoch if no guard prevents it, and garbage is freed two epochs later.
    for _ in 0..3 {
        pin().flush();
    }
}
