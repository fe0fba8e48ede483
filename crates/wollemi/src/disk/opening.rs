//! Opening a pool with its log and its checkpoint.
//!
//! | found                                      | the opening                                               |
//! |--------------------------------------------|-----------------------------------------------------------|
//! | nothing                                    | creates a database (`making`)                             |
//! | a pool without a log, at level `disk`      | begins a log, starting with a full checkpoint             |
//! | a pool that was closed, or left by a kill  | replays the log from the pool's log position              |
//! | a pool left by a machine crash, or no pool | builds a new pool from checkpoint and log, and renames it |
//! | a new pool in memory, and a checkpoint     | fills the pool from checkpoint and log                    |
//!
//! A pool has a log if its header has a log position. The position is stored once the first checkpoint is durable, so a
//! crash before that leaves a pool without a log, and files that the next opening removes.

use crate::db::Maps;
use crate::disk::beside::{clear, directory_of, failed, has_log, is_of, lock};
use crate::disk::checkpoint::Checkpoints;
use crate::disk::keeper::{Bell, KeeperState, Threads};
use crate::disk::making::{left_over, make};
use crate::disk::manifest::{self, Manifest};
use crate::disk::pace::Stop;
use crate::disk::rebuild::rebuild;
use crate::disk::replay::catch_up;
use crate::disk::settings::Settings;
use crate::files_error::FilesError;
use crate::report::Rebuilt;
use crate::write::journal::{Journal, ROOM_TIMEOUT};
use crate::write::store::Store;
use crate::{Db, Error, Hardware, Media};
use log::{Directory, Disk, Log, Lsn};
use pmem::pool::{AfterPowerLoss, ErrorKind, LastShutdown, Permissions, Uuid, part_of, sync_folder};
use pmem::{Pool, PoolOptions};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    let mut rebuilt = None;
    if manifest.is_none() {
        // An earlier process may have created the directory, and ended before it had synced the name.
        disk.sync_name().map_err(FilesError::from)?;
    }
    let pool = match (look(path, &settings.pool)?, &manifest) {
        (Found::Sound, _) => {
            let pool = Pool::open(path, &settings.pool, media)?;
            // Also if loading the manifest fails.
            stay_as_left(&pool);
            // Another process may have had the pool open until now, and taken a checkpoint.
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
                // A failed creation leaves no files. If their removal fails, the next opening builds the pool from the
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
        // Without a position in the pool, the files are leftovers of a log that was ended, or of one that was not yet
        // begun.
        (Found::Lost { log: None, .. }, _) => return Err(ErrorKind::Lost.of(path).into()),
        (Found::Lost { .. }, None) => return Err(without_checkpoint(path)),
        (Found::Lost { uuid, page_size, .. }, Some(manifest)) => {
            refuse_foreign(manifest, uuid)?;
            rebuilt = Some(remake(path, settings, page_size, &disk, manifest)?);
            Pool::open(path, &settings.pool, media)?
        }
        (Found::Nothing, Some(manifest)) => {
            rebuilt = Some(remake(path, settings, settings.pool.page_size, &disk, manifest)?);
            Pool::open(path, &settings.pool, media)?
        }
    };
    if pool.log_position().is_none() && !settings.begins_log {
        if let Some(left) = &manifest {
            refuse_foreign(left, pool.uuid())?;
        }
        // A crash interrupted the removal of these files after the end of a log, or the creation of a log. Files of
        // other pools stay.
        if manifest.is_some() || is_of(&*disk, pool.uuid())? {
            clear(&*disk, None)?;
        }
        // A directory that is not empty stays.
        let _ = std::fs::remove_dir(disk.path());
        return Db::start(pool, settings.index, settings.recovery_threads, started);
    }
    if pool.log_position().is_some() && manifest.is_none() {
        return Err(without_checkpoint(path));
    }
    attach(pool, disk, manifest, settings, started, rebuilt)
}

/// Refuses to create a pool beside the files of a database that has held data and lacks its pool and its manifest.
pub(crate) fn refuse_bereft(path: &Path) -> Result<(), Error> {
    let directory = directory_of(path);
    // `Directory::open` would create a missing directory.
    if path.symlink_metadata().is_err() && directory.is_dir() {
        left_over(&Directory::open(directory).map_err(FilesError::from)?)?;
    }
    Ok(())
}

/// Returns the error of an opening that finds no pool and may not create one.
pub(crate) fn missing(path: &Path) -> Error {
    let directory = directory_of(path);
    // `Directory::open` would create a missing directory.
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

/// Returns the error of an opening that finds no checkpoint beside a pool that has a log.
pub(crate) fn without_checkpoint(path: &Path) -> Error {
    FilesError::NoCheckpoint(directory_of(path).display().to_string()).into()
}

/// Returns whether the pool at `path` was open when the machine stopped, and has a log.
pub(crate) fn is_lost_with_log(path: &Path, pool: &PoolOptions) -> bool {
    matches!(look(path, pool), Ok(Found::Lost { log: Some(_), .. }))
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

/// Makes an opening that fails from here on leave a pool that has a log as it was found.
///
/// The pool may hold changes that are not yet durable in the log. Until they are, the pool stays marked as left by a
/// kill: while the machine runs the log is complete, and after a loss of power the pool is not used. A pool that was
/// closed holds no such changes, and stays closed if its log cannot be opened.
fn stay_as_left<M: Media>(pool: &Pool<M>) {
    pool.leave_unclosed(pool.log_position().is_some() && pool.last_shutdown() != LastShutdown::Clean);
}

/// Opens the database in a pool, which may just have been rebuilt, with its log and its checkpoint on a disk.
pub(crate) fn attach<M: Media, D: Disk>(
    pool: Pool<M>,
    disk: Arc<D>,
    manifest: Option<Manifest>,
    settings: &Settings,
    started: Instant,
    rebuilt: Option<Rebuilt>,
) -> Result<Db<M>, Error> {
    let (uuid, mut position) = (pool.uuid(), pool.log_position());
    let (mut manifest, mut rebuilt) = (manifest, rebuilt);
    let is_new = pool.last_shutdown() == LastShutdown::New;
    if is_new && position.is_none() && manifest.is_none() {
        left_over(&*disk)?;
        let made = make(&disk, uuid, &settings.log)?;
        position = Some(made.from);
        pool.set_log_position(position)?;
        manifest = Some(made);
    }
    stay_as_left(&pool);
    let (store, carried_out) = Store::start(pool, settings.recovery_threads)?;
    // A checkpoint reads every map, and without checkpoints the log would reach its limit.
    store.refuse_unreadable_maps()?;
    let bell = Arc::new(Bell::new(Stop::new(settings.checkpoints_end.clone())));
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
            rebuilt = Some(refill(&*disk, &log, &manifest, &maps.store, settings)?);
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
            let checkpoints = Checkpoints::new(disk.clone(), log.clone(), manifest, settings.sizes);
            maps.store.traffic.journal.get_or_init(|| journal(&log));
            checkpoints.take_full(&maps, &bell.stop).inspect_err(|_| {
                // The pool stays without a log. If the removal of the files fails, the next opening repeats it.
                let _ = clear(&*disk, None);
            })?;
            (log, checkpoints)
        }
    };
    let shared = KeeperState::new(log, checkpoints, maps.clone(), settings.log.limit, rebuilt, bell);
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
) -> Result<Rebuilt, Error> {
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
        // The original failure is reported. If the process ends before it removes the file, the next rebuild does.
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
) -> Result<Rebuilt, Error> {
    let pool = Pool::create(new, options, Hardware::detect())?;
    // Set before the file holds data. If the old pool is missing, the permissions are those of the directory beside it.
    let access = Permissions::of(path)
        .or_else(|_| Permissions::of(disk.path()).map(|directory| directory.in_directory()));
    // If some cannot be set, the rebuild continues: fewer users can access the pool then.
    let _ = access.map_err(|error| failed(path, "stat", error))?.give_to(new);
    let (store, _) = Store::start(pool, 0)?;
    let progress = rebuild(&**disk, log, manifest, &store, settings)?;
    let end = log.appended();
    log.wait_durable(end).map_err(FilesError::from)?;
    store.heap.pool().set_log_position(Some(end.0))?;
    // Dropping the last handle closes the pool, and thereby makes it durable.
    close(store)?;
    std::fs::rename(new, path).map_err(|error| failed(new, "rename", error))?;
    sync_folder(path).map_err(|error| failed(path, "fsync of the folder", error))?;
    Ok(progress.report_done())
}

/// Creates the maps of an empty pool from the checkpoint and the log.
fn refill<M: Media, D: Disk>(
    disk: &D,
    log: &Log<D>,
    manifest: &Manifest,
    store: &Store<M>,
    settings: &Settings,
) -> Result<Rebuilt, Error> {
    let progress = rebuild(disk, log, manifest, store, settings)?;
    store.heap.pool().set_log_position(Some(log.appended().0))?;
    Ok(progress.report_done())
}

/// Closes the pool of a store of which this is the only handle.
fn close<M: Media>(store: Store<M>) -> Result<(), Error> {
    let Store { heap, .. } = store;
    Ok(heap.close()?)
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

fn refuse_foreign(manifest: &Manifest, pool: Uuid) -> Result<(), FilesError> {
    match manifest.uuid == pool.to_u128() {
        true => Ok(()),
        false => Err(FilesError::Foreign {
            found: Uuid::from_u128(manifest.uuid),
            pool,
        }),
    }
}
