//! Turns: operations that the server's locks make exclusive take turns before they reach these locks.
//!
//! Logical threads share an OS thread, so none of them may block at an OS lock that another one holds while it uses the
//! pool. They wait at the media instead. They take turns in the order of the locks: first the gate, then the record,
//! then the count.

use crashkit::Crash;
use pmem::Media;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// A reader-writer lock for logical threads.
pub(super) struct Turns {
    media: Crash,
    /// The number of shared turns; [`ALONE`]: one exclusive turn.
    held: AtomicU32,
}

const ALONE: u32 = u32::MAX;

/// A turn, until it is dropped.
pub(super) struct Turn<'t>(&'t AtomicU32);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let one_less = |held| if held == ALONE { 0 } else { held - 1 };
        // This cannot fail, since the closure always returns `Some`.
        let _ = self.0.fetch_update(SeqCst, SeqCst, |held| Some(one_less(held)));
    }
}

impl Turns {
    pub(super) fn new(media: Crash) -> Turns {
        Turns {
            media,
            held: AtomicU32::new(0),
        }
    }

    /// Takes a shared turn. Waits while a thread has an exclusive one.
    pub(super) fn shared(&self) -> Turn<'_> {
        self.take(|held| (held != ALONE).then(|| held + 1))
    }

    /// Takes an exclusive turn. Waits until no other thread has one.
    pub(super) fn alone(&self) -> Turn<'_> {
        self.take(|held| (held == 0).then_some(ALONE))
    }

    fn take(&self, next: impl Fn(u32) -> Option<u32>) -> Turn<'_> {
        let mut turn = 0;
        while self.held.fetch_update(SeqCst, SeqCst, &next).is_err() {
            self.media.wait(turn);
            turn += 1;
        }
        Turn(&self.held)
    }
}
