//! The thread that looks after a database of level `disk`: it notes how much of the log the pool holds, and takes checkpoints
//! when they are due.
//!
//! It lives as long as the handles of the database and its maps do, and holds the pool open only while they do: whoever
//! drops the last of them stops it, and waits for it. A checkpoint that is under way is given up then.

use crate::db::{Keeper, Maps};
use crate::disk::checkpoint::Checkpoints;
use crate::disk::opening;
use crate::report::{Checkpoint, LogStats};
use crate::write::traffic::Alive;
use crate::{Error, Media};
use log::{Disk, Log, Syncer};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How much log an opening after a killed process replays at most, beside what came while the position was noted.
const REPLAYED: u64 = 4 << 20;

/// How often the thread looks by itself.
const LOOK: Duration = Duration::from_millis(20);

/// A checkpoint is due when the log has grown by so much since the last one, or by as much as the last full one has, if that
/// is more, and in any case when it has grown by half of its limit.
const DUE: u64 = 64 << 20;

/// After a checkpoint that has failed, the next one is tried after this time.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// What the thread and those who call it share.
pub(crate) struct Shared<D: Disk, M: Media> {
    pub log: Arc<Log<D>>,
    pub checkpoints: Checkpoints<D>,
    pub maps: Maps<M>,
    pub limit: u64,
    bell: Arc<Bell>,
    last: Mutex<Last>,
}

/// What became of the last checkpoints.
#[derive(Debug, Default)]
struct Last {
    taken: u64,
    bytes: u64,
    done: Option<Checkpoint>,
    failure: Option<String>,
}

/// Wakes the thread, and stops it.
#[derive(Debug, Default)]
pub(crate) struct Bell {
    stop: AtomicBool,
    /// Whether room is wanted in the log.
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    /// Asks for a checkpoint.
    pub fn ring(&self) {
        *self.lock() = true;
        self.changed.notify_all();
    }

    /// Waits until it rings, or for so long; whether it has rung.
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
    shared: Arc<Shared<D, M>>,
    thread: Option<JoinHandle<()>>,
    /// Makes durable the records that no write waits for.
    _syncer: Syncer,
}

impl<D: Disk, M: Media> Shared<D, M> {
    pub fn new(
        log: Arc<Log<D>>,
        checkpoints: Checkpoints<D>,
        maps: Maps<M>,
        limit: u64,
        bell: Arc<Bell>,
    ) -> Arc<Shared<D, M>> {
        Arc::new(Shared {
            log,
            checkpoints,
            maps,
            limit,
            bell,
            last: Mutex::default(),
        })
    }

    /// Takes a checkpoint.
    pub fn take(&self, full: bool) -> Result<Checkpoint, Error> {
        let stop = &self.bell.stop;
        let taken = match full {
            true => self.checkpoints.take_full(&self.maps, stop),
            false => self.checkpoints.take(&self.maps, stop),
        };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        match &taken {
            Ok(done) => {
                last.taken += 1;
                last.bytes += done.bytes;
                last.done = Some(*done);
                last.failure = None;
            }
            Err(error) => last.failure = Some(error.to_string()),
        }
        taken
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
    /// Starts the thread. A record that no write waits for is durable within `sync_within`.
    pub fn start(shared: Arc<Shared<D, M>>, sync_within: Duration) -> Result<Thread<D, M>, Error> {
        let syncer = Syncer::start(shared.log.clone(), sync_within).map_err(Error::Thread)?;
        let thread = std::thread::Builder::new().name("wollemi-keeper".into());
        let own = shared.clone();
        let thread = thread.spawn(move || own.run()).map_err(Error::Thread)?;
        Ok(Thread {
            shared,
            thread: Some(thread),
            _syncer: syncer,
        })
    }
}

impl<D: Disk, M: Media> Drop for Thread<D, M> {
    fn drop(&mut self) {
        self.shared.bell.stop();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread has been told where it happened.
            let _ = thread.join();
        }
        // Nobody writes any more. The pool must not say that more is in the log than a loss of power leaves there: it
        // refuses a log that ends before its position. Where this fails, the next opening replays a little more.
        if self.shared.log.sync().is_ok() {
            let _ = self.shared.maps.note_position(&self.shared.log);
        }
    }
}

impl<D: Disk, M: Media> Alive for Thread<D, M> {}

impl<D: Disk, M: Media> Keeper for Thread<D, M> {
    fn checkpoint(&self, full: bool) -> Result<Checkpoint, Error> {
        self.shared.take(full)
    }

    fn removal(&self) -> Box<dyn FnOnce() -> Result<(), Error>> {
        let disk = self.shared.checkpoints.disk();
        Box::new(move || Ok(opening::clear(&*disk, None)?))
    }

    fn stats(&self) -> LogStats {
        let last = self.shared.last.lock().unwrap_or_else(PoisonError::into_inner);
        LogStats {
            limit: self.shared.limit,
            checkpoints: last.taken,
            checkpoint_bytes: last.bytes,
            last_checkpoint: last.done,
            checkpoint_failure: last.failure.clone(),
            replayed_from: self.shared.checkpoints.from(),
            ..LogStats::of(&self.shared.log.stats())
        }
    }
}
