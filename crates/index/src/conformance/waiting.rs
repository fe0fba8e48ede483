//! Waiting for what other threads do, which takes as long as the machine lets it.

use heap::{Heap, Stats};
use pmem::Media;
use std::time::{Duration, Instant};

/// Upper bound on any wait; beyond it the test counts as hung.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Looks again and again, and lets the epoch move on between, until it is so.
///
/// # Panics
///
/// After [`PATIENCE`], with what was waited for.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "waited in vain: {what}");
        heap::pin().flush();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A heap's accounts once all that was retired has come back, so that they are of one moment. Guards of other tests in
/// this process may hold it up for a while; the caller holds none.
///
/// # Panics
///
/// After [`PATIENCE`].
#[track_caller]
pub fn settled<M: Media>(heap: &Heap<M>) -> Stats {
    wait_until("what was retired comes back", || heap.stats().retired == 0);
    heap.stats()
}
