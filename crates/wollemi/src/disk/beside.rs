//! The files beside a pool: their directory and its lock, and the removal of those that nothing needs any more.

use crate::disk::manifest::{self, Manifest, Run};
use crate::files_error::FilesError;
use crate::{Error, Hardware};
use log::{Directory, Disk, Log, Lsn};
use pmem::pool::{ErrorKind, Permissions, Uuid, behind_links, folder_of, lock_named};
use pmem::{Pool, PoolOptions, Process};
use std::collections::HashSet;
use std::io::ErrorKind::{InvalidFilename, NotADirectory, NotFound, Other, WouldBlock};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Returns the directory of the log and the checkpoint of the pool at `path`.
pub(crate) fn directory_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".disk");
    name.into()
}

/// Returns whether a manifest lies beside the pool at `path`: the pool has a log, or a crash has interrupted the
/// beginning or the end of one. A directory that this process cannot search counts as one with a manifest: it is not
/// missing, and the opening reports why it cannot be used.
pub(crate) fn has_log(path: &Path) -> bool {
    match directory_of(path).join(manifest::NAME).try_exists() {
        Ok(exists) => exists,
        // A file has the directory's name, or no file can have it.
        Err(error) => !matches!(error.kind(), NotADirectory | InvalidFilename),
    }
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

/// The lock on a directory.
///
/// Dropping it unlocks the directory: closing alone would leave the lock to a child process that another thread has
/// just started. In such a child, unlocking would take the lock away from its parent.
pub(super) struct DirectoryLock {
    file: std::fs::File,
    owner: Process,
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        if self.owner.is_current() {
            // If this fails, closing unlocks it.
            let _ = self.file.unlock();
        }
    }
}

/// Opens and locks the directory beside the pool at `path`. Waits at most `wait` for another process that holds the
/// lock. Creates the directory if it is missing, with the owner and the mode of the pool.
pub(super) fn lock(path: &Path, wait: Duration) -> Result<(Directory, DirectoryLock), Error> {
    // If the directory's name is a symbolic link, the lock is on the directory to which it leads.
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
            // If some cannot be set, the opening continues: fewer users can access the directory then.
            let _ = pool.for_directory().give_to(&name);
        }
        let locked = std::fs::File::open(&name).and_then(|file| {
            lock_named(&file, &name)?;
            let owner = Process::current();
            Ok(DirectoryLock { file, owner })
        });
        match locked {
            Ok(lock) => {
                let directory = Directory::open(&name).map_err(FilesError::from)?;
                // The lock is on the directory itself. A process that removes the directory holds the lock, except for
                // one that has just created it and could not make its name durable.
                match lock_named(&lock.file, &name) {
                    Ok(()) => return Ok((directory, lock)),
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

pub(super) fn failed(path: &Path, operation: &'static str, source: std::io::Error) -> Error {
    let error = log::DiskError {
        file: path.display().to_string(),
        operation,
        source,
    };
    FilesError::from(error).into()
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
pub(super) fn is_of<D: Disk>(disk: &D, pool: Uuid) -> Result<bool, FilesError> {
    Ok(Log::has_segment_of(disk, pool.to_u128())?)
}

/// Removes what a crash has left: the files that this manifest does not name; if none is given, the manifest, all runs
/// and the log.
pub(crate) fn clear<D: Disk>(disk: &D, manifest: Option<&Manifest>) -> Result<(), FilesError> {
    match manifest {
        Some(manifest) => clear_beside(disk, manifest),
        None => {
            // The manifest first, and durably: without a pool, a manifest whose log is missing would be refused.
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
