//! A thread that removes entries past their end.

use crate::{Error, Expiring};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Keys that the sweeper looks at in one step.
const STEP: usize = 256;

/// Pauses between the end of a round of the sweeper and the next, in a step's pauses.
const ROUND: u32 = 20;

impl Expiring {
    /// Starts a thread that [sweeps](Expiring::sweep) round and round, a few hundred keys at a time, with this pause
    /// between two steps unless it is finding much.
    ///
    /// # Errors
    ///
    /// [`Error::Thread`]
    pub fn sweeper(&self, pause: Duration) -> Result<Sweeper, Error> {
        let shared = Arc::<Shared>::default();
        let (theirs, map) = (shared.clone(), self.clone());
        let thread = std::thread::Builder::new()
            .name("wollemi-sweep".into())
            .spawn(move || map.sweep_on(pause, &theirs))
            .map_err(Error::Thread)?;
        Ok(Sweeper {
            shared,
            thread: Some(thread),
        })
    }

    fn sweep_on(&self, pause: Duration, shared: &Shared) {
        let mut cursor = None;
        loop {
            let pauses = match self.sweep(&mut cursor, STEP) {
                Ok(swept) => {
                    shared.removed.fetch_add(swept.removed as u64, Relaxed);
                    match swept.seen {
                        seen if seen < STEP => ROUND,
                        seen if swept.removed * 4 < seen => 1,
                        _ => 0,
                    }
                }
                // A full or damaged pool, or another's values: who reads and writes is told. Again later.
                Err(_) => ROUND,
            };
            let stop = shared.stop.lock().unwrap_or_else(PoisonError::into_inner);
            let (stop, _) = shared
                .stopped
                .wait_timeout_while(stop, pause.saturating_mul(pauses), |stop| !*stop)
                .unwrap_or_else(PoisonError::into_inner);
            if *stop {
                return;
            }
        }
    }
}

#[derive(Debug, Default)]
struct Shared {
    stop: Mutex<bool>,
    stopped: Condvar,
    removed: AtomicU64,
}

/// A thread that removes what is past its end, until this is dropped. It keeps the database open.
#[derive(Debug)]
pub struct Sweeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Sweeper {
    /// Entries that it has removed.
    pub fn removed(&self) -> u64 {
        self.shared.removed.load(Relaxed)
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        *self.shared.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            // It has nothing to say: what it removed is counted.
            let _ = thread.join();
        }
    }
}
