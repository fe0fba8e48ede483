//! The background thread of a database of level `disk`: it notes how much of the log the pool holds, and takes
//! checkpoints when they are due.
//!
//! It lives as long as the handles of the database and its maps do, and holds the pool open only while they do: the
//! drop of the last one stops it, and waits for it. A checkpoint that is under way is given up then.

use crate::db::{Keeper, Maps};
use crate::disk::checkpoint::Checkpoints;
use crate::disk::opening;
use crate::report::{Checkpoint, LogStats};
use crate::write::traffic::Alive;
use crate::{Error, Media};
use log::{Disk, Log, Syncer};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum length of log that an opening after a kill replays, beside records that came while the position was noted.
const REPLAYED: u64 = 4 << 20;

/// How often the thread looks by itself.
const LOOK: Duration = Duration::from_millis(20);

/// Minimum growth of the log before the next checkpoint. A checkpoint is due when the log has grown by this much since
/// the last one, or by the size of the last full one if that is more, and in any case by half of the log's limit.
const DUE: u64 = 64 << 20;

/// After a checkpoint that has failed, the next one is tried after this time.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// State shared by the thread and its callers.
pub(crate) struct KeeperState<D: Disk, M: Media> {
    pub log: Arc<Log<D>>,
    pub checkpoints: Checkpoints<D>,
    pub maps: Maps<M>,
    pub limit: u64,
    bell: Arc<Bell>,
    last: Mutex<Last>,
}

/// What became of the last checkpoints.
#[derive(Debug)]
struct Last {
    taken: u64,
    bytes: u64,
    done: Option<Checkpoint>,
    /// How long that took.
    took: Option<Duration>,
    /// When it was taken; or else when the database was opened.
    at: Instant,
    /// Those under way.
    running: usize,
    failure: Option<String>,
}

/// Wakes the thread, and stops it.
#[derive(Default)]
pub(crate) struct Bell {
    /// What takes the checkpoint where no thread hears it.
    at_once: OnceLock<Box<dyn Fn() + Send + Sync>>,
    stop: AtomicBool,
    /// Whether room is wanted in the log.
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    /// Asks for a checkpoint.
    pub fn ring(&self) {
        if let Some(take) = self.at_once.get() {
            return take();
        }
        *self.lock() = true;
        self.changed.notify_all();
    }

    /// Waits until the bell rings, or for the given time; returns whether it has rung.
    fn wait(&self, time: Duration) -> bool {
        let quiet = |rung: &mut bool| !*rung && !self.stop.load(SeqCst);
        let waited = self.changed.wait_timeout_while(self.lock(), time, quiet);
        std::mem::take(&mut *waited.unwrap_or_else(PoisonError::into_inner).0)
    }

    fn stop(&self) {
        // Under the lock, so that the thread does not miss it between its look and its sleep.
        let _rung = self.lock();
        self.stop.store(true, SeqCst);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The thread. Dropping it stops it.
pub(crate) struct Thread<D: Disk, M: Media> {
    shared: Arc<KeeperState<D, M>>,
    thread: Option<JoinHandle<()>>,
    /// Makes durable the records that no write waits for.
    syncer: Option<Syncer>,
}

impl<D: Disk, M: Media> KeeperState<D, M> {
    pub fn new(
        log: Arc<Log<D>>,
        checkpoints: Checkpoints<D>,
        maps: Maps<M>,
        limit: u64,
        bell: Arc<Bell>,
    ) -> Arc<KeeperState<D, M>> {
        Arc::new(KeeperState {
            log,
            checkpoints,
            maps,
            limit,
            bell,
            last: Mutex::new(Last {
                taken: 0,
                bytes: 0,
                done: None,
                took: None,
                at: Instant::now(),
                running: 0,
                failure: None,
            }),
        })
    }

    /// Takes a checkpoint.
    pub fn take(&self, full: bool) -> Result<Checkpoint, Error> {
        let (stop, started) = (&self.bell.stop, Instant::now());
        self.last().running += 1;
        let taken = match full {
            true => self.checkpoints.take_full(&self.maps, stop),
            false => self.checkpoints.take(&self.maps, stop),
        };
        let mut last = self.last();
        last.running -= 1;
        match &taken {
            Ok(done) => {
                last.taken += 1;
                last.bytes += done.bytes;
                last.done = Some(*done);
                last.took = Some(started.elapsed());
                last.at = Instant::now();
                last.failure = None;
            }
            Err(error) => last.failure = Some(error.to_string()),
        }
        taken
    }

    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_due(&self) -> bool {
        let grown = self.log.appended().0.saturating_sub(self.checkpoints.from());
        grown >= self.limit / 2 || grown >= DUE.max(self.checkpoints.full_bytes())
    }

    fn run(&self) {
        let (mut noted, mut rest) = (self.log.appended().0, Duration::ZERO);
        while !self.bell.stop.load(SeqCst) {
            let rung = self.bell.wait(LOOK);
            // An append would make it ready itself, and tell of an error.
            let _ = self.log.prepare();
            rest = rest.saturating_sub(LOOK);
            if (rung || self.is_due()) && rest.is_zero() && self.take(false).is_err() {
                rest = AFTER_FAILURE;
            }
            let end = self.log.appended().0;
            // Where it fails, more is replayed.
            if end - noted >= REPLAYED && self.maps.note_position(&self.log).is_ok() {
                noted = end;
            }
        }
    }
}

impl<D: Disk, M: Media> Thread<D, M> {
    /// Starts the thread. A record that no write waits for is durable within `sync_within`. Without such a bound nothing
    /// runs by itself: a checkpoint is taken by the writer that lacks room in the log.
    pub fn start(
        shared: Arc<KeeperState<D, M>>,
        sync_within: Option<Duration>,
    ) -> Result<Thread<D, M>, Error> {
        let Some(sync_within) = sync_within else {
            let own = Arc::downgrade(&shared);
            let take = move || own.upgrade().map_or((), |own| drop(own.take(false)));
            shared.bell.at_once.get_or_init(|| Box::new(take));
            return Ok(Thread {
                shared,
                thread: None,
                syncer: None,
            });
        };
        let syncer = Syncer::start(shared.log.clone(), sync_within).map_err(Error::Thread)?;
        let thread = std::thread::Builder::new().name("wollemi-keeper".into());
        let own = shared.clone();
        let thread = thread.spawn(move || own.run()).map_err(Error::Thread)?;
        Ok(Thread {
            shared,
            thread: Some(thread),
            syncer: Some(syncer),
        })
    }
}

impl<D: Disk, M: Media> Drop for Thread<D, M> {
    fn drop(&mut self) {
        self.shared.bell.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported where it happened.
            let _ = thread.join();
        }
        // All handles of the database are gone, so no thread writes.
        let KeeperState { log, maps, .. } = &*self.shared;
        if log.sync().is_ok() {
            // Where this fails, the next opening replays a little more.
            let _ = maps.note_position(log);
            maps.store.heap.pool().leave_unclosed(false);
        }
    }
}

impl<D: Disk, M: Media> Alive for Thread<D, M> {}

impl<D: Disk, M: Media> Keeper for Thread<D, M> {
    fn checkpoint(&self, full: bool) -> Result<Checkpoint, Error> {
        self.shared.take(full)
    }

    fn ask_for_checkpoint(&self) {
        self.shared.bell.ring();
    }

    fn set_sync_within(&self, time: Option<Duration>) {
        if let Some(syncer) = &self.syncer {
            syncer.set_bound(time);
        }
    }

    fn removal(&self) -> Box<dyn FnOnce() -> Result<(), Error>> {
        let disk = self.shared.checkpoints.disk();
        Box::new(move || Ok(opening::clear(&*disk, None)?))
    }

    fn stats(&self) -> LogStats {
        let last = self.shared.last();
        LogStats {
            limit: self.shared.limit,
            checkpoints: last.taken,
            checkpoint_bytes: last.bytes,
            last_checkpoint: last.done,
            last_checkpoint_seconds: last.took.map(|took| took.as_secs_f64()),
            is_checkpointing: last.running > 0,
            seconds_since_checkpoint: last.at.elapsed().as_secs_f64(),
            checkpoint_failure: last.failure.clone(),
            replayed_from: self.shared.checkpoints.from(),
            ..LogStats::of(&self.shared.log.stats())
        }
    }
}
