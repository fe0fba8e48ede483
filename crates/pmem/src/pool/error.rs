//! The errors of a pool.

use super::version::VERSION;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why an operation on a pool failed.
#[derive(Debug, thiserror::Error)]
#[error("pool '{}': {kind}", pool.display())]
pub struct Error {
    /// The pool's path; `anonymous` or `memory` for a pool without a file.
    pub pool: PathBuf,
    /// What happened.
    pub kind: ErrorKind,
}

/// What happened to a pool.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The file is not a pool.
    #[error("not a Wollemi pool (first bytes {})", hex(&first[..*shown]))]
    Foreign {
        /// The file's first bytes.
        first: [u8; 4],
        /// How many of them are valid.
        shown: usize,
    },
    /// The file has no bytes.
    #[error("not a Wollemi pool (the file is empty)")]
    Empty,
    /// The file ends before its pages do.
    #[error("truncated: the file has {len} bytes of at least {needed}; restore it from a copy")]
    Truncated {
        /// Bytes in the file.
        len: u64,
        /// Bytes that it must have.
        needed: u64,
    },
    /// The file was written by a later program.
    #[error(
        "written in format {version}, and this program reads formats up to {VERSION}: use a newer Wollemi"
    )]
    Newer {
        /// The file's format.
        version: u64,
    },
    /// The header's bytes were changed by another program or by a fault.
    #[error("damaged header ({what}); restore the file from a copy")]
    Damaged {
        /// The invalid field.
        what: &'static str,
    },
    /// Another process, or this one, has the pool open.
    #[error(
        "opened by {}{}",
        match pid { Some(pid) => format!("process {pid}"), None => "another process".into() },
        if waited.is_zero() { String::new() } else { format!(" (waited {waited:?})") }
    )]
    Busy {
        /// Its process id, if known.
        pid: Option<u32>,
        /// How long the opening waited for it.
        waited: Duration,
    },
    /// The path exists already, or the [memory](crate::Memory) for a new pool does not begin with zeros.
    #[error("exists already")]
    Exists,
    /// Nothing exists at the path.
    #[error("no such file")]
    Missing,
    /// The path names a directory, a device or the like.
    #[error("not a regular file")]
    NotAFile,
    /// The file cannot be read, or cannot be written.
    #[error("permission denied: a pool must be readable, and writable unless it is opened read-only")]
    Denied,
    /// Level `power` was requested where it is not available.
    #[error(
        "cannot survive a power loss here (MAP_SYNC refused): put it on a DAX file system, or use level process"
    )]
    NotPower,
    /// The machine stopped while the pool was open at level `process`.
    #[error(
        "the machine stopped while it was open, and data in its page cache was lost: restore a copy, or inspect what \
         is left and accept the loss"
    )]
    Lost,
    /// The pool has a log position, but was opened without its log.
    #[error("it has a log, and cannot be opened without it")]
    HasLog,
    /// The pool has reached its size limit.
    #[error("full: {needed} bytes needed, and the size limit is {limit}")]
    Full {
        /// Bytes that the pool would have needed.
        needed: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// The device, a quota or this process's file size limit leaves no room to grow.
    #[error("full: {needed} bytes needed, and there is no space left for the file ({why})")]
    NoSpace {
        /// Bytes that the pool would have needed.
        needed: u64,
        /// The system's error.
        why: io::Error,
    },
    /// The page size in the options is invalid.
    #[error("page size of {0} bytes: must be a power of two from 64 KiB to 128 MiB")]
    PageSize(u64),
    /// It was opened 2^32 - 1 times; the next generation would be mistaken for an old one.
    #[error("the open counter is exhausted: restore a backup into a new pool")]
    Generations,
    /// A system call failed.
    #[error("{doing}: {source}")]
    Io {
        /// What the program was doing.
        doing: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

impl ErrorKind {
    pub(super) fn io(doing: &'static str, source: impl Into<io::Error>) -> ErrorKind {
        ErrorKind::Io {
            doing,
            source: source.into(),
        }
    }

    /// The error with the path of its pool.
    pub fn of(self, path: &std::path::Path) -> Error {
        Error {
            pool: path.into(),
            kind: self,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    let bytes: Vec<_> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    bytes.join(" ")
}

/// A place that cannot hold what a link to it says: the pool is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("damaged pool: {what} at offset {offset:#x}")]
pub struct Fault {
    /// What is invalid.
    pub what: &'static str,
    /// Where, in bytes from the base.
    pub offset: u64,
}
