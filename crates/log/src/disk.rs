//! The files of one directory, as the log and everything beside it use them.
//!
//! [`Disk`] and [`DiskFile`] are the only way to the file system, so that a test can substitute a disk that records,
//! loses and fails. [`Directory`] is the real one.
//!
//! Guarantees of a file system that users of the trait may rely on:
//!
//! D1 Written bytes survive the end of the process, however it comes. Reads see them at once.
//! D2 After a power cut each 512-byte sector of a file holds its content at the file's last [`sync`](DiskFile::sync),
//!    or something written since; sectors are independent of each other.
//! D3 A name that was created, renamed or removed since the last [`sync_dir`](Disk::sync_dir) may be in its earlier
//!    state, independently of other names and of all files' contents. A file is durable under its name only after
//!    both syncs.
//! D4 After a failed `sync` the state of everything written since the last successful one is unknown, and another
//!    `sync` proves nothing about it; bytes that are written again afterwards are like any others.

mod directory;
mod mapping;
mod platform;

pub use directory::{Directory, OpenFile};
pub use mapping::FileMapping;

use std::io;

/// The files of one directory. Names are plain names, without a path.
pub trait Disk: Send + Sync + 'static {
    /// An open file.
    type File: DiskFile;

    /// Creates an empty file, open for reading and writing; fails if the name is taken. Not durable before
    /// [`sync_dir`](Disk::sync_dir).
    fn create(&self, name: &str) -> Result<Self::File, DiskError>;

    /// Opens a file for reading and writing.
    fn open(&self, name: &str) -> Result<Self::File, DiskError>;

    /// The names of all files, in no particular order.
    fn list(&self) -> Result<Vec<String>, DiskError>;

    /// Renames a file, in one step; replaces a file that has the new name.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError>;

    /// Removes a file. A program that has it open may go on using it.
    fn remove(&self, name: &str) -> Result<(), DiskError>;

    /// Makes creations, renames and removals durable.
    #[track_caller]
    fn sync_dir(&self) -> Result<(), DiskError>;
}

/// An open file of a [`Disk`]. It stays open across renames; errors give the name under which it was opened.
#[expect(
    clippy::len_without_is_empty,
    reason = "a file's length needs a system call, which may fail"
)]
pub trait DiskFile: Send + Sync + 'static {
    /// A mapping of the file's beginning.
    type Mapping: Mapping;

    /// Length in bytes.
    fn len(&self) -> Result<u64, DiskError>;

    /// Fills `bytes` from position `at` on; fails with kind `UnexpectedEof` if the file ends before.
    fn read_at(&self, at: u64, bytes: &mut [u8]) -> Result<(), DiskError>;

    /// Writes all of `bytes` at position `at`, lengthening the file if need be. After an error any part of it may have
    /// been written.
    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Makes the file `len` bytes long, its bytes zeros with blocks of their own, so that later writes below `len`
    /// need no space and `sync` writes no metadata. Fails if there is no space ([`DiskError::is_full`]). For a file
    /// without contents.
    fn preallocate(&self, len: u64) -> Result<(), DiskError>;

    /// Maps the first `len` bytes, which must exist and have blocks ([`preallocate`](DiskFile::preallocate)).
    fn map(&self, len: u64) -> Result<Self::Mapping, DiskError>;

    /// Maps the first `len` bytes of a file that this process has just read, so that the mapping need not read them
    /// again.
    fn map_read(&self, len: u64) -> Result<Self::Mapping, DiskError> {
        self.map(len)
    }

    /// Makes the contents and the length durable (`fdatasync`): everything written before by any handle or mapping.
    #[track_caller]
    fn sync(&self) -> Result<(), DiskError>;
}

/// The beginning of a file as memory that can be stored to without a system call. A store is a write as in D1 and D2,
/// but not in one step: when a process is killed, any subset of the store's bytes may be there. Outlives its file's
/// handle.
pub trait Mapping: Send + 'static {
    /// Stores bytes from position `at` on.
    ///
    /// # Panics
    ///
    /// If they reach beyond the mapping.
    fn store(&mut self, at: u64, bytes: &[u8]);

    /// Prepares for imminent stores into all of the `len` bytes from `at` on. It makes these cheaper and changes no
    /// contents, but the next sync may write all of these bytes.
    fn prepare_stores(&mut self, at: u64, len: u64) {
        let _ = (at, len);
    }

    /// Prepares for a sync of many stores. It makes the sync cheaper and the next stores more expensive, and has no
    /// other effect.
    fn prepare_sync(&mut self) {}
}

/// A failed operation on a file.
#[derive(Debug, thiserror::Error)]
#[error("file '{file}': {operation}: {source}")]
pub struct DiskError {
    /// The file's name, with the directory's path if it has one.
    pub file: String,
    /// The operation: "create", "fdatasync" and the like.
    pub operation: &'static str,
    /// The system's error.
    pub source: io::Error,
}

impl DiskError {
    /// Whether there was no space: a full disk, a quota, a limit on the file's size.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        matches!(self.source.kind(), StorageFull | QuotaExceeded | FileTooLarge)
    }

    /// Whether the system was short of something, so that the operation may succeed later: disk space, memory, file
    /// descriptors.
    pub fn is_shortage(&self) -> bool {
        use rustix::io::Errno;
        let errno = Errno::from_io_error(&self.source);
        self.is_full() || matches!(errno, Some(Errno::NOMEM | Errno::MFILE | Errno::NFILE))
    }

    /// Whether the file exists, and was to be created.
    pub fn is_existing(&self) -> bool {
        self.source.kind() == io::ErrorKind::AlreadyExists
    }

    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}
