//! A thread that removes expired entries.

use crate::{Error, Expiring};
use pmem::Process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Keys that the sweeper visits under one guard.
const STEP: usize = 256;

impl Expiring {
    /// Starts a thread that removes expired entries: it walks the whole map, sleeps for `pause`, and starts over.
    ///
    /// A round costs a scan of the map, in steps of 256 keys, and a removal of each expired entry; it keeps one core
    /// busy. If a round takes as long as `pause`, that is half of the time. An entry is removed within `pause` and one
    /// round after it expires.
    ///
    /// # Errors
    ///
    /// [`Error::Thread`]
    pub fn sweeper(&self, pause: Duration) -> Result<Sweeper, Error> {
        let shared = Arc::<SweeperState>::default();
        let (theirs, map) = (shared.clone(), self.clone());
        let thread = std::thread::Builder::new()
            .name("wollemi-sweep".into())
            .spawn(move || map.sweep_rounds(&theirs, pause, |pause| theirs.stops_within(pause)))
            .map_err(Error::Thread)?;
        Ok(Sweeper {
            shared,
            thread: Some(thread),
            process: Process::current(),
        })
    }

    /// Sweeps the map in rounds, sleeping for `pause` between them, until the sweeper is stopped.
    fn sweep_rounds(
        &self,
        shared: &SweeperState,
        pause: Duration,
        mut stops_within: impl FnMut(Duration) -> bool,
    ) {
        loop {
            self.sweep_round(shared);
            if stops_within(pause) {
                return;
            }
        }
    }

    /// Walks the map once; ends early when stopped or on an error.
    fn sweep_round(&self, shared: &SweeperState) {
        let mut cursor = None;
        // An error ends the round, and the next round tries again. The program learns of it by its own calls.
        while let Ok(swept) = self.sweep(&mut cursor, STEP) {
            shared.removed.fetch_add(swept.removed as u64, Relaxed);
            if cursor.is_none() || shared.stops_within(Duration::ZERO) {
                break;
            }
        }
    }
}

#[derive(Debug, Default)]
struct SweeperState {
    stop: Mutex<bool>,
    stopped: Condvar,
    removed: AtomicU64,
}

impl SweeperState {
    /// Waits for this time, or until the sweeper is stopped; returns whether it is.
    fn stops_within(&self, rest: Duration) -> bool {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        let (stop, _) = self
            .stopped
            .wait_timeout_while(stop, rest, |stop| !*stop)
            .unwrap_or_else(PoisonError::into_inner);
        *stop
    }
}

/// A thread that removes expired entries until this is dropped. It keeps the database open. A forked child has no such
/// thread, and dropping this there has no effect.
#[derive(Debug)]
pub struct Sweeper {
    shared: Arc<SweeperState>,
    thread: Option<JoinHandle<()>>,
    process: Process,
}

impl Sweeper {
    /// Returns the number of entries it has removed.
    pub fn removed(&self) -> u64 {
        self.shared.removed.load(Relaxed)
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The thread is the parent's, and may have held the lock at the fork.
            std::mem::forget(self.thread.take());
            return;
        }
        *self.shared.stop.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.shared.stopped.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread returns nothing; removed entries are counted as it goes.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sweeper sleeps for the requested time, whatever it finds and however long its rounds take.
    #[test]
    fn it_rests_as_long_as_was_asked_for() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let map = Expiring::new(db.map("m")?);
        for i in 0..20 * STEP as u32 {
            let over = (i == 7).then_some(Duration::ZERO);
            map.upsert(i.to_be_bytes(), "value", over)?;
        }
        let (shared, mut rests) = (SweeperState::default(), Vec::new());
        let pause = Duration::from_nanos(50);
        map.sweep_rounds(&shared, pause, |rest| {
            rests.push((rest, shared.removed.load(Relaxed)));
            rests.len() == 3
        });
        assert_eq!(rests, [(pause, 1); 3]);
        Ok(())
    }

    /// One round removes all expired entries, however few.
    #[test]
    fn one_round_removes_all_that_is_over() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let map = Expiring::new(db.map("m")?);
        for i in 0..10 * STEP as u32 {
            let over = (i % 8 == 0).then_some(Duration::ZERO);
            map.upsert(i.to_be_bytes(), "value", over)?;
        }
        let shared = SweeperState::default();
        map.sweep_round(&shared);
        assert_eq!(shared.removed.load(Relaxed), 10 * STEP as u64 / 8);
        assert_eq!(map.map().count()?, 10 * STEP as u64 * 7 / 8);
        map.sweep_round(&shared);
        assert_eq!(shared.removed.into_inner(), 10 * STEP as u64 / 8);
        Ok(())
    }
}
