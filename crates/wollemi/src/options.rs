//! Options for opening a database.

use crate::disk::opening::Settings;
use crate::disk::rebuild::{OnRebuild, Rebuilding};
use crate::disk::sizes::Sizes;
use crate::files_error::FilesError;
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
    log: log::Options,
    durability: Durability,
    sync_within: Duration,
    on_rebuild: Option<OnRebuild>,
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
            log: log::Options::default(),
            durability: Durability::Immediate,
            sync_within: Duration::from_secs(1),
            on_rebuild: None,
        }
    }
}

impl Options {
    /// The defaults: level `process`, one recovery thread, a pool that is created if it is not there.
    pub fn new() -> Options {
        Options::default()
    }

    /// The minimum durability level. Opening fails where the file cannot give it. A pool that has a log keeps it,
    /// whatever is asked for ([`Db::end_log`](crate::Db::end_log) ends that); one that has none is given one at level
    /// `disk`. That takes a checkpoint of all that it holds.
    pub fn level(mut self, level: Level) -> Options {
        self.level = level;
        self.pool.level = match level {
            Level::Power => pmem::Level::Power,
            _ => pmem::Level::Process,
        };
        self
    }

    /// The default durability of writes, at level `disk`. Default: durable when they return.
    pub fn durability(mut self, durability: Durability) -> Options {
        self.durability = durability;
        self
    }

    /// Within which time [eventual](Durability::Eventual) writes are durable, at level `disk`; at least 1 ms. Default:
    /// 1 s.
    pub fn sync_within(mut self, time: Duration) -> Options {
        self.sync_within = time;
        self
    }

    /// How long the log of a database of level `disk` may be, in bytes: at least 64 MiB. Checkpoints keep it shorter;
    /// if they cannot, writes wait, and then fail. Default: 256 MiB.
    pub fn log_limit(mut self, bytes: u64) -> Options {
        self.log.limit = bytes.max(64 << 20);
        self
    }

    /// Called with the progress of an opening at level `disk` that rebuilds the pool after a loss of power; several
    /// threads call it.
    pub fn on_rebuild(mut self, tell: impl Fn(&Rebuilding) + Send + Sync + 'static) -> Options {
        self.on_rebuild = Some(Arc::new(tell));
        self
    }

    /// The size up to which the pool may grow, in bytes. This much address space is reserved; blocks are taken only
    /// as they are needed. Default: 1 TiB, or what the system allows.
    pub fn max_size(mut self, bytes: u64) -> Options {
        self.pool.max_size = bytes;
        self
    }

    /// The heap's page in bytes, a power of two from 64 KiB to 128 MiB, for pools that are created. Larger pages
    /// mean fewer persists of the heap's own and coarser growth. Default: 256 KiB.
    pub fn page_size(mut self, bytes: u64) -> Options {
        self.pool.page_size = bytes;
        self
    }

    /// Backs anonymous memory with huge pages where the system allows it.
    pub fn huge_pages(mut self, wanted: bool) -> Options {
        self.pool.huge_pages = wanted;
        self
    }

    /// Number of background threads that search for unused space after the opening. With none, space from before the
    /// opening is not reused until [`Db::recover`]; what is allocated afterwards is reused as ever, and reads and
    /// writes work all the same. As many replay a DPTree's log before its opening returns. More than 256 count as 256.
    /// Default: 1.
    pub fn recovery_threads(mut self, threads: usize) -> Options {
        self.recovery_threads = threads;
        self
    }

    /// The index for new maps. An existing map is opened with its own. Default: ROART.
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

    /// What to do with a pool of level `process` that was open when the machine crashed or lost power. Pages that the
    /// page cache had not written then are lost, and the others may be inconsistent with each other. Such a pool stays
    /// suspect until an opening to write [accepts](AfterPowerLoss::Accept) the loss. Check it before that:
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

    /// Opens the pool to be read: no byte of its file changes, its generation does not count up, and others may read it
    /// at the same time, but not write it. The file needs no permission to be written, and is not created. Whatever an
    /// opening does (recovery, finishing a batch, replaying a log) is done in this process's memory, at the cost of a
    /// copy of each page that is stored to. Operations that write fail with
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

    /// How long an opening waits for other processes that have the pool open. One that was killed keeps its pool until
    /// the kernel has taken it apart, tens of milliseconds later for pools of some hundred megabytes. Default: 2 s.
    pub fn lock_wait(mut self, wait: Duration) -> Options {
        self.pool.lock_wait = wait;
        self
    }

    /// Whether to create the pool if there is no such file. Default: yes.
    pub fn create(mut self, create: bool) -> Options {
        self.create = create;
        self
    }

    /// Opens the database at `path`.
    ///
    /// # Errors
    ///
    /// [`Error::Pool`] says what is wrong with the file: missing, in use, not a pool, truncated, of a newer format,
    /// damaged, or unable to give the level. [`Error::Heap`]: its directory is damaged.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Db, Error> {
        self.open_on(path, Hardware::detect())
    }

    /// Opens the database at `path` on another media than the machine's own.
    pub fn open_on<M: Media>(&self, path: impl AsRef<Path>, media: M) -> Result<Db<M>, Error> {
        let started = std::time::Instant::now();
        // The log and a rebuilt pool belong beside the file itself. A circle of links is refused by the opening.
        let path = &behind_links(path.as_ref()).unwrap_or_else(|_| path.as_ref().into());
        if !self.pool.read_only && (self.level == Level::Disk || disk::opening::has_files(path)) {
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
            ErrorKind::HasLog => {
                let directory = disk::opening::directory_of(path).display().to_string();
                FilesError::NoCheckpoint(directory).into()
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
            rebuild_threads: std::thread::available_parallelism().map_or(1, |threads| threads.get()),
            sizes: Sizes::default(),
            has_threads: true,
        }
    }

    /// The database in a pool that is open already: for pools in memory that outlives them. The options of the pool
    /// itself are ignored.
    pub fn open_pool<M: Media>(&self, pool: Pool<M>) -> Result<Db<M>, Error> {
        Db::start(pool, self.index, self.recovery_threads, std::time::Instant::now())
    }

    /// A database in anonymous memory, which goes with its last handle.
    pub fn anonymous(&self) -> Result<Db, Error> {
        self.anonymous_on(Hardware::detect())
    }

    /// A database in anonymous memory, on another media than the machine's own.
    pub fn anonymous_on<M: Media>(&self, media: M) -> Result<Db<M>, Error> {
        let started = std::time::Instant::now();
        let pool = Pool::anonymous(&self.pool, media)?;
        Db::start(pool, self.index, self.recovery_threads, started)
    }
}

impl Db {
    /// Opens the database at `path` with the default [`Options`]; it is created if it is not there.
    pub fn open(path: impl AsRef<Path>) -> Result<Db, Error> {
        Options::new().open(path)
    }

    /// A database in anonymous memory, which goes with its last handle.
    pub fn anonymous() -> Result<Db, Error> {
        Options::new().anonymous()
    }
}
