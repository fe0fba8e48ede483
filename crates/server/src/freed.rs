//! Memory that was freed and that the allocator may keep.
//!
//! Connections free much memory at once: a long command, a queue of commands, the changes of a transaction. An
//! allocator may keep freed memory for later use, in the worst case as much as was ever in use. The program around the
//! server knows its allocator, and the server knows when there is memory to give back. So once [`ENOUGH`] bytes were
//! freed, the server asks the program to give memory back, at most once a second, from the thread that waits for
//! signals.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Bytes that are worth giving back.
const ENOUGH: usize = 16 << 20;

/// How often the server checks whether there are as many.
const PAUSE: Duration = Duration::from_secs(1);

/// Bytes freed since memory was last given back, by all servers of the process, since they share its allocator.
static FREED: AtomicUsize = AtomicUsize::new(0);

/// Notes that about this many bytes are being freed.
pub fn note(bytes: usize) {
    FREED.fetch_add(bytes, Ordering::Relaxed);
}

/// Calls `give_back` whenever enough memory was freed. Never returns.
pub async fn run(give_back: impl Fn()) {
    // Memory noted now may not be freed yet: a second call gives it back.
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
