//! Guards: readers hold one while they use objects that a writer may unlink.
//!
//! The type is the heap's own, and only [`pin`] creates one. A guard of another collector would protect nothing here.

use crate::exact::{self, Pin};
use std::cell::Cell;
use std::fmt;

/// Retirements of a thread after which it frees what no guard protects any more. A flush frees up to 512 objects, so
/// that more are freed than retired. Pins alone do not suffice: 128 of them free as many, and one commit or load retires
/// thousands of objects under one pin.
const COLLECT_EVERY: u32 = 256;

thread_local! {
    /// Retirements of this thread since it last flushed.
    static RETIRED: Cell<u32> = const { Cell::new(0) };
}

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

    /// Defers the freeing of an object until every guard that exists now is gone. Any thread may then run it.
    #[inline]
    pub(crate) fn defer<R>(&self, run: impl FnOnce() -> R + Send + 'static) {
        self.epoch.defer(run);
        let retired = RETIRED.get() + 1;
        RETIRED.set(retired % COLLECT_EVERY);
        if retired == COLLECT_EVERY {
            self.epoch.flush();
        }
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
