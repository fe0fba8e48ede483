//! Memory that was freed and that the allocator may keep.
//!
//! Connections free much at once: a long command, a queue of commands, the changes of a transaction. An allocator keeps
//! what was freed for the next, in the worst case all that was ever in use. The program knows its allocator, the server
//! knows when there is something to give back: so it asks the program to, at most once a second, from the thread that
//! waits for signals, once [`ENOUGH`] was freed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes that are worth giving back.
const ENOUGH: usize = 16 << 20;

/// How often is looked whether there are as many.
const PAUSE: Duration = Duration::from_secs(1);

/// Bytes freed since they were last given back, by all servers of the process, as they share its allocator.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// Notes that about this many bytes are being freed.
pub fn note(bytes: usize) {
    FREED.fetch_add(bytes, Ordering::Relaxed);
}

/// Has memory given back by the program, without end.
pub async fn run(give_back: impl Fn()) {
    // Memory noted now may not be freed yet: the second call gives it back.
    let mut again = false;
    loop {
        tokio::time::sleep(PAUSE).await;
        let enough = FREED.load(Ordering::Relaxed) >= ENOUGH;
        if enough {
            FREED.store(0, Ordering::Relaxed);
        }
        if enough || again {
            give_back();
        }
        again = enough;
    }
}
