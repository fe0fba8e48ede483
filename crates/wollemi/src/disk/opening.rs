//! Opening a pool with its log and its checkpoint.
//!
//! | found                                      | the opening                                               |
//! |--------------------------------------------|-----------------------------------------------------------|
//! | nothing                                    | creates a database (`making`)                             |
//! | a pool without a checkpoint                | begins a log, starting with a full checkpoint             |
//! | a pool that was closed, or left by a kill  | replays the log from the pool's log position              |
//! | a pool left by a machine crash, or no pool | builds a new pool from checkpoint and log, and renames it |
//! | a new pool in memory, and a checkpoint     | fills the pool from checkpoint and log                    |
//!
//! A pool has a log if its header has a log position. The position is stored once the first checkpoint is durable, so a
//! crash before that leaves a pool without a log, and files that the next opening removes.

use crate::db::Maps;
use crate::disk::checkpoint::Checkpoints;
use crate::disk::keeper::{Bell, KeeperState, Threads};
use crate::disk::making::{left_over, make};
use crate::disk::manifest::{self, Manifest, Run};
use crate::disk::rebuild::{OnRebuild, rebuild};
use crate::disk::replay::catch_up;
use crate::disk::sizes::Sizes;
use crate::files_error::FilesError;
use crate::write::journal::{Durability, Journal, ROOM_TIMEOUT};
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

/// Settings of an opening at level `disk`.
#[derive(Clone)]
pub(crate) struct Settings {
    pub pool: PoolOptions,
    pub create: bool,
    /// Whether a pool without a log gets one.
    pub begins_log: bool,
    pub recovery_threads: usize,
    pub index: IndexKind,
    pub log: log::LogOptions,
    pub durability: Durability,
    pub sync_within: Duration,
    pub on_rebuild: Option<OnRebuild>,
    /// Threads used by a rebuild.
    pub rebuild_threads: usize,
    pub sizes: Sizes,
    /// Whether threads take checkpoints and sync the records that no write waits for.
    pub has_threads: bool,
}

/// Returns the directory of the log and the checkpoint of the pool at `path`.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".disk");
    name.into()
}

/// Returns whether the pool at `path` has a log, or had one when the machine stopped.
pub(crate) fn has_log(path: &Path) -> bool {
    directory_of(path).join(manifest::NAME).exists()
}

/// Returns whether an opening to write must look at files beside the pool at `path`: its log, or leftovers of one.
pub(crate) fn has_files(path: &Path) -> bool {
    let is_run_or_segment = |name: &str| Run::is_name(name) || log::is_segment(name);
    let has_any = |directory: PathBuf| {
        let mut entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        entries.any(|entry| entry.file_name().to_str().is_some_and(is_run_or_segment))
    };
    has_log(path) || path.exists() && has_any(directory_of(path))
}

/// Refuses to read a pool whose content is in its log: a missing pool, and one that was open when the machine stopped,
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
    // Held until the pool is locked: only one process rebuilds a pool.
    let (directory, _lock) = lock(path, settings.pool.lock_wait)?;
    let opened = open_beside(path, directory, settings, media);
    if is_new && opened.is_err() {
        // A refusal leaves nothing behind. A directory with files stays.
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
        // A crash may have come between the creation of the directory and this sync.
        disk.sync_name().map_err(FilesError::from)?;
    }
    let pool = match (look(path, &settings.pool)?, &manifest) {
        (Found::Sound, _) => {
            let pool = Pool::open(path, &settings.pool, media)?;
            // See below; an opening that fails here must not mark it closed either.
            pool.leave_unclosed(pool.log_position().is_some() && pool.last_shutdown() != LastShutdown::Clean);
            // Another process may have had it open until now, and taken a checkpoint.
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
                // These files cannot cause a later refusal. If this fails, the next opening builds the pool from the
                // manifest.
                let _ = clear(&*disk, None);
            })?;
            manifest = Some(made);
            pool
        }
        (Found::Nothing, None) if settings.create => Pool::create(path, &settings.pool, media)?,
        (Found::Nothing, None) => return Err(missing(path)),
        // Without a log the pool cannot be rebuilt, and the caller accepts it as it is.
        (Found::Lost { log: None, .. }, _) if settings.pool.after_power_loss == AfterPowerLoss::Accept => {
            Pool::open(path, &settings.pool, media)?
        }
        // Without a position the files are leftovers of a log that was ended, or of one that was not yet begun.
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
        // A crash interrupted their removal, or the creation of a log. Files of other pools stay.
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

/// Refuses to create a pool beside the files of a database that has held data and lacks its pool and its manifest.
pub(crate) fn refuse_bereft(path: &Path) -> Result<(), Error> {
    let directory = directory_of(path);
    // An opening of a directory would create it.
    if path.symlink_metadata().is_err() && directory.is_dir() {
        left_over(&Directory::open(directory).map_err(FilesError::from)?)?;
    }
    Ok(())
}

/// Returns the error of an opening that finds no pool and may not create one.
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

/// The state of a pool's path.
enum Found {
    Nothing,
    Sound,
    /// The machine stopped while the pool was open.
    Lost {
        uuid: Uuid,
        page_size: u64,
        log: Option<u64>,
    },
}

fn look(path: &Path, pool: &PoolOptions) -> Result<Found, Error> {
    let look = PoolOptions {
        level: pmem::PoolLevel::Process,
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
    // The pool may hold changes that are not yet durable in the log. Until they are, the pool stays marked as left by a
    // kill: while the machine runs the log is complete, and after a loss of power the pool is not used. A pool that was
    // closed holds no such changes, and stays closed if its log cannot be opened.
    pool.leave_unclosed(position.is_some() && pool.last_shutdown() != LastShutdown::Clean);
    let (store, carried_out) = Store::start(pool, settings.recovery_threads)?;
    // A checkpoint reads every map, and without checkpoints the log would reach its limit.
    store.refuse_left_out()?;
    let bell = Arc::new(Bell::default());
    let ring = bell.clone();
    let patience = if settings.has_threads {
        ROOM_TIMEOUT
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

/// Rebuilds the pool at `path` from the checkpoint and the log.
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
        // The original failure is reported. If the process ends before this, the next rebuild removes the file.
        let _ = std::fs::remove_file(&new);
    }
    made
}

/// Builds the pool under another name, and renames it.
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
    // Set before the file holds data. If the old pool is missing, its files give the permissions.
    let access = Permissions::of(path)
        .or_else(|_| Permissions::of(disk.path()).map(|directory| directory.in_directory()));
    // A file with another owner has the same content.
    let _ = access.map_err(|error| failed(path, "stat", error))?.give_to(new);
    let (store, _) = Store::start(pool, 0)?;
    rebuild(&**disk, log, manifest, &store, settings)?;
    let end = log.appended();
    log.wait_durable(end).map_err(FilesError::from)?;
    store.heap.pool().set_log_position(Some(end.0))?;
    // Dropping the last handle closes the pool, and thereby makes it durable.
    close(store)?;
    std::fs::rename(new, path).map_err(|error| failed(new, "rename", error))?;
    sync_folder(path).map_err(|error| failed(path, "fsync of the folder", error))
}

/// Creates the maps of an empty pool from the checkpoint and the log.
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

/// Opens and locks the directory beside the pool at `path`. Waits at most `wait` for another process that holds the
/// lock. Creates the directory if it is missing, with the owner and the mode of the pool.
fn lock(path: &Path, wait: Duration) -> Result<(Directory, std::fs::File), Error> {
    // The directory itself, if its name is a link.
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
            // A directory with another owner has the same content.
            let _ = pool.for_directory().give_to(&name);
        }
        let locked = std::fs::File::open(&name).and_then(|file| {
            lock_named(&file, &name)?;
            Ok(file)
        });
        match locked {
            Ok(file) => {
                let directory = Directory::open(&name).map_err(FilesError::from)?;
                // The lock is on the directory itself. A process that removes the directory holds the lock, except for
                // one that has just created it and could not make its name durable.
                match lock_named(&file, &name) {
                    Ok(()) => return Ok((directory, file)),
                    Err(_) => continue,
                }
            }
            // Another process holds the lock, or has just removed the directory.
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

/// Opens the log, to be replayed from a position on, and first removes what a crash has left beside it.
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

/// Removes the files of a log that has ended, unless another process has opened the pool since: that process has
/// removed them itself, or begun a log of its own.
pub(crate) fn remove_ended(path: &Path) -> Result<(), Error> {
    let look = PoolOptions {
        read_only: true,
        lock_wait: Duration::ZERO,
        ..PoolOptions::default()
    };
    let Ok((directory, _lock)) = lock(path, PoolOptions::default().lock_wait) else {
        // A process that is opening the pool removes leftovers, as the next opening does.
        return Ok(());
    };
    match Pool::open(path, &look, Hardware::detect()) {
        Ok(pool) if pool.log_position().is_none() => {
            clear(&directory, None)?;
            // A directory with files stays.
            let _ = std::fs::remove_dir(directory.path());
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(error) if matches!(error.kind, ErrorKind::Busy { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Returns whether the pool's own log, or a leftover segment of it, is on the disk.
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

/// Removes what a crash has left: files that the manifest does not name; without a manifest also the log.
pub(crate) fn clear<D: Disk>(disk: &D, manifest: Option<&Manifest>) -> Result<(), FilesError> {
    match manifest {
        Some(manifest) => clear_beside(disk, manifest),
        None => {
            // First and durably: without a pool, a manifest whose log is missing would be refused.
            remove_files(disk, |file| [manifest::NAME, manifest::NEW].contains(&file))?;
            disk.sync_dir()?;
            // The log last: it identifies the pool that the files belong to.
            remove_files(disk, Run::is_name)?;
            disk.sync_dir()?;
            Log::remove(disk)?;
            Ok(disk.sync_dir()?)
        }
    }
}

/// Removes the files that a manifest does not name, and makes sure that the files that the log drops while it is opened
/// may go.
///
/// The name of this manifest may not be durable: the crash may have been a kill, perhaps after a failed sync of the
/// directory, and then the medium keeps the previous manifest, whatever is synced (I4 of `checkpoint`). So the manifest
/// is written again before any file goes that its predecessor may need.
fn clear_beside<D: Disk>(disk: &D, manifest: &Manifest) -> Result<(), FilesError> {
    disk.sync_dir()?;
    let named: HashSet<_> = manifest.runs().map(Run::file).collect();
    let is_left = |file: &str| Run::is_name(file) && !named.contains(file) || file == manifest::NEW;
    // No previous manifest can name these.
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

/// Removes the files whose names match; returns whether it removed any.
fn remove_files<D: Disk>(disk: &D, is_left: impl Fn(&str) -> bool) -> Result<bool, FilesError> {
    let mut is_changed = false;
    for file in disk.list()?.iter().filter(|file| is_left(file)) {
        disk.remove(file)?;
        is_changed = true;
    }
    Ok(is_changed)
}
