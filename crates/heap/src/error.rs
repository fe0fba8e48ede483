//! The heap's errors.

use pmem::{Fault, pool};

/// The maximum length of a root's name in bytes.
pub const MAX_NAME: usize = 240;

/// Why a heap operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An invalid offset or length: the pool is damaged.
    #[error("damaged pool: {what} at offset {offset:#x}")]
    Damaged {
        /// What is invalid.
        what: &'static str,
        /// Where.
        offset: u64,
    },
    /// No chunk is free, and the pool cannot grow. See [`Heap::wait_for_room`](crate::Heap::wait_for_room).
    #[error(
        "no room for {bytes} bytes{}: {source}",
        if *recovering { ", until recovery has found what is free" } else { "" }
    )]
    Full {
        /// Number of bytes needed: of a chunk, of a large object, or of pages to set apart.
        bytes: usize,
        /// Whether recovery is running, and may make room.
        recovering: bool,
        /// Why the pool does not grow.
        source: Box<pool::Error>,
    },
    /// A root of this name exists.
    #[error("root '{}' already exists", .0.escape_ascii())]
    RootExists(Box<[u8]>),
    /// The name is longer than [`MAX_NAME`].
    #[error("root name of {0} bytes: the longest is {max} bytes", max = MAX_NAME)]
    NameTooLong(usize),
    /// The root directory has no free entry.
    #[error("the root directory is full: all {0} entries are in use")]
    TooManyRoots(usize),
    /// A root of a kind for which this program has no tracer: the objects below it are unknown.
    #[error("root '{}' is of unknown kind {kind}: use a newer Wollemi", root.escape_ascii())]
    UnknownKind {
        /// The root's name.
        root: Box<[u8]>,
        /// Its kind.
        kind: u32,
    },
    /// The operation needs the set of live objects, and recovery has not determined it.
    #[error("the set of live objects is unknown: recovery {0}")]
    NotRecovered(String),
    /// The pool could not be closed.
    #[error(transparent)]
    Pool(Box<pool::Error>),
    /// A thread could not be started.
    #[error("starting a thread: {0}")]
    Thread(std::io::Error),
}

impl From<Fault> for Error {
    fn from(fault: Fault) -> Error {
        Error::Damaged {
            what: fault.what,
            offset: fault.offset,
        }
    }
}

/// Errors that can report a full pool: waiting may make room ([`Heap::with_room`](crate::Heap::with_room)).
pub trait MayBeFull {
    /// Whether this error reports a full pool.
    fn is_full(&self) -> bool;
}

impl MayBeFull for Error {
    fn is_full(&self) -> bool {
        matches!(self, Error::Full { .. })
    }
}
