//! The thread that syncs the records that no append waits for.

use crate::log::lock;
use crate::{Disk, Log};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The thread that syncs, within a bounded time, the records that no append waits for.
#[derive(Debug)]
pub struct Syncer {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

impl Syncer {
    /// Starts the thread. When a record was appended, a sync that covers it begins `bound` later at the latest, or when
    /// the one is done that takes longer than that. Dropping the value ends the thread, after a last sync.
    ///
    /// # Errors
    ///
    /// If the system starts no thread.
    pub fn start<D: Disk>(log: Arc<Log<D>>, bound: Duration) -> std::io::Result<Syncer> {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("log-syncer".into());
        let thread = thread.spawn(move || {
            let mut due = Instant::now() + bound;
            while !sleep_until(&stopped, due) {
                due = Instant::now() + bound;
                if log.sync().is_err() {
                    // The log has failed, and says so to all that use it.
                    return;
                }
            }
            let _ = log.sync();
        })?;
        Ok(Syncer {
            stop,
            thread: Some(thread),
        })
    }
}

/// Sleeps; whether the thread shall end.
fn sleep_until((stop, changed): &(Mutex<bool>, Condvar), due: Instant) -> bool {
    let mut stopped = lock(stop);
    loop {
        let left = due.saturating_duration_since(Instant::now());
        if *stopped || left.is_zero() {
            return *stopped;
        }
        let waited = changed.wait_timeout(stopped, left);
        stopped = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        *lock(&self.stop.0) = true;
        self.stop.1.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
