//! The thread that syncs records that no thread waits for.

use crate::lock::lock;
use crate::{Disk, Log};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The minimum bound: a shorter one would keep a processor busy with polling.
const LEAST: Duration = Duration::from_millis(1);

/// The thread that syncs, within a bounded time, records that no thread waits for. A forked child does not have this
/// thread, and dropping the value would wait for it there: [forget](std::mem::forget) it.
#[derive(Debug)]
pub struct Syncer {
    shared: Arc<SyncerState>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct SyncerState {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    is_stopped: bool,
    /// `None`: the thread syncs nothing.
    bound: Option<Duration>,
}

impl Syncer {
    /// Starts the thread. A sync that covers a record begins at most `bound` after its append, or when the previous
    /// sync is done if that takes longer. A bound below 1 ms counts as 1 ms. Dropping the value ends the thread, after
    /// a last sync. If the log fails, the thread ends by itself.
    ///
    /// # Errors
    ///
    /// If the system cannot start the thread.
    pub fn start<D: Disk>(log: Arc<Log<D>>, bound: Duration) -> std::io::Result<Syncer> {
        let state = State {
            is_stopped: false,
            bound: Some(bound),
        };
        let shared = Arc::new(SyncerState {
            state: Mutex::new(state),
            changed: Condvar::new(),
        });
        let own = shared.clone();
        let thread = std::thread::Builder::new().name("log-syncer".into());
        let thread = thread.spawn(move || {
            let mut last = Instant::now();
            while !own.sleep_after(last) {
                last = Instant::now();
                if log.sync().is_err() {
                    // The log has failed: the calls of its users return the error.
                    return;
                }
            }
            let _ = log.sync();
        })?;
        Ok(Syncer {
            shared,
            thread: Some(thread),
        })
    }

    /// Changes the bound, also for records appended already; with `None` this thread syncs nothing before it ends.
    pub fn set_bound(&self, bound: Option<Duration>) {
        lock(&self.shared.state).bound = bound;
        self.shared.changed.notify_all();
    }
}

impl SyncerState {
    /// Sleeps until a sync is due; `last` is when the previous one began. Returns whether the thread should end
    /// instead.
    fn sleep_after(&self, last: Instant) -> bool {
        let mut state = lock(&self.state);
        loop {
            let left = state
                .bound
                .map(|bound| bound.max(LEAST).saturating_sub(last.elapsed()));
            if state.is_stopped || left == Some(Duration::ZERO) {
                return state.is_stopped;
            }
            // Without a bound it sleeps until one is set.
            let waited = self.changed.wait_timeout(state, left.unwrap_or(Duration::MAX));
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        lock(&self.shared.state).is_stopped = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
