//! Opening a pool's file and locking it against other openers.
//!
//! A pool opened for writing has an exclusive `flock`, one opened read-only a shared one. The lock belongs to the
//! open file. The kernel releases it when the process dies, but only while tearing the process down: an opening right
//! after a `kill -9` waits for that.
//!
//! I1 A file is used only if its path led to it after it was locked. Programs that replace a pool's file (`compact`)
//!    hold the old file's lock until the new one has the name.

use super::ErrorKind;
use crate::platform;
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// The pause between two attempts to take a lock.
const PAUSE: Duration = Duration::from_millis(2);

/// The access that a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reading, beside other readers.
    Read,
    /// Reading and writing, exclusively.
    Write,
}

/// How an attempt to lock a file ended.
#[derive(Debug)]
enum Attempt {
    Locked(File),
    /// Another process has the file locked; its id, if the system reports it.
    Busy(Option<u32>),
    /// The path no longer leads to the file, or a signal came: try again.
    Again,
}

/// Opens and locks the file at `path`, waiting up to `wait` for processes that have it locked. Each attempt opens the
/// file anew, since the holder may be replacing it.
pub(super) fn open_locked(path: &Path, access: Access, wait: Duration) -> Result<File, ErrorKind> {
    let started = Instant::now();
    loop {
        match lock(open(path, access)?, path, access)? {
            Attempt::Locked(file) => return Ok(file),
            Attempt::Again => {}
            Attempt::Busy(pid) => {
                let left = wait.saturating_sub(started.elapsed());
                if left.is_zero() {
                    return Err(ErrorKind::Busy { pid, waited: wait });
                }
                std::thread::sleep(left.min(PAUSE));
            }
        }
    }
}

fn open(path: &Path, access: Access) -> Result<File, ErrorKind> {
    let opened = OpenOptions::new()
        .read(true)
        .write(access == Access::Write)
        // Opening a FIFO for reading would wait for a writer. Regular files ignore the flag.
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path);
    opened.map_err(|e| match Errno::from_io_error(&e) {
        Some(Errno::NOENT) => ErrorKind::Missing,
        Some(Errno::ISDIR | Errno::NXIO | Errno::NODEV) => ErrorKind::NotAFile,
        Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => ErrorKind::Denied,
        _ => ErrorKind::io("opening the file", e),
    })
}

/// Locks a file that was just opened at `path`.
fn lock(file: File, path: &Path, access: Access) -> Result<Attempt, ErrorKind> {
    let failed = |e| ErrorKind::io("examining the file", e);
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(ErrorKind::NotAFile);
    }
    let operation = match access {
        Access::Read => FlockOperation::NonBlockingLockShared,
        Access::Write => FlockOperation::NonBlockingLockExclusive,
    };
    match rustix::fs::flock(&file, operation) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => {
            let holder = platform::lock_holder(metadata.dev(), metadata.ino());
            return Ok(Attempt::Busy(holder));
        }
        Err(Errno::INTR) => return Ok(Attempt::Again),
        Err(e) => return Err(ErrorKind::io("locking the file", e)),
    }
    match std::fs::metadata(path) {
        Ok(now) if (now.dev(), now.ino()) == (metadata.dev(), metadata.ino()) => Ok(Attempt::Locked(file)),
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(failed(e)),
        _ => Ok(Attempt::Again),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that was replaced or removed between its opening and its locking is not used: writes acknowledged in it
    /// would be lost.
    #[test]
    fn a_replaced_file_is_not_used() {
        let folder = tempfile::tempdir().expect("a directory");
        let [path, new] = ["pool", "new"].map(|name| folder.path().join(name));
        for access in [Access::Write, Access::Read] {
            std::fs::write(&path, "old").expect("a file");
            let replaced = open(&path, access).expect("a file");
            std::fs::write(&new, "new").expect("a file");
            std::fs::rename(&new, &path).expect("renamed");
            let attempt = lock(replaced, &path, access);
            assert!(matches!(attempt, Ok(Attempt::Again)), "{attempt:?}");
            let file = open_locked(&path, access, Duration::ZERO).expect("the new file");
            assert_eq!(io::read_to_string(&file).expect("read"), "new");
            std::fs::remove_file(&path).expect("removed");
            let attempt = lock(file, &path, access);
            assert!(matches!(attempt, Ok(Attempt::Again)), "{attempt:?}");
            let gone = open_locked(&path, access, Duration::ZERO);
            assert!(matches!(gone, Err(ErrorKind::Missing)), "{gone:?}");
        }
    }

    /// An opener waits for a lock that is about to be released, such as that of a process that is being killed.
    #[test]
    fn a_lock_is_waited_for() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("pool");
        std::fs::write(&path, "held").expect("a file");
        let held = open_locked(&path, Access::Write, Duration::ZERO).expect("a file");
        let refused = open_locked(&path, Access::Read, Duration::from_millis(20));
        let waited = matches!(refused, Err(ErrorKind::Busy { waited, .. }) if waited.as_millis() == 20);
        assert!(waited, "{refused:?}");
        std::thread::scope(|scope| {
            // Upper bound on the wait; beyond it the test counts as hung.
            let opener = scope.spawn(|| open_locked(&path, Access::Write, Duration::from_secs(120)));
            std::thread::sleep(Duration::from_millis(30));
            assert!(!opener.is_finished(), "the lock is held");
            drop(held);
            opener.join().expect("no panic").expect("the lock");
        });
    }

    /// Readers share a file and exclude writers.
    #[test]
    fn readers_share() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("pool");
        std::fs::write(&path, "shared").expect("a file");
        let open = |access| open_locked(&path, access, Duration::ZERO);
        let readers = [open(Access::Read), open(Access::Read)].map(|file| file.expect("shared"));
        let refused = open(Access::Write);
        assert!(matches!(refused, Err(ErrorKind::Busy { .. })), "{refused:?}");
        drop(readers);
        // Upper bound on the wait; a process that another test forks may hold copies of the descriptors for a moment.
        let _writer = open_locked(&path, Access::Write, Duration::from_secs(120)).expect("alone");
        let refused = open(Access::Read);
        assert!(matches!(refused, Err(ErrorKind::Busy { .. })), "{refused:?}");
    }
}
