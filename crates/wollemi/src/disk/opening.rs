//! Opening a pool with its log and its checkpoint.
//!
//! | there is                                   | what happens                                                        |
//! |--------------------------------------------|---------------------------------------------------------------------|
//! | nothing                                    | a database is made (`making`)                                       |
//! | a pool without a checkpoint                | the pool begins to keep a log: a full checkpoint is its beginning    |
//! | a pool that was closed, or left by a kill  | the log is replayed from the pool's log position                     |
//! | a pool that the machine has left, or none  | a new pool is made of checkpoint and log, and takes the pool's name  |
//! | a new pool in memory, and a checkpoint     | it is filled of checkpoint and log                                   |
//!
//! The pool's log position is what says that a pool has a log. It is stored when the first checkpoint is durable, so a crash
//! before leaves a pool without a log, and files that the next opening removes.

use crate::db::Maps;
use crate::disk::checkpoint::Checkpoints;
use crate::disk::keeper::{Bell, KeeperState, Threads};
use crate::disk::making::{left_over, make};
use crate::disk::manifest::{self, Manifest, Run};
use crate::disk::rebuild::{OnRebuild, rebuild};
use crate::disk::replay::catch_up;
use crate::disk::sizes::Sizes;
use crate::files_error::FilesError;
use crate::write::journal::{Durability, Journal, PATIENCE};
use crate::write::store::Store;
use crate::{Db, Error, Hardware, IndexKind, Media};
use log::{Directory, Disk, Log, Lsn};
use pmem::pool::{
    AfterPowerLoss, ErrorKind, LastShutdown, Permissions, Uuid, behind_links, folder_of, lock_named, part_of,
    sync_folder,
};
use pmem::{Pool, PoolOptions};
use std::collections::HashSet;
use std::io::ErrorKind::{NotFound, Other, WouldBlock};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What an opening at level `disk` is asked for.
#[derive(Clone)]
pub(crate) struct Settings {
    pub pool: PoolOptions,
    pub create: bool,
    /// Whether a pool without a log is given one.
    pub begins_log: bool,
    pub recovery_threads: usize,
    pub index: IndexKind,
    pub log: log::Options,
    pub durability: Durability,
    pub sync_within: Duration,
    pub on_rebuild: Option<OnRebuild>,
    /// Threads of a rebuild.
    pub rebuild_threads: usize,
    pub sizes: Sizes,
    /// Whether threads take checkpoints, and sync the records that no write waits for.
    pub has_threads: bool,
}

/// The directory of the log and the checkpoint of the pool at `path`.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".disk");
    name.into()
}

/// Whether the pool at `path` has a log, or had one when the machine stopped.
pub(crate) fn has_log(path: &Path) -> bool {
    directory_of(path).join(manifest::NAME).exists()
}

/// Whether there is something beside the pool at `path` that an opening to write must look at: its log, or files that are
/// left over of one.
pub(crate) fn has_files(path: &Path) -> bool {
    let is_run_or_segment = |name: &str| Run::is_name(name) || log::is_segment(name);
    let has_any = |directory: PathBuf| {
        let mut entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_str().is_some_and(is_run_or_segment))
    };
    has_log(path) || path.exists() && has_any(directory_of(path))
}

/// Refuses to read a pool whose content is in its log: a missing one, and one that was open when the machine stopped,
/// except for [a look](AfterPowerLoss::Look) at what is left.
pub(crate) fn refuse_unbuilt(path: &Path, pool: &PoolOptions) -> Result<(), Error> {
    if !has_log(path) {
        return Ok(());
    }
    match look(path, pool)? {
        Found::Nothing => Err(FilesError::PoolMissing(path.display().to_string()).into()),
        Found::Lost { .. } if pool.after_power_loss == AfterPowerLoss::Look => Ok(()),
        Found::Lost { log: Some(_), .. } => Err(FilesError::NeedsRebuild(path.display().to_string()).into()),
        _ => Ok(()),
    }
}

/// Opens the pool at `path`, or creates it, at level `disk`.
pub(crate) fn open<M: Media>(path: &Path, settings: &Settings, media: M) -> Result<Db<M>, Error> {
    let name = directory_of(path);
    let is_new = name.symlink_metadata().is_err();
    // Until the pool is locked: only one process makes a pool anew.
    let (directory, _lock) = lock(path, settings.pool.lock_wait)?;
    let opened = open_beside(path, directory, settings, media);
    if is_new && opened.is_err() {
        // A refusal leaves nothing. What is not empty stays.
        let _ = std::fs::remove_dir(&name);
    }
    opened
}

/// Opens the pool at `path` with the directory beside it.
fn open_beside<M: Media>(
    path: &Path,
    directory: Directory,
    settings: &Settings,
    media: M,
) -> Result<Db<M>, Error> {
    let started = Instant::now();
    let disk = Arc::new(directory);
    let mut manifest = Manifest::load(&*disk)?;
    if manifest.is_none() {
        // A crash may have come between the directory's creation and this.
        disk.sync_name().map_err(FilesError::from)?;
    }
    let pool = match (look(path, &settings.pool)?, &manifest) {
        (Found::Sound, _) => {
            let pool = Pool::open(path, &settings.pool, media)?;
            // See below; an opening that fails here must not close it either.
            pool.leave_unclosed(pool.log_position().is_some() && pool.last_shutdown() != LastShutdown::Clean);
            // Until now another process may have had it open, and taken a checkpoint.
            manifest = Manifest::load(&*disk)?;
            pool
        }
        (Found::Nothing, None) if settings.create && settings.begins_log => {
            left_over(&*disk)?;
            let uuid = match settings.pool.uuid {
                Some(uuid) => uuid,
                None => Uuid::random().map_err(|kind| kind.of(path))?,
            };
            let made = make(&disk, uuid, &settings.log)?;
            let options = PoolOptions {
                uuid: Some(uuid),
                log_position: Some(made.from),
                ..settings.pool.clone()
            };
            let pool = Pool::create(path, &options, media).inspect_err(|_| {
                // Nothing is refused for it later. If this fails, the next opening makes the pool of the manifest.
                let _ = clear(&*disk, None);
            })?;
            manifest = Some(made);
            pool
        }
        (Found::Nothing, None) if settings.create => Pool::create(path, &settings.pool, media)?,
        (Found::Nothing, None) => return Err(missing(path)),
        // There is no log to make it of, and the caller takes it as it is.
        (Found::Lost { log: None, .. }, _) if settings.pool.after_power_loss == AfterPowerLoss::Accept => {
            Pool::open(path, &settings.pool, media)?
        }
        // Without a position the files were left over when the pool's log was ended, or are of a log that was not begun yet.
        (Found::Lost { log: None, .. }, _) | (Found::Lost { .. }, None) => {
            return Err(ErrorKind::Lost.of(path).into());
        }
        (Found::Lost { uuid, page_size, .. }, Some(manifest)) => {
            refuse_foreign(manifest, uuid)?;
            remake(path, settings, page_size, &disk, manifest)?;
            Pool::open(path, &settings.pool, media)?
        }
        (Found::Nothing, Some(manifest)) => {
            remake(path, settings, settings.pool.page_size, &disk, manifest)?;
            Pool::open(path, &settings.pool, media)?
        }
    };
    if pool.log_position().is_none() && !settings.begins_log {
        if let Some(left) = &manifest {
            refuse_foreign(left, pool.uuid())?;
        }
        // A crash came amid their removal, or amid the making of a log. The files of other pools stay.
        if manifest.is_some() || is_of(&*disk, pool.uuid())? {
            clear(&*disk, None)?;
        }
        // A directory that is not empty stays.
        let _ = std::fs::remove_dir(disk.path());
        return Db::start(pool, settings.index, settings.recovery_threads, started);
    }
    if pool.log_position().is_some() && manifest.is_none() {
        return Err(FilesError::NoCheckpoint(disk.path().display().to_string()).into());
    }
    attach(pool, disk, manifest, settings, started)
}

/// Refuses to make a pool beside the files of a database that has held something and lacks its pool and its manifest.
pub(crate) fn refuse_bereft(path: &Path) -> Result<(), Error> {
    let directory = directory_of(path);
    // An opening of a directory would create it.
    if path.symlink_metadata().is_err() && directory.is_dir() {
        left_over(&Directory::open(directory).map_err(FilesError::from)?)?;
    }
    Ok(())
}

/// The error of an opening that finds no pool and may not create one.
pub(crate) fn missing(path: &Path) -> Error {
    let directory = directory_of(path);
    // An opening of a directory would create it.
    let left = match directory.is_dir() {
        true => Directory::open(directory)
            .map_err(FilesError::from)
            .and_then(|disk| left_over(&disk)),
        false => Ok(false),
    };
    match left {
        Ok(true) => FilesError::Unmade(path.display().to_string()).into(),
        Ok(false) => ErrorKind::Missing.of(path).into(),
        Err(error) => error.into(),
    }
}

/// What is at a pool's path.
enum Found {
    Nothing,
    Sound,
    /// The machine has stopped while it was open.
    Lost {
        uuid: Uuid,
        page_size: u64,
        log: Option<u64>,
    },
}

fn look(path: &Path, pool: &PoolOptions) -> Result<Found, Error> {
    let look = PoolOptions {
        level: pmem::Level::Process,
        read_only: true,
        after_power_loss: AfterPowerLoss::Look,
        ..pool.clone()
    };
    match Pool::open(path, &look, Hardware::detect()) {
        Ok(pool) if pool.is_suspect() => Ok(Found::Lost {
            uuid: pool.uuid(),
            page_size: pool.page_size(),
            log: pool.log_position(),
        }),
        Ok(_) => Ok(Found::Sound),
        Err(error) if matches!(error.kind, ErrorKind::Missing) => Ok(Found::Nothing),
        Err(error) => Err(error.into()),
    }
}

/// Opens the database in a pool, with its log and its checkpoint on a disk.
pub(crate) fn attach<M: Media, D: Disk>(
    pool: Pool<M>,
    disk: Arc<D>,
    manifest: Option<Manifest>,
    settings: &Settings,
    started: Instant,
) -> Result<Db<M>, Error> {
    let (uuid, mut position, mut manifest) = (pool.uuid(), pool.log_position(), manifest);
    let is_new = pool.last_shutdown() == LastShutdown::New;
    if is_new && position.is_none() && manifest.is_none() {
        left_over(&*disk)?;
        let made = make(&disk, uuid, &settings.log)?;
        position = Some(made.from);
        pool.set_log_position(position)?;
        manifest = Some(made);
    }
    // The pool may have changes that the log does not have durably. Until it does, the pool is left as by a kill: while the
    // machine runs the log is whole, and after a loss of power the pool does not count. A pool that was closed has none,
    // and stays closed if its log cannot be opened.
    pool.leave_unclosed(position.is_some() && pool.last_shutdown() != LastShutdown::Clean);
    let (store, carried_out) = Store::start(pool, settings.recovery_threads)?;
    // A checkpoint reads every map, and without checkpoints the log would reach its limit.
    store.refuse_left_out()?;
    let bell = Arc::new(Bell::default());
    let ring = bell.clone();
    let patience = if settings.has_threads {
        PATIENCE
    } else {
        Duration::ZERO
    };
    let journal = |log: &Arc<Log<D>>| {
        Arc::new(Journal::new(
            log.clone(),
            settings.durability,
            patience,
            Box::new(move || ring.ring()),
        ))
    };
    let maps = Maps::new(store);
    let (log, checkpoints) = match (position, manifest) {
        (Some(position), Some(manifest)) => {
            refuse_foreign(&manifest, uuid)?;
            let log = open_log(&disk, &manifest, position, settings)?;
            maps.store.heap.pool().leave_unclosed(true);
            catch_up(&maps.store, &log, Lsn(position))?;
            let checkpoints = Checkpoints::new(disk, log.clone(), manifest, settings.sizes);
            maps.store.traffic.journal.get_or_init(|| journal(&log));
            (log, checkpoints)
        }
        (None, Some(manifest)) if is_new => {
            manifest.settle(&*disk)?;
            let log = open_log(&disk, &manifest, manifest.from, settings)?;
            refill(&*disk, &log, &manifest, &maps.store, settings)?;
            let checkpoints = Checkpoints::new(disk, log.clone(), manifest, settings.sizes);
            maps.store.traffic.journal.get_or_init(|| journal(&log));
            (log, checkpoints)
        }
        (Some(_), None) => return Err(FilesError::NoCheckpoint(manifest::NAME.into()).into()),
        (None, manifest) => {
            match manifest {
                Some(left) => refuse_foreign(&left, uuid)?,
                None if is_of(&*disk, uuid)? => {}
                // The log of another pool is refused, and so are runs without a log, which may be another pool's.
                None => drop(left_over(&*disk)?),
            }
            clear(&*disk, None)?;
            let log = Log::create(disk.clone(), uuid.to_u128(), settings.log.clone());
            let log = Arc::new(log.map_err(FilesError::from)?);
            let manifest = Manifest {
                uuid: uuid.to_u128(),
                ..Manifest::default()
            };
            let checkpoints = Checkpoints::new(disk, log.clone(), manifest, settings.sizes);
            maps.store.traffic.journal.get_or_init(|| journal(&log));
            checkpoints.take_full(&maps, &Default::default())?;
            (log, checkpoints)
        }
    };
    let shared = KeeperState::new(log, checkpoints, maps.clone(), settings.log.limit, bell);
    maps.note_position(&shared.log)?;
    maps.store.heap.pool().leave_unclosed(true);
    let sync_within = settings.has_threads.then_some(settings.sync_within);
    let threads = Threads::start(shared, sync_within)?;
    Ok(Db::kept(
        maps,
        settings.index,
        carried_out,
        started,
        Arc::new(threads),
    ))
}

/// Makes the pool at `path` anew of the checkpoint and the log.
fn remake(
    path: &Path,
    settings: &Settings,
    page_size: u64,
    disk: &Arc<Directory>,
    manifest: &Manifest,
) -> Result<(), Error> {
    let options = PoolOptions {
        uuid: Some(Uuid::from_u128(manifest.uuid)),
        page_size,
        ..settings.pool.clone()
    };
    manifest.settle(&**disk)?;
    let log = open_log(disk, manifest, manifest.from, settings)?;
    let new = part_of(path).map_err(|error| failed(path, "rebuild", error))?;
    let made = remake_as(&new, path, &options, settings, disk, &log, manifest);
    if made.is_err() {
        // What there is to say is why. Where the process ends before, the next rebuild removes it.
        let _ = std::fs::remove_file(&new);
    }
    made
}

/// Makes the pool anew under another name, and gives it its own.
fn remake_as(
    new: &Path,
    path: &Path,
    options: &PoolOptions,
    settings: &Settings,
    disk: &Arc<Directory>,
    log: &Log<Directory>,
    manifest: &Manifest,
) -> Result<(), Error> {
    let pool = Pool::create(new, options, Hardware::detect())?;
    // Before there is anything in it. Where the old pool is missing, its files say who may read it.
    let access = Permissions::of(path)
        .or_else(|_| Permissions::of(disk.path()).map(|directory| directory.in_directory()));
    // Of another owner, it holds the same.
    let _ = access.map_err(|error| failed(path, "stat", error))?.give_to(new);
    let (store, _) = Store::start(pool, 0)?;
    rebuild(&**disk, log, manifest, &store, settings)?;
    let end = log.appended();
    log.wait_durable(end).map_err(FilesError::from)?;
    store.heap.pool().set_log_position(Some(end.0))?;
    // The pool is closed, and so on the medium, when its last handle goes.
    close(store)?;
    std::fs::rename(new, path).map_err(|error| failed(new, "rename", error))?;
    sync_folder(path).map_err(|error| failed(path, "fsync of the folder", error))
}

/// Makes the maps of an empty pool of the checkpoint and the log.
fn refill<M: Media, D: Disk>(
    disk: &D,
    log: &Log<D>,
    manifest: &Manifest,
    store: &Store<M>,
    settings: &Settings,
) -> Result<(), Error> {
    rebuild(disk, log, manifest, store, settings)?;
    store.heap.pool().set_log_position(Some(log.appended().0))?;
    Ok(())
}

/// Opens and locks the directory beside the pool at `path`. Waits at most `wait` for another process that has it locked.
/// Makes the directory if it is missing, with the owner and the mode of the pool.
fn lock(path: &Path, wait: Duration) -> Result<(Directory, std::fs::File), Error> {
    // The directory itself, where its name is a link.
    let name = directory_of(path);
    let name = behind_links(&name).unwrap_or(name);
    let started = Instant::now();
    loop {
        let is_new = name.symlink_metadata().is_err();
        match Directory::open(&name) {
            // Another process has just removed it.
            Err(error) if error.is_missing() && folder_of(&name).is_dir() => {}
            opened => _ = opened.map_err(FilesError::from)?,
        }
        if is_new && let Ok(pool) = Permissions::of(path) {
            // Of another owner, it holds the same.
            let _ = pool.for_directory().give_to(&name);
        }
        let locked = std::fs::File::open(&name).and_then(|file| {
            lock_named(&file, &name)?;
            Ok(file)
        });
        match locked {
            Ok(file) => {
                let directory = Directory::open(&name).map_err(FilesError::from)?;
                // It is the directory that is locked: one that removes it has it locked, but for one that has just made
                // it and could not make its name durable.
                match lock_named(&file, &name) {
                    Ok(()) => return Ok((directory, file)),
                    Err(_) => continue,
                }
            }
            // Another process has it, or has just removed it.
            Err(error) if matches!(error.kind(), Other | NotFound) => {
                if started.elapsed() >= wait {
                    let busy = std::io::Error::new(WouldBlock, "another process is opening the database");
                    return Err(failed(&name, "lock", busy));
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(error) => return Err(failed(&name, "lock", error)),
        }
    }
}

/// Closes the pool of a store of which this is the only handle.
fn close<M: Media>(store: Store<M>) -> Result<(), Error> {
    let Store { heap, .. } = store;
    Ok(heap.close()?)
}

fn failed(path: &Path, operation: &'static str, source: std::io::Error) -> Error {
    let error = log::DiskError {
        file: path.display().to_string(),
        operation,
        source,
    };
    FilesError::from(error).into()
}

/// Opens the log, which is to be replayed from a position on, and first removes what a crash has left beside it.
pub(super) fn open_log<D: Disk>(
    disk: &Arc<D>,
    manifest: &Manifest,
    position: u64,
    settings: &Settings,
) -> Result<Arc<Log<D>>, Error> {
    clear(&**disk, Some(manifest))?;
    let needs = log::Needs {
        keep: Lsn(manifest.from),
        check: Lsn(position),
        reach: Lsn(manifest.until.max(position)),
        // Neither the pool's position nor a manifest is written before the log is durable up to there.
        durable: Lsn(manifest.until.max(position)),
    };
    let log = Log::open(disk.clone(), manifest.uuid, needs, settings.log.clone());
    Ok(Arc::new(log.map_err(FilesError::from)?))
}

/// Removes the files of a log that has been ended, unless another process has the pool by now: it has removed them
/// itself, or begun a log of its own.
pub(crate) fn remove_ended(path: &Path) -> Result<(), Error> {
    let look = PoolOptions {
        read_only: true,
        lock_wait: Duration::ZERO,
        ..PoolOptions::default()
    };
    let Ok((directory, _lock)) = lock(path, PoolOptions::default().lock_wait) else {
        // One that is opening the pool removes what is left over, as the next opening does.
        return Ok(());
    };
    match Pool::open(path, &look, Hardware::detect()) {
        Ok(pool) if pool.log_position().is_none() => {
            clear(&directory, None)?;
            // What is not empty stays.
            let _ = std::fs::remove_dir(directory.path());
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind, ErrorKind::Busy { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether a pool's own log, or a segment that is left of it, is on the disk.
fn is_of<D: Disk>(disk: &D, pool: Uuid) -> Result<bool, FilesError> {
    Ok(Log::has_segment_of(disk, pool.to_u128())?)
}

fn refuse_foreign(manifest: &Manifest, pool: Uuid) -> Result<(), FilesError> {
    match manifest.uuid == pool.to_u128() {
        true => Ok(()),
        false => Err(FilesError::Foreign {
            found: Uuid::from_u128(manifest.uuid),
            pool,
        }),
    }
}

/// Removes what a crash has left: files that the manifest does not name; without one, the log, too.
pub(crate) fn clear<D: Disk>(disk: &D, manifest: Option<&Manifest>) -> Result<(), FilesError> {
    match manifest {
        Some(manifest) => clear_beside(disk, manifest),
        None => {
            // First and durably: without a pool, a manifest would be refused whose log is gone.
            remove_files(disk, |file| [manifest::NAME, manifest::NEW].contains(&file))?;
            disk.sync_dir()?;
            // The log last: it says whose all of this is.
            remove_files(disk, Run::is_name)?;
            disk.sync_dir()?;
            Log::remove(disk)?;
            Ok(disk.sync_dir()?)
        }
    }
}

/// Removes the files that a manifest does not name, and makes sure that those can go that the log gives up when it is
/// opened.
///
/// That there is such a manifest may not be durable: the crash may have been a kill, perhaps after a sync of the directory
/// had failed, and then the medium keeps the manifest before, whatever is synced (I4 of `checkpoint`). So before anything
/// goes that the one before may need, the manifest is written once more.
fn clear_beside<D: Disk>(disk: &D, manifest: &Manifest) -> Result<(), FilesError> {
    disk.sync_dir()?;
    let named: HashSet<_> = manifest.runs().map(Run::file).collect();
    let is_left = |file: &str| Run::is_name(file) && !named.contains(file) || file == manifest::NEW;
    // No manifest before can name these.
    let is_later = |file: &str| Run::number_of(file).is_none_or(|number| number >= manifest.next_run);
    let mut is_changed = remove_files(disk, |file| is_left(file) && is_later(file))?;
    let may_be_needed = disk.list()?.iter().any(|file| is_left(file));
    if may_be_needed || Log::gives_up(disk, manifest.uuid, Lsn(manifest.from))? {
        manifest.settle(disk)?;
        is_changed |= remove_files(disk, is_left)?;
    }
    if is_changed {
        disk.sync_dir()?;
    }
    Ok(())
}

/// Removes the files of some names; whether there are any.
fn remove_files<D: Disk>(disk: &D, is_left: impl Fn(&str) -> bool) -> Result<bool, FilesError> {
    let mut is_changed = false;
    for file in disk.list()?.iter().filter(|file| is_left(file)) {
        disk.remove(file)?;
        is_changed = true;
    }
    Ok(is_changed)
}
