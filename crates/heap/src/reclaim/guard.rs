//! Guards: readers hold one while they use objects that a writer may unlink.
//!
//! The type is the heap's own, and only [`pin`] creates one. A guard of another collector would protect nothing here.

use crate::reclaim::grace_period::{self, Pin};
use std::cell::Cell;
use std::fmt;

/// Deferred calls of a thread after which it makes those whose guards are gone. A flush makes up to 512, more than were
/// deferred since the last one. Pins alone do not suffice: 128 of them make as many, and one commit or load retires
/// thousands of objects under one pin.
const MAX_CALLS: usize = 256;

/// Bytes that the deferred calls of a thread free after which it does so, too. The calls since its last flush are in a
/// bag of the thread: no other thread can make them.
const MAX_BYTES: usize = 1 << 20;

thread_local! {
    /// Deferred calls of this thread since [`Guard::defer`] last flushed, and the bytes that they free.
    static DEFERRED: Cell<(usize, usize)> = const { Cell::new((0, 0)) };
}

/// A pin of the current epoch: objects that it protects are not reused until it is dropped.
///
/// It stays on its thread.
pub struct Guard {
    epoch: crossbeam_epoch::Guard,
    /// Dropped after the epoch's guard.
    grace_period: Option<Pin>,
}

impl Guard {
    /// Moves the pin to the current epoch, if this is the thread's only guard: objects that the guard protected until
    /// now may be reused.
    #[inline]
    pub fn repin(&mut self) {
        self.epoch.repin();
        if self.grace_period.take().is_some() {
            self.grace_period = grace_period::pin();
        }
    }

    /// Makes this thread's garbage available to all threads, and frees some of what no guard protects any more.
    #[inline]
    pub fn flush(&self) {
        self.epoch.flush();
    }

    /// Defers `run`, which frees some bytes, until every guard that exists now is gone. Any thread may then run it. This
    /// may run earlier deferred calls.
    #[inline]
    pub(crate) fn defer<R>(&self, bytes: usize, run: impl FnOnce() -> R + Send + 'static) {
        self.epoch.defer(run);
        let (calls, sum) = DEFERRED.get();
        let (calls, sum) = (calls + 1, sum.saturating_add(bytes));
        let is_due = calls >= MAX_CALLS || sum >= MAX_BYTES;
        DEFERRED.set(if is_due { (0, 0) } else { (calls, sum) });
        if is_due {
            self.epoch.flush();
        }
    }

    /// Like [`defer`](Guard::defer); under media whose threads share one system thread, `run` is called at the very
    /// moment when the last guard that exists now is dropped.
    pub(crate) fn defer_exactly<R>(&self, run: impl FnOnce() -> R + Send + 'static) {
        match self.grace_period {
            Some(_) => grace_period::defer(run),
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
        grace_period: grace_period::pin(),
    }
}

/// Whether this thread holds a guard: then it must not wait for anything that waits for guards.
pub fn is_pinned() -> bool {
    crossbeam_epoch::is_pinned()
}
