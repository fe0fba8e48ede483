//! Work on all items, a few keys at a time: counting them once, and the sweep, which removes dead items that no client
//! asks for.
//!
//! The sweep goes round all keys without end. Between two steps it pauses, unless it is finding much; so that it takes
//! a small share of one thread where nothing dies, and keeps up where much does.

use crate::clock::now;
use crate::items::databases;
use crate::ops::shared::Shared;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Keys looked at in one step.
const STEP: usize = 256;

/// Pauses between the end of a round and the next, in a step's pauses.
const ROUND: u32 = 20;

/// Keys counted in one step. Writers wait for it, some tens of microseconds.
const COUNT_STEP: usize = 512;

/// The pause between two steps of the count: a hundred thousand keys take some 0.2 s.
const COUNT_PAUSE: Duration = Duration::from_millis(1);

/// Counts the items once.
pub async fn count(shared: Arc<Shared>) {
    // In a damaged pool the number stays what it was, and is not said to be exact; requests will say what is wrong.
    for (_, store) in shared.databases.all() {
        loop {
            let counted = {
                let _shared = shared.databases.shared();
                // No client is told what it reads, so the count waits for no sync of the log.
                let turn = shared.databases.db().turn();
                let counted = store.count_on(COUNT_STEP);
                let _untold = turn.pause();
                counted
            };
            let Ok(false) = counted else { break };
            tokio::time::sleep(COUNT_PAUSE).await;
        }
    }
}

/// Sweeps for ever, in steps with this pause between them.
pub async fn run(shared: Arc<Shared>, pause: Duration) {
    let mut cursors = vec![None; databases::COUNT];
    loop {
        let mut pauses = ROUND;
        for (number, store) in shared.databases.all() {
            let _shared = shared.databases.shared();
            // No client gets an answer for these removals, so the sweep does not wait until they are durable.
            let turn = shared.databases.db().turn();
            let swept = store.sweep(&mut cursors[number], STEP, now());
            let _untold = turn.pause();
            pauses = pauses.min(match swept {
                Ok(swept) => {
                    shared.swept.fetch_add(swept.removed as u64, Ordering::Relaxed);
                    match swept.seen {
                        seen if seen < STEP => ROUND,
                        seen if swept.removed * 4 < seen => 1,
                        _ => 0,
                    }
                }
                // A full or damaged pool: requests will say so. Try again later.
                Err(_) => ROUND,
            });
        }
        if pauses > 0 {
            tokio::time::sleep(pause.saturating_mul(pauses)).await;
        } else {
            tokio::task::yield_now().await;
        }
    }
}
