//! Work on all items, a few keys at a time, on a thread of its own: counting them once, and the sweep, which removes
//! dead items that no client asks for. A removal may wait long for room, in the log or in the pool.
//!
//! The sweep goes round all keys for ever. It pauses between two steps, unless it finds many dead items. So it takes a
//! small share of one thread if few items die, and keeps up if many do.

use crate::Error;
use crate::clock::now;
use crate::items::databases;
use crate::net::shutdown::{Phase, Stop};
use crate::net::worker::runtime;
use crate::ops::shared::Shared;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

/// Keys visited in one step.
const STEP: usize = 256;

/// The pause after a round, or after a failure, as a multiple of the pause between two steps.
const ROUND: u32 = 20;

/// Keys counted in one step. Writers wait for a step, which takes some tens of microseconds.
const COUNT_STEP: usize = 512;

/// The pause between two steps of the count: a hundred thousand keys take some 0.2 s.
const COUNT_PAUSE: Duration = Duration::from_millis(1);

/// Starts the thread that counts, and sweeps if the configuration has a pause for it. It ends when the server stops.
pub fn start(shared: Arc<Shared>, mut stop: Stop) -> Result<JoinHandle<()>, Error> {
    let runtime = runtime()?;
    let work = async move {
        let sweeping = async {
            if let Some(pause) = shared.config.sweep_pause {
                run(&shared, pause).await;
            }
        };
        tokio::select! {
            _ = async { tokio::join!(count(&shared), sweeping) } => {}
            () = stop.reached(Phase::Draining) => {}
        }
    };
    let thread = std::thread::Builder::new().name("sweep".into());
    thread
        .spawn(move || runtime.block_on(work))
        .map_err(Error::Threads)
}

/// Counts the items once.
async fn count(shared: &Shared) {
    // If a store is damaged, its count stops and is never reported as exact; requests report the damage.
    for (_, store) in shared.databases.all() {
        loop {
            let counted = {
                let _shared = shared.databases.shared();
                // What the count reads is not sent to clients, so it need not wait for a log sync.
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
async fn run(shared: &Shared, pause: Duration) {
    let mut cursors = vec![None; databases::COUNT];
    loop {
        let mut pauses = ROUND;
        for (number, store) in shared.databases.all() {
            let _shared = shared.databases.shared();
            // No client waits for an answer to these removals, so they need not be durable before the sweep continues.
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
                // The pool is full or damaged, which requests report. Try again later.
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
