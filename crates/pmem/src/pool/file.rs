//! The file below a pool: creates, names and maps it, and queries the system about it.
//!
//! Not here: opening and locking it (`lock`), and which of its bytes have blocks (`blocks`).

mod blocks;

use super::ErrorKind;
use super::lock::{Access, open_locked};
use super::mapping::{Backing, Mapping};
use super::options::PoolLevel;
use crate::{PersistenceDomain, Process, platform};
use rustix::fs::{AtFlags, CWD, FlockOperation, RenameFlags};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// An open file, locked against other openers.
#[derive(Debug)]
pub(super) struct PoolFile {
    file: File,
    path: PathBuf,
    access: Access,
    /// The process that opened it. A forked child shares the open file, and so the lock, and must release neither.
    owner: Process,
}

impl PoolFile {
    /// Opens and locks the file at `path`, waiting up to `wait` for processes that have it locked.
    pub(super) fn open(path: &Path, access: Access, wait: Duration) -> Result<PoolFile, ErrorKind> {
        Ok(Self::new(open_locked(path, access, wait)?, path, access))
    }

    /// Makes an empty file at `path`, which must not exist, and locks it.
    pub(super) fn create(path: &Path) -> Result<PoolFile, ErrorKind> {
        let created = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path);
        let file = created.map_err(|e| match Errno::from_io_error(&e) {
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => ErrorKind::Denied,
            _ => ErrorKind::io("creating the file", e),
        })?;
        // Nothing else knows its name yet.
        let locked = rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive);
        locked.map_err(|e| ErrorKind::io("locking the file", e))?;
        Ok(Self::new(file, path, Access::Write))
    }

    fn new(file: File, path: &Path, access: Access) -> PoolFile {
        PoolFile {
            file,
            path: path.into(),
            access,
            owner: Process::current(),
        }
    }

    /// Whether it may be written.
    pub(super) fn is_writable(&self) -> bool {
        self.access == Access::Write
    }

    /// Whether this process opened it, rather than a parent that it was forked from.
    pub(super) fn is_ours(&self) -> bool {
        self.owner.is_current()
    }

    /// Renames the file to `path`, which must not exist, durably. On an error no file has that name.
    /// (If the name cannot be made durable, and the file cannot be removed either, the file stays.)
    pub(super) fn rename(&mut self, path: &Path) -> Result<(), ErrorKind> {
        let failed = |e| ErrorKind::io("writing the directory", e);
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        // Opened first: if this fails, nothing has been done.
        let directory = File::open(parent.unwrap_or(Path::new("."))).map_err(failed)?;
        rename_new(&self.path, path).map_err(|e| match Errno::from_io_error(&e) {
            Some(Errno::EXIST) => ErrorKind::Exists,
            _ => ErrorKind::io("naming the file", e),
        })?;
        self.path = path.into();
        directory.sync_all().map_err(|e| {
            // It is locked, so no other process has used it. If it cannot be removed, it stays.
            let _ = std::fs::remove_file(path);
            failed(e)
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes in the file.
    pub(super) fn len(&self) -> Result<u64, ErrorKind> {
        let metadata = self.file.metadata();
        metadata
            .map(|m| m.len())
            .map_err(|e| ErrorKind::io("examining the file", e))
    }

    /// Reads the first bytes of the file, at most as many as fit into `bytes`.
    pub(super) fn read_start<'b>(&self, bytes: &'b mut [u8]) -> Result<&'b [u8], ErrorKind> {
        let mut read = 0;
        while read < bytes.len() {
            match self.file.read_at(&mut bytes[read..], read as u64) {
                Ok(0) => break,
                Ok(more) => read += more,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(ErrorKind::io("reading the header", e)),
            }
        }
        Ok(&bytes[..read])
    }

    /// Waits until the file and its length are on its medium.
    pub(super) fn sync(&self) -> Result<(), ErrorKind> {
        self.file
            .sync_all()
            .map_err(|e| ErrorKind::io("writing to the medium", e))
    }

    /// Maps the first `len` bytes, at the highest level that the file system supports. Where the file is opened
    /// read-only, stores into the mapping stay in this process's memory.
    pub(super) fn map(&self, mapping: &Mapping, len: u64, least: PoolLevel) -> Result<PoolLevel, ErrorKind> {
        let failed = |e| ErrorKind::io("mapping the file", e);
        // Tried on a mapping of its own: a refusal inside the reserved range would leave a hole there, for any
        // thread's next mapping.
        let level = match Mapping::takes_sync(self.file.as_fd()) {
            Ok(()) => PoolLevel::Power,
            // The errors of a file system without DAX, and of a kernel without `MAP_SYNC`.
            Err(Errno::OPNOTSUPP | Errno::INVAL) if least == PoolLevel::Power => {
                return Err(ErrorKind::NotPower);
            }
            Err(Errno::OPNOTSUPP | Errno::INVAL) => PoolLevel::Process,
            Err(e) => return Err(failed(e)),
        };
        let backing = match self.access {
            Access::Read => Backing::Private,
            Access::Write => Backing::Shared(level),
        };
        mapping
            .back_with_file(self.file.as_fd(), backing, 0, len)
            .map_err(failed)?;
        // Had another program truncated the file just now, an access past its end would raise a signal.
        match self.len()? {
            now if now < len => Err(ErrorKind::Truncated {
                len: now,
                needed: len,
            }),
            _ => Ok(level),
        }
    }

    /// How far a store must travel to survive the crash that a pool of this level survives.
    pub(super) fn domain(&self, level: PoolLevel) -> PersistenceDomain {
        match level {
            PoolLevel::Process => PersistenceDomain::Process,
            PoolLevel::Power if self.caches_persist() => PersistenceDomain::Caches,
            PoolLevel::Power => PersistenceDomain::Memory,
        }
    }

    /// Whether the processor's caches survive a power loss on the file's device.
    fn caches_persist(&self) -> bool {
        let device = self.file.metadata().map(|metadata| metadata.dev());
        device.is_ok_and(platform::caches_persist)
    }
}

impl Drop for PoolFile {
    fn drop(&mut self) {
        // Closing alone would leave the lock to a child process that another thread is just starting. In such a
        // child, unlocking would take the lock away from its parent.
        if self.is_ours() {
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

/// Locks the file of this name, which the caller has opened, so that processes that write such a file under this name
/// exclude each other. Does not wait.
///
/// # Errors
///
/// If another process has locked it or has given the name to another file by now, and on errors of the file system.
pub fn lock_named(file: &File, path: &Path) -> io::Result<()> {
    let busy = || io::Error::other("another process is writing this file");
    file.try_lock().map_err(|error| match error {
        TryLockError::WouldBlock => busy(),
        TryLockError::Error(error) => error,
    })?;
    let (locked, named) = (file.metadata()?, fs::symlink_metadata(path)?);
    match (locked.dev(), locked.ino()) == (named.dev(), named.ino()) {
        true => Ok(()),
        false => Err(busy()),
    }
}

/// Renames a file to a name that must not exist.
///
/// # Errors
///
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) if the new name exists, and errors of the file system. On an error
/// the file keeps its old name.
pub fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        // Not every file system supports this; such a one can still link.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty())?;
            rustix::fs::unlink(from).inspect_err(|_| {
                let _ = rustix::fs::unlink(to);
            })?;
            Ok(())
        }
        renamed => Ok(renamed?),
    }
}
