//! Options for opening a database.

use crate::disk::pace::Asked;
use crate::disk::progress::{OnRebuild, Rebuilding};
use crate::disk::settings::Settings;
use crate::disk::sizes::Sizes;
use crate::write::journal::Durability;
use crate::{Db, Error, Hardware, IndexKind, Level, Media, disk};
use pmem::pool::{AfterPowerLoss, ErrorKind, behind_links};
use pmem::{Pool, PoolOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Options for opening a database.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// let db = wollemi::Options::new()
///     .max_size(8 << 30)
///     .recovery_threads(2)
///     .open(dir.path().join("data.pool"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use]
pub struct Options {
    pool: PoolOptions,
    level: Level,
    recovery_threads: usize,
    index: IndexKind,
    create: bool,
    log: log::LogOptions,
    durability: Durability,
    sync_within: Duration,
    on_rebuild: Option<OnRebuild>,
    checkpoints_end: Option<Asked>,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("level", &self.level)
            .field("index", &self.index)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            pool: PoolOptions::default(),
            level: Level::Process,
            recovery_threads: 1,
            index: IndexKind::default(),
            create: true,
            log: log::LogOptions::default(),
            durability: Durability::Immediate,
            sync_within: Duration::from_secs(1),
            on_rebuild: None,
            checkpoints_end: None,
        }
    }
}

impl Options {
    /// Returns the defaults: level `process`, one recovery thread, and creation of a missing pool.
    pub fn new() -> Options {
        Options::default()
    }

    /// Sets the minimum durability level. Opening fails if the file does not support it. A pool that has a log keeps
    /// it, whatever this says ([`Db::end_log`](crate::Db::end_log) ends it). A pool without a log gets one at level
    /// `disk`, which takes a full checkpoint.
    pub fn level(mut self, level: Level) -> Options {
        self.level = level;
        self.pool.level = match level {
            Level::Power => pmem::PoolLevel::Power,
            _ => pmem::PoolLevel::Process,
        };
        self
    }

    /// Sets the default durability of writes, at level `disk`. Default: durable when they return.
    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
        self
    }

    /// Sets the time within which [eventual](Durability::Eventual) writes become durable, at level `disk`; at least 1
    /// ms. Default: 1 s.
    pub fn sync_within(mut self, time: Duration) -> Options {
        self.sync_within = time;
        self
    }

    /// Sets the maximum length of the log of a database of level `disk`, in bytes: at least 64 MiB. Checkpoints keep it
    /// shorter; if they cannot keep up, writes wait, and then fail. Default: 256 MiB.
    pub fn log_limit(mut self, bytes: u64) -> Options {
        self.log.limit = bytes.max(64 << 20);
        self
    }

    /// Sets a callback for the progress of an opening at level `disk` that rebuilds the pool after a loss of power.
    /// It is called at the beginning and at the end, and in between by several threads.
    pub fn on_rebuild(mut self, report: impl Fn(&Rebuilding) + Send + Sync + 'static) -> Options {
        self.on_rebuild = Some(Arc::new(report));
        self
    }

    /// Sets a condition that ends checkpoints early, such as a signal that the program has received. Each step of a
    /// checkpoint asks for it; one of a pool without maps has no step. Once it holds, checkpoints fail with
    /// [`FilesError::Stopped`](crate::FilesError::Stopped), and so does an opening that begins the log of an
    /// existing pool: it leaves the pool without one. Default: none.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// let path = dir.path().join("data.pool");
    /// wollemi::Db::open(&path)?.map("images")?.upsert("a", [0; 1_000_000])?;
    /// let options = wollemi::Options::new().level(wollemi::Level::Disk);
    /// options.clone().end_checkpoints_if(|| true).open(&path).expect_err("ended");
    /// assert_eq!(wollemi::Db::open(&path)?.level(), wollemi::Level::Process);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn end_checkpoints_if(mut self, is_over: impl Fn() -> bool + Send + Sync + 'static) -> Options {
        self.checkpoints_end = Some(Arc::new(is_over));
        self
    }

    /// Sets the maximum size of the pool in bytes. This much address space is reserved; blocks are allocated only when
    /// needed. Default: 1 TiB, or what the system allows.
    pub fn max_size(mut self, bytes: u64) -> Options {
        self.pool.max_size = bytes;
        self
    }

    /// Sets the heap's page size in bytes, a power of two from 64 KiB to 128 MiB, for pools that are created. Larger
    /// pages mean fewer persists by the heap itself and coarser growth. Default: 256 KiB.
    pub fn page_size(mut self, bytes: u64) -> Options {
        self.pool.page_size = bytes;
        self
    }

    /// Backs anonymous memory with huge pages where the system allows it.
    pub fn huge_pages(mut self, wanted: bool) -> Options {
        self.pool.huge_pages = wanted;
        self
    }

    /// Sets the number of background threads that search for unused space after the opening. With none, space used
    /// before the opening is not reused until [`Db::recover`] runs; newly allocated space is reused as usual, and reads
    /// and writes work normally. The same number of threads replays a DPTree's log before its opening returns. Capped
    /// at 256. Default: 1.
    pub fn recovery_threads(mut self, threads: usize) -> Options {
        self.recovery_threads = threads;
        self
    }

    /// Sets the index for new maps. An existing map keeps its own. Default: ROART.
    ///
    /// ```
    /// let db = wollemi::Options::new().index("roart".parse()?).anonymous()?;
    /// assert_eq!(db.map("letters")?.index_kind().name(), "roart");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn index(mut self, index: IndexKind) -> Options {
        self.index = index;
        self
    }

    /// Sets what to do with a pool of level `process` that was open when the machine crashed or lost power. Pages that
    /// the page cache had not yet written are lost, and the others may be inconsistent with each other. Such a pool
    /// stays suspect until an opening to write [accepts](AfterPowerLoss::Accept) the loss. Check it first:
    ///
    /// ```no_run
    /// use wollemi::{AfterPowerLoss, Options};
    /// let look = Options::new().read_only(true).after_power_loss(AfterPowerLoss::Look);
    /// if look.open("data.pool")?.check()?.is_clean() {
    ///     Options::new().after_power_loss(AfterPowerLoss::Accept).open("data.pool")?;
    /// }
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// Default: refuse to open it.
    pub fn after_power_loss(mut self, what: AfterPowerLoss) -> Options {
        self.pool.after_power_loss = what;
        self
    }

    /// Opens the pool read-only: no byte of its file changes, its generation does not increase, and other processes may
    /// read it at the same time, but not write it. The file need not be writable, and is not created. All work of the
    /// opening (recovery, completing a batch, replaying a log) happens in this process's memory, at the cost of a copy
    /// of each page that it stores to. Operations that write fail with
    /// [`IndexError::ReadOnly`](crate::IndexError::ReadOnly). Default: no.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let path = dir.path().join("data.pool");
    /// wollemi::Db::open(&path)?.map("letters")?.upsert("a", "alpha")?;
    /// let db = wollemi::Options::new().read_only(true).open(&path)?;
    /// let letters = db.map("letters")?;
    /// assert_eq!(letters.get("a")?, Some(b"alpha".to_vec()));
    /// letters.upsert("b", "beta").expect_err("read only");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read_only(mut self, read_only: bool) -> Options {
        self.pool.read_only = read_only;
        self
    }

    /// Sets how long an opening waits for other processes that have the pool open. A killed process keeps its pool
    /// until the kernel has torn it down, tens of milliseconds later for pools of some hundred megabytes. Default: 2 s.
    pub fn lock_wait(mut self, wait: Duration) -> Options {
        self.pool.lock_wait = wait;
        self
    }

    /// Sets whether to create the pool if its file is missing. Default: yes.
    pub fn create(mut self, create: bool) -> Options {
        self.create = create;
        self
    }

    /// Opens the database at `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Pool`] if the file is missing, in use, not a pool, truncated, of a newer format, damaged, or does not
    /// support the level. [`Error::Files`] if the log or the checkpoint of a database of level [`Disk`](Level::Disk) is
    /// missing, damaged or of another pool. [`Error::Heap`] if the root directory is damaged.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Db, Error> {
        let path = path.as_ref();
        match self.open_on(path, Hardware::detect()) {
            // A log has begun while this opening waited for the pool.
            Err(Error::Pool(error)) if matches!(error.kind, ErrorKind::HasLog) => {
                self.open_on(path, Hardware::detect())
            }
            opened => opened,
        }
    }

    /// Opens the database at `path` on a media other than the machine's own. Fails with
    /// [`PoolErrorKind::HasLog`](crate::PoolErrorKind::HasLog) if the options request no log, and one has begun while
    /// the opening waited for the pool; the next opening uses it.
    pub fn open_on<M: Media>(&self, path: impl AsRef<Path>, media: M) -> Result<Db<M>, Error> {
        let started = std::time::Instant::now();
        // If `path` is a link, the log and a rebuilt pool belong beside the file that it leads to. A cycle of links is
        // refused below, by the opening.
        let path = &behind_links(path.as_ref()).unwrap_or_else(|_| path.as_ref().into());
        if !self.pool.read_only && (self.level == Level::Disk || disk::beside::has_files(path)) {
            return disk::opening::open(path, &self.settings(), media);
        }
        disk::opening::refuse_unbuilt(path, &self.pool)?;
        let options = PoolOptions {
            with_log: self.pool.read_only,
            ..self.pool.clone()
        };
        let opened = match self.create && !self.pool.read_only {
            true => {
                disk::opening::refuse_bereft(path)?;
                Pool::open_or_create(path, &options, media)
            }
            false => Pool::open(path, &options, media),
        };
        let pool = opened.map_err(|error| match error.kind {
            ErrorKind::Missing => disk::opening::missing(path),
            ErrorKind::HasLog if !disk::beside::has_log(path) => disk::opening::without_checkpoint(path),
            ErrorKind::Lost if disk::opening::is_lost_with_log(path, &self.pool) => {
                disk::opening::without_checkpoint(path)
            }
            _ => Error::from(error),
        })?;
        Db::start(pool, self.index, self.recovery_threads, started)
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            pool: self.pool.clone(),
            create: self.create,
            begins_log: self.level == Level::Disk,
            recovery_threads: self.recovery_threads,
            index: self.index,
            log: self.log.clone(),
            durability: self.durability,
            sync_within: self.sync_within,
            on_rebuild: self.on_rebuild.clone(),
            checkpoints_end: self.checkpoints_end.clone(),
            rebuild_threads: std::thread::available_parallelism().map_or(1, |threads| threads.get()),
            sizes: Sizes::default(),
            has_threads: true,
        }
    }

    /// Opens the database in an already open pool, for pools in memory that outlives them. Ignores the options of the
    /// pool itself.
    pub fn open_pool<M: Media>(&self, pool: Pool<M>) -> Result<Db<M>, Error> {
        Db::start(pool, self.index, self.recovery_threads, std::time::Instant::now())
    }

    /// Creates a database in anonymous memory, which is lost with its last handle.
    pub fn anonymous(&self) -> Result<Db, Error> {
        self.anonymous_on(Hardware::detect())
    }

    /// Creates a database in anonymous memory, on a media other than the machine's own.
    pub fn anonymous_on<M: Media>(&self, media: M) -> Result<Db<M>, Error> {
        let started = std::time::Instant::now();
        let pool = Pool::anonymous(&self.pool, media)?;
        Db::start(pool, self.index, self.recovery_threads, started)
    }
}

impl Db {
    /// Opens the database at `path` with the default [`Options`], which create it if it is missing.
    pub fn open(path: impl AsRef<Path>) -> Result<Db, Error> {
        Options::new().open(path)
    }

    /// Creates a database in anonymous memory, which is lost with its last handle.
    pub fn anonymous() -> Result<Db, Error> {
        Options::new().anonymous()
    }
}
