//! A thread that removes entries past their end.

use crate::{Error, Expiring};
use pmem::Process;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Keys that the sweeper looks at under one guard.
const STEP: usize = 256;

/// After a round that has found little, the sweeper rests this many times as long as the round took.
const IDLE: u32 = 9;

/// What the sweeper has done in one round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    seen: usize,
    removed: usize,
    took: Duration,
}

impl Round {
    /// How long the sweeper rests after the round.
    fn rest(self, pause: Duration) -> Duration {
        let found_much = self.removed * 4 >= self.seen;
        if self.removed > 0 && found_much {
            pause
        } else {
            pause.max(self.took.saturating_mul(IDLE))
        }
    }
}

impl Expiring {
    /// Starts a thread that removes the entries past their end: it goes through the whole map, rests for `pause`, and
    /// begins again.
    ///
    /// A round costs a scan of the map, in steps of 256 keys, and a remove of each entry past its end; it keeps one core
    /// busy. After a round that removed fewer than a quarter of the entries, the thread rests for nine times as long as
    /// the round took, if that is longer than `pause`. So a sweeper takes at most a tenth of a core of an idle database,
    /// and an entry of a map that is scanned within a ninth of `pause` is gone `pause` and one round after its end, at
    /// the latest.
    ///
    /// # Errors
    ///
    /// [`Error::Thread`]
    pub fn sweeper(&self, pause: Duration) -> Result<Sweeper, Error> {
        let shared = Arc::<Shared>::default();
        let (theirs, map) = (shared.clone(), self.clone());
        let thread = std::thread::Builder::new()
            .name("wollemi-sweep".into())
            .spawn(move || while !theirs.stops_within(map.sweep_round(&theirs).rest(pause)) {})
            .map_err(Error::Thread)?;
        Ok(Sweeper {
            shared,
            thread: Some(thread),
            process: Process::current(),
        })
    }

    /// Goes through the map once, unless it is stopped or meets an error.
    fn sweep_round(&self, shared: &Shared) -> Round {
        let (began, mut round, mut cursor) = (Instant::now(), Round::default(), None);
        // A full or damaged pool, or another's values: whoever reads and writes gets the error. The next round tries
        // again.
        while let Ok(swept) = self.sweep(&mut cursor, STEP) {
            shared.removed.fetch_add(swept.removed as u64, Relaxed);
            round.seen += swept.seen;
            round.removed += swept.removed;
            if cursor.is_none() || shared.stops_within(Duration::ZERO) {
                break;
            }
        }
        round.took = began.elapsed();
        round
    }
}

#[derive(Debug, Default)]
struct Shared {
    stop: Mutex<bool>,
    stopped: Condvar,
    removed: AtomicU64,
}

impl Shared {
    /// Waits for so long, or until the sweeper is to stop; whether it is.
    fn stops_within(&self, rest: Duration) -> bool {
        let stop = self.stop.lock().unwrap_or_else(PoisonError::into_inner);
        let (stop, _) = self
            .stopped
            .wait_timeout_while(stop, rest, |stop| !*stop)
            .unwrap_or_else(PoisonError::into_inner);
        *stop
    }
}

/// A thread that removes what is past its end, until this is dropped. It keeps the database open. In a forked
/// child there is no such thread, and dropping this there does nothing.
#[derive(Debug)]
pub struct Sweeper {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    process: Process,
}

impl Sweeper {
    /// Entries that it has removed.
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
            // It has nothing to say: what it removed is counted.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sweeper rests for as long as was asked for, unless it finds little and its rounds take long.
    #[test]
    fn it_rests_as_long_as_was_asked_for() {
        let pause = Duration::from_millis(50);
        let rest = |seen, removed, took| {
            let took = Duration::from_millis(took);
            Round { seen, removed, took }.rest(pause).as_millis()
        };
        assert_eq!(rest(0, 0, 0), 50);
        assert_eq!(rest(800, 800, 3), 50);
        assert_eq!(rest(1_000_000, 0, 5), 50);
        assert_eq!(rest(2_000_000, 0, 70), 630);
        assert_eq!(rest(2_000_000, 499_999, 70), 630);
        assert_eq!(rest(2_000_000, 500_000, 170), 50);
    }

    /// What is past its end is gone after one round, however little of the map it is.
    #[test]
    fn one_round_removes_all_that_is_over() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let map = Expiring::new(db.map("m")?);
        for i in 0..10 * STEP as u32 {
            let over = (i % 8 == 0).then_some(Duration::ZERO);
            map.upsert(i.to_be_bytes(), "value", over)?;
        }
        let shared = Shared::default();
        let round = map.sweep_round(&shared);
        assert_eq!((round.seen, round.removed), (10 * STEP, 10 * STEP / 8));
        assert_eq!(map.map().count()?, 10 * STEP as u64 * 7 / 8);
        assert_eq!(map.sweep_round(&shared).removed, 0);
        assert_eq!(shared.removed.into_inner(), 10 * STEP as u64 / 8);
        Ok(())
    }
}
