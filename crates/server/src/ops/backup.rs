//! Backups of all databases while clients are served: one at a time, each on a thread of its own.
//!
//! I1 A backup holds one moment of all databases, between the request for it and its answer, with each transaction
//!    whole or absent: the snapshot is taken while no command has exclusive use. If a transaction asks for the backup,
//!    the moment is after that transaction.
//! I2 A worker takes the snapshot, unless a transaction asks for the backup, but does not wait until the backup is
//!    written. Only the client that asks with `SAVE` waits.
//! I3 No backup outlives its server.
//!
//! Not here: the file, which the program around the server writes (`config::Host`); the commands
//! (`commands::redis::backup`).

use crate::clock::now;
use crate::items::databases::Databases;
use crate::ops::config::Host;
use crate::ops::copying::{BackupTo, Copying, Outcome};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use wollemi::Snapshot;

/// What the thread of a backup does.
type Work = Box<dyn FnOnce() + Send>;

/// The backups of a server.
pub struct Backups {
    databases: Arc<Databases>,
    /// Writes the files.
    host: Option<Arc<dyn Host>>,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    to: Option<BackupTo>,
    running: Option<Running>,
    /// The thread of the last backup.
    thread: Option<JoinHandle<()>>,
    ended: bool,
    done: Done,
}

#[derive(Clone, Debug)]
struct Running {
    since: Instant,
    /// The number of [changes](Databases::edits) before the request for it.
    edits: u64,
    copying: Arc<Copying>,
}

/// The outcome of the backups that have ended.
#[derive(Clone, Debug)]
pub struct Done {
    /// The number of successful backups.
    pub made: u64,
    /// The number of failed backups.
    pub failed: u64,
    /// The time in seconds since 1970 at which the last successful backup ended, or else at which the server started.
    pub time: u64,
    /// Whether the last backup that has ended, or could not begin because its snapshot or its thread failed, succeeded;
    /// `true` before the first.
    pub well: bool,
    /// The duration of the last backup that has ended.
    pub took: Option<Duration>,
    /// The number of [changes](Databases::edits) before the request for the last successful backup.
    edits: u64,
}

impl Done {
    /// Counts a failed backup.
    fn fail(&mut self) {
        self.failed += 1;
        self.well = false;
    }
}

/// The state of backups at one moment.
#[derive(Clone, Debug)]
pub struct Look {
    pub done: Done,
    /// The number of [changes](Databases::edits) since the request for the last successful backup, or else since the
    /// start.
    pub edits: u64,
    /// The time since the running backup began.
    pub running: Option<Duration>,
    /// The number of entries at the running backup's moment, and its progress: entries and bytes written, and bytes of
    /// memory for before-images. Zeros if none runs.
    pub total: u64,
    pub entries: u64,
    pub bytes: u64,
    pub memory: u64,
    /// The file of backups.
    pub file: Option<PathBuf>,
}

impl Backups {
    pub fn new(databases: Arc<Databases>, host: Option<Arc<dyn Host>>, to: Option<BackupTo>) -> Backups {
        let inner = Inner {
            to,
            running: None,
            thread: None,
            ended: false,
            done: Done {
                made: 0,
                failed: 0,
                time: now() / 1000,
                well: true,
                took: None,
                edits: 0,
            },
        };
        Backups {
            databases,
            host,
            inner: Mutex::new(inner),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Each change is one or several assignments, none of which panics.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes where the next backup goes.
    pub fn take(&self, to: Option<BackupTo>) {
        self.lock().to = to;
    }

    /// Returns the state of backups.
    pub fn look(&self) -> Look {
        let inner = self.lock();
        let running = inner.running.as_ref();
        let of = |count: fn(&Copying) -> &AtomicU64| {
            running.map_or(0, |running| count(&running.copying).load(Relaxed))
        };
        Look {
            edits: self.databases.edits().saturating_sub(inner.done.edits),
            running: running.map(|running| running.since.elapsed()),
            total: of(|copying| &copying.total),
            entries: of(|copying| &copying.entries),
            bytes: of(|copying| &copying.bytes),
            memory: of(|copying| &copying.memory),
            file: inner.to.as_ref().map(|to| to.file.clone()),
            done: inner.done.clone(),
        }
    }

    /// Begins a [backup](Backups::begin_on) on a thread of its own.
    ///
    /// # Errors
    ///
    /// The error's text, if a backup runs already, none can be made here, the server ends, or the snapshot or the
    /// thread fails.
    pub fn begin(self: &Arc<Backups>, now: bool) -> Result<oneshot::Receiver<Outcome>, String> {
        self.begin_on(now, |work| {
            std::thread::Builder::new().name("backup".into()).spawn(work)
        })
    }

    /// Begins a backup on the thread that `spawn` starts. If `now`, it shows this moment, and the caller makes sure
    /// that no command has exclusive use; otherwise a later one. The receiver gets the result.
    fn begin_on(
        self: &Arc<Backups>,
        now: bool,
        spawn: impl FnOnce(Work) -> io::Result<JoinHandle<()>>,
    ) -> Result<oneshot::Receiver<Outcome>, String> {
        let mut inner = self.lock();
        let host = self.host.clone();
        let host = host.ok_or("this server has nothing that makes backups")?;
        let to = inner.to.clone().ok_or(
            "no file for backups is set: start the server with --backup FILE, or set backup = \"FILE\" in its \
             settings and send it SIGHUP",
        )?;
        if inner.running.is_some() {
            return Err("Background save already in progress".into());
        }
        if inner.ended {
            return Err("the server ends".into());
        }
        let running = Running {
            since: Instant::now(),
            edits: self.databases.edits(),
            copying: Arc::default(),
        };
        let copying = running.copying.clone();
        let moment = now.then(|| self.moment(&to, &copying)).transpose();
        let moment = moment.inspect_err(|_| inner.done.fail())?;
        let (tell, told) = oneshot::channel();
        let backups = self.clone();
        let thread = spawn(Box::new(move || {
            tracing::info!(file = %to.file.display(), "backup begun");
            let made = catch_unwind(AssertUnwindSafe(|| {
                let moment = match moment {
                    Some(moment) => moment,
                    None => {
                        let _shared = backups.databases.shared();
                        backups.moment(&to, &copying)?
                    }
                };
                host.back_up(&moment, &to, &copying)
            }));
            let made = made.unwrap_or_else(|_| Err("the backup has panicked".into()));
            backups.end(&made);
            // The client that asked may be gone.
            let _ = tell.send(made);
        }));
        let thread = thread.inspect_err(|_| inner.done.fail());
        let thread = thread.map_err(|error| format!("no thread for the backup: {error}"))?;
        if let Some(before) = inner.thread.replace(thread) {
            // It has ended, except for its last step, and has logged its panics.
            let _ = before.join();
        }
        inner.running = Some(running);
        Ok(told)
    }

    /// Takes a snapshot of all maps. The caller has made sure that no command has exclusive use.
    fn moment(&self, to: &BackupTo, copying: &Copying) -> Result<Snapshot, String> {
        let snapshot = self.databases.db().snapshot_within(to.memory);
        copying.total.store(self.databases.keys(), Relaxed);
        snapshot.map_err(|error| error.to_string())
    }

    fn end(&self, made: &Outcome) {
        let inner = &mut *self.lock();
        let Some(running) = inner.running.take() else {
            return;
        };
        let took = running.since.elapsed();
        let (done, copying) = (&mut inner.done, &running.copying);
        done.took = Some(took);
        match made {
            Ok(()) => {
                done.made += 1;
                done.well = true;
                done.time = now() / 1000;
                done.edits = running.edits;
                let (entries, bytes) = (copying.entries.load(Relaxed), copying.bytes.load(Relaxed));
                tracing::info!(entries, bytes, seconds = took.as_secs_f64(), "backup done");
            }
            Err(why) => {
                done.fail();
                tracing::error!(why, "backup failed, the one before stays");
            }
        }
    }

    /// Gives up the running backup, and refuses further ones.
    pub fn give_up(&self) {
        let mut inner = self.lock();
        inner.ended = true;
        if let Some(running) = &inner.running {
            running.copying.given_up.store(true, Relaxed);
        }
    }

    /// Gives up the running backup, and waits until it has ended.
    pub fn wait(&self) {
        self.give_up();
        let thread = self.lock().thread.take();
        if let Some(thread) = thread {
            // Its panics have been caught and logged.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Backups {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::memory::MemoryLimit;
    use wollemi::Db;

    struct NeverAsked;

    impl Host for NeverAsked {
        fn back_up(&self, _: &Snapshot, _: &BackupTo, _: &Copying) -> Outcome {
            Err("it has no thread".into())
        }
    }

    /// A backup for which there is no thread has failed, as one has whose snapshot fails, and the next can begin.
    #[test]
    fn a_backup_without_a_thread_has_failed() {
        let db = Db::anonymous().expect("memory");
        let databases = Databases::open(&db, "items", None, MemoryLimit::new(0, true), Arc::default());
        let to = BackupTo {
            file: "all.backup".into(),
            memory: 1 << 20,
        };
        let databases = Arc::new(databases.expect("it is empty"));
        let backups = Arc::new(Backups::new(databases, Some(Arc::new(NeverAsked)), Some(to)));
        for failed in 1..3 {
            let begun = backups.begin_on(true, |_| Err(io::ErrorKind::WouldBlock.into()));
            let why = begun.map(drop).expect_err("there is no thread");
            assert!(why.starts_with("no thread for the backup: "), "{why}");
            let look = backups.look();
            assert_eq!((look.done.failed, look.done.well), (failed, false));
            assert!(look.running.is_none());
        }
    }
}
