//! Waiting for other threads, which takes as long as the machine needs.

use heap::{Heap, HeapStats};
use pmem::Media;
use std::time::{Duration, Instant};

/// Upper bound on any wait; beyond it the test counts as hung.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Polls until the condition holds, advancing the epoch in between.
///
/// # Panics
///
/// After [`PATIENCE`], with the condition's name.
#[track_caller]
pub fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < PATIENCE, "timed out: {what}");
        heap::pin().flush();
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A heap's accounts once all retired objects have been freed, so that they are consistent. Guards of other tests in
/// this process may delay that for a while; the caller holds none.
///
/// # Panics
///
/// After [`PATIENCE`].
#[track_caller]
pub fn settled<M: Media>(heap: &Heap<M>) -> HeapStats {
    wait_until("retired objects are freed", || heap.stats().retired == 0);
    heap.stats()
}
