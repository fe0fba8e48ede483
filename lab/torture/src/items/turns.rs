//! Turns: operations that the server's locks would make exclusive take turns before they reach these locks.
//!
//! Logical threads share an OS thread, so none of them may wait at a lock of the operating system that another one
//! holds while it uses the pool. They wait at the media instead. The order of the turns is that of the locks: first the
//! gate, then the record, then the count.

use crashkit::Crash;
use pmem::Media;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// Something that many share or one has alone.
pub(super) struct Turns {
    media: Crash,
    /// How many share it; [`ALONE`]: one has it alone.
    held: AtomicU32,
}

const ALONE: u32 = u32::MAX;

/// A turn, until it is dropped.
pub(super) struct Turn<'t>(&'t AtomicU32);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let one_less = |held| if held == ALONE { 0 } else { held - 1 };
        // It cannot fail: `one_less` has a result for whatever is held.
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

    /// A turn that others may share. Waits while a thread has one alone.
    pub(super) fn shared(&self) -> Turn<'_> {
        self.take(|held| (held != ALONE).then(|| held + 1))
    }

    /// A turn that its thread has alone. Waits until no other thread has one.
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
