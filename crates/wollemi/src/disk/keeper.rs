//! The background threads of a database of level `disk`. The *keeper* records how much of the log the pool holds and
//! prepares the log's next segments. The *checkpointer* takes checkpoints when they are due.
//!
//! They are separate because a checkpoint takes long, and an opening after a kill replays all records behind the
//! position recorded last.
//!
//! They live as long as the handles of the database and its maps, and hold the pool open only while these do. Dropping
//! the last handle stops them and waits for them. A checkpoint in progress is then abandoned.

use crate::db::{Keeper, Maps};
use crate::disk::beside;
use crate::disk::checkpoint::Checkpoints;
use crate::disk::pace::Stop;
use crate::files_error::FilesError;
use crate::report::{Checkpoint, LogStats, Rebuilt};
use crate::write::traffic::Alive;
use crate::{Error, Media};
use log::{Disk, Histogram, Log, Syncer};
use pmem::Process;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum length of log that an opening after a kill replays, apart from records appended between two polls of the
/// keeper.
pub(super) const REPLAYED: u64 = 4 << 20;

/// How often the keeper polls.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// Minimum growth of the log between two polls, in bytes, for its next segments to be made ready in bulk.
const FAST: u64 = 1 << 20;

/// Bytes by which the log grows before the next checkpoint is due: by this much, or by the size of the last full
/// checkpoint if that is more, but by no more than half of the log's limit.
const MIN_GROWTH: u64 = 64 << 20;

/// Delay before the next attempt after a failed checkpoint.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// State shared by the threads and their callers.
pub(crate) struct KeeperState<D: Disk, M: Media> {
    pub log: Arc<Log<D>>,
    pub checkpoints: Checkpoints<D>,
    pub maps: Maps<M>,
    pub limit: u64,
    /// The rebuild with which the opening began.
    pub rebuilt: Option<Rebuilt>,
    bell: Arc<Bell>,
    last: Mutex<Last>,
}

/// Results of the last checkpoints.
#[derive(Debug)]
struct Last {
    taken: u64,
    bytes: u64,
    done: Option<Checkpoint>,
    /// How long the last checkpoint took.
    took: Option<Duration>,
    /// How long all checkpoints took.
    took_in_all: Duration,
    /// Histogram of their durations, in milliseconds.
    millis: Histogram,
    /// When the last checkpoint was taken, or, before the first, when the database was opened.
    at: Instant,
    /// Checkpoints in progress.
    running: usize,
    failure: Option<String>,
}

/// Wakes the threads, and stops them.
#[derive(Default)]
pub(crate) struct Bell {
    /// Takes the checkpoint in the calling thread if no thread waits for the bell.
    at_once: OnceLock<Box<dyn Fn() + Send + Sync>>,
    pub stop: Stop,
    /// Whether the log needs room.
    rung: Mutex<bool>,
    changed: Condvar,
}

impl Bell {
    pub fn new(stop: Stop) -> Bell {
        Bell {
            stop,
            ..Bell::default()
        }
    }

    /// Asks for a checkpoint.
    pub fn ring(&self) {
        if let Some(take) = self.at_once.get() {
            return take();
        }
        *self.lock() = true;
        self.changed.notify_all();
    }

    /// Waits until the bell rings, a poll finds a checkpoint due, or the threads are stopped.
    fn wait(&self, is_due: impl Fn() -> bool) {
        let quiet = |rung: &mut bool| !*rung && !is_due() && !self.is_stopped();
        let waited = self.changed.wait_while(self.lock(), quiet);
        *waited.unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// Wakes the checkpointer to check whether a checkpoint is due. It may miss the call just before it sleeps; the
    /// keeper repeats it.
    fn look(&self) {
        self.changed.notify_all();
    }

    /// Waits for the given time, or until the threads are stopped.
    fn rest(&self, time: Duration) {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), time, |_| !self.is_stopped());
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_closing()
    }

    fn stop(&self) {
        // Under the lock, so that no thread misses it between its check and its sleep.
        let _rung = self.lock();
        self.stop.close();
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.rung.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether the error may mean that a part of the log cannot be read.
fn is_of_log(error: &Error) -> bool {
    matches!(
        error,
        Error::Files(FilesError::Log(
            log::Error::Damaged { .. } | log::Error::Missing { .. } | log::Error::Disk(_)
        ))
    )
}

/// How fast the log grows.
struct Growth {
    appended: u64,
    /// Number of waits for a sync.
    waits: u64,
    /// Bytes expected until the next poll.
    bytes: u64,
}

impl Growth {
    fn new<D: Disk>(log: &Log<D>) -> Growth {
        Growth {
            appended: log.appended().0,
            waits: log.waits(),
            bytes: 0,
        }
    }

    /// Returns for how many bytes the log should be prepared in bulk; 0 if it grows slowly, or if writes wait for
    /// syncs, which would take longer.
    fn ahead<D: Disk>(&mut self, log: &Log<D>) -> u64 {
        let (appended, waits) = (log.appended().0, log.waits());
        let grown = appended - std::mem::replace(&mut self.appended, appended);
        self.bytes = match std::mem::replace(&mut self.waits, waits) == waits {
            true => grown.max(self.bytes / 2),
            false => 0,
        };
        match self.bytes < FAST {
            true => 0,
            false => 2 * self.bytes,
        }
    }
}

/// The threads. Dropping it stops them. In a forked child there are none, and dropping it only frees memory.
pub(crate) struct Threads<D: Disk, M: Media> {
    shared: Arc<KeeperState<D, M>>,
    threads: Vec<JoinHandle<()>>,
    /// Syncs the records that no write waits for.
    syncer: Option<Syncer>,
    process: Process,
}

impl<D: Disk, M: Media> KeeperState<D, M> {
    pub fn new(
        log: Arc<Log<D>>,
        checkpoints: Checkpoints<D>,
        maps: Maps<M>,
        limit: u64,
        rebuilt: Option<Rebuilt>,
        bell: Arc<Bell>,
    ) -> Arc<KeeperState<D, M>> {
        Arc::new(KeeperState {
            log,
            checkpoints,
            maps,
            limit,
            rebuilt,
            bell,
            last: Mutex::new(Last {
                taken: 0,
                bytes: 0,
                done: None,
                took: None,
                took_in_all: Duration::ZERO,
                millis: Histogram::default(),
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
        let mut taken = match full {
            true => self.checkpoints.take_full(&self.maps, stop),
            false => self.checkpoints.take(&self.maps, stop),
        };
        if taken.as_ref().is_err_and(is_of_log) {
            // A full checkpoint does not read the log.
            taken = self.checkpoints.take_full(&self.maps, stop);
        }
        let mut last = self.last();
        last.running -= 1;
        match &taken {
            Ok(done) => {
                last.taken += 1;
                last.bytes += done.bytes;
                last.done = Some(*done);
                let took = started.elapsed();
                last.took = Some(took);
                last.took_in_all += took;
                last.millis.add(took.as_millis() as u64);
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
        grown >= self.limit / 2 || grown >= MIN_GROWTH.max(self.checkpoints.full_bytes())
    }

    /// The keeper's loop.
    fn keep(&self) {
        let mut noted = self.log.durable().0;
        let mut growth = Growth::new(&self.log);
        while !self.bell.is_stopped() {
            self.bell.rest(POLL_INTERVAL);
            // An error is ignored here: the append that needs the segment makes it, and reports the error.
            let _ = match growth.ahead(&self.log) {
                0 => self.log.prepare(),
                bytes => self.log.prepare_for(bytes),
            };
            if self.is_due() {
                self.bell.look();
            }
            if self.log.appended().0 - noted >= REPLAYED
                && let Ok(position) = self.note()
            {
                noted = position;
            }
        }
    }

    /// Syncs the log's full segments, or all of it if [`REPLAYED`] bytes or more lie behind these, and records how much
    /// of the log the pool holds. On failure the next opening replays more.
    fn note(&self) -> Result<u64, Error> {
        let full = self.log.sync_full().map_err(FilesError::from)?;
        let end = match self.log.appended().0 - full.0 < REPLAYED {
            true => full,
            false => self.log.sync().map_err(FilesError::from)?,
        };
        self.maps.note_position(&self.log)?;
        Ok(end.0)
    }

    /// The checkpointer's loop.
    fn take_when_due(&self) {
        loop {
            self.bell.wait(|| self.is_due());
            if self.bell.is_stopped() {
                return;
            }
            if self.take(false).is_err() {
                self.bell.rest(AFTER_FAILURE);
            }
        }
    }
}

impl<D: Disk, M: Media> Threads<D, M> {
    /// Starts the threads. A record that no write waits for becomes durable within `sync_within`. Without such a bound
    /// nothing runs in the background: the writer that lacks room in the log takes a checkpoint.
    pub fn start(
        shared: Arc<KeeperState<D, M>>,
        sync_within: Option<Duration>,
    ) -> Result<Threads<D, M>, Error> {
        let Some(sync_within) = sync_within else {
            let own = Arc::downgrade(&shared);
            let take = move || own.upgrade().map_or((), |own| drop(own.take(false)));
            shared.bell.at_once.get_or_init(|| Box::new(take));
            return Ok(Threads {
                shared,
                threads: Vec::new(),
                syncer: None,
                process: Process::current(),
            });
        };
        let syncer = Syncer::start(shared.log.clone(), sync_within).map_err(Error::Thread)?;
        // Dropping it stops the threads already started if one fails to start.
        let mut threads = Threads {
            shared,
            threads: Vec::new(),
            syncer: Some(syncer),
            process: Process::current(),
        };
        threads.spawn("wollemi-keeper", KeeperState::keep)?;
        threads.spawn("wollemi-checkpoint", KeeperState::take_when_due)?;
        Ok(threads)
    }

    fn spawn(&mut self, name: &str, run: fn(&KeeperState<D, M>)) -> Result<(), Error> {
        let (thread, own) = (std::thread::Builder::new().name(name.into()), self.shared.clone());
        let thread = thread.spawn(move || run(&own)).map_err(Error::Thread)?;
        self.threads.push(thread);
        Ok(())
    }
}

impl<D: Disk, M: Media> Drop for Threads<D, M> {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // The threads are the parent's, and may have held the locks at the fork.
            std::mem::forget((std::mem::take(&mut self.threads), self.syncer.take()));
            return;
        }
        self.shared.bell.stop();
        for thread in self.threads.drain(..) {
            // A panic of the thread was reported where it happened.
            let _ = thread.join();
        }
        // The syncer may be creating a segment, and another process may open the pool as soon as this one has closed
        // it.
        drop(self.syncer.take());
        // All handles of the database are gone, so no thread writes.
        let KeeperState { log, maps, .. } = &*self.shared;
        if log.sync().is_ok() {
            // If this fails, the next opening replays a little more.
            let _ = maps.note_position(log);
            maps.store.heap.pool().leave_unclosed(false);
        }
    }
}

impl<D: Disk, M: Media> Alive for Threads<D, M> {}

impl<D: Disk, M: Media> Keeper for Threads<D, M> {
    fn checkpoint(&self, full: bool) -> Result<Checkpoint, Error> {
        self.shared.take(full)
    }

    fn request_checkpoint(&self) {
        self.shared.bell.ring();
    }

    fn set_sync_within(&self, time: Option<Duration>) {
        if let Some(syncer) = &self.syncer {
            syncer.set_bound(time);
        }
    }

    fn removal(&self) -> Box<dyn FnOnce() -> Result<(), Error>> {
        let disk = self.shared.checkpoints.disk();
        let path = self.shared.maps.store.heap.pool().path().map(Path::to_owned);
        Box::new(move || match path {
            Some(path) => beside::remove_ended(&path),
            None => Ok(beside::clear(&*disk, None)?),
        })
    }

    fn stats(&self) -> LogStats {
        let last = self.shared.last();
        LogStats {
            limit: self.shared.limit,
            checkpoints: last.taken,
            checkpoint_bytes: last.bytes,
            last_checkpoint: last.done,
            last_checkpoint_seconds: last.took.map(|took| took.as_secs_f64()),
            checkpoint_millis: last.millis.0.to_vec(),
            checkpoint_seconds: last.took_in_all.as_secs_f64(),
            is_checkpointing: last.running > 0,
            seconds_since_checkpoint: last.at.elapsed().as_secs_f64(),
            checkpoint_failure: last.failure.clone(),
            rebuilt: self.shared.rebuilt,
            replayed_from: self.shared.checkpoints.from(),
            ..LogStats::of(&self.shared.log.stats())
        }
    }
}
