//! The sweep: removes dead items that nobody asks for, a few keys at a time.
//!
//! It goes round all keys without end. Between two steps it pauses, unless it is finding much; so that it takes a
//! small share of one thread where nothing dies, and keeps up where much does.

use crate::session::{Shared, now};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Keys looked at in one step.
const STEP: usize = 256;

/// Pauses between the end of a round and the next, in a step's pauses.
const ROUND: u32 = 20;

/// Sweeps for ever, in steps with this pause between them.
pub async fn run(shared: Arc<Shared>, pause: Duration) {
    let mut cursor = Vec::new();
    loop {
        let pauses = match shared.store.sweep(&mut cursor, STEP, now()) {
            Ok(swept) => {
                shared.swept.fetch_add(swept.removed as u64, Ordering::Relaxed);
                match swept.seen {
                    seen if seen < STEP => ROUND,
                    seen if swept.removed * 4 < seen => 1,
                    _ => 0,
                }
            }
            // A full or damaged pool: requests will say so. Try again later, from the next key on.
            Err(_) => ROUND,
        };
        if pauses > 0 {
            tokio::time::sleep(pause * pauses).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}
