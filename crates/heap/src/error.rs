//! The heap's errors.

use pmem::{Fault, pool};

/// Why the heap could not serve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An offset or a length that cannot be: the pool is damaged.
    #[error("damaged pool: {what} at offset {offset:#x}")]
    Damaged {
        /// What does not make sense.
        what: &'static str,
        /// Where.
        offset: u64,
    },
    /// There is no free chunk, and the pool cannot grow. See [`Heap::wait_for_room`](crate::Heap::wait_for_room).
    #[error(
        "no room for {bytes} bytes{}: {source}",
        if *recovering { ", until recovery has found what is free" } else { "" }
    )]
    Full {
        /// Bytes that were asked for.
        bytes: usize,
        /// Whether recovery was under way, and may make room.
        recovering: bool,
        /// Why the pool does not grow.
        source: Box<pool::Error>,
    },
    /// There is a root of this name already.
    #[error("there is a root '{}' already", .0.escape_ascii())]
    RootExists(Box<[u8]>),
    /// The name is longer than [`MAX_NAME`](crate::MAX_NAME).
    #[error("root name of {0} bytes: the longest is {max} bytes", max = crate::MAX_NAME)]
    NameTooLong(usize),
    /// The root directory has no free entry.
    #[error("the root directory is full: all of its {0} entries are taken")]
    TooManyRoots(usize),
    /// A root of a kind that this program has no tracer for: what it leads to cannot be known.
    #[error("root '{}' is of kind {kind}, which this program does not know: use a newer Wollemi", root.escape_ascii())]
    UnknownKind {
        /// The root's name.
        root: Box<[u8]>,
        /// Its kind.
        kind: u32,
    },
    /// The call needs to know what is alive, and recovery has not found it out.
    #[error("what is in use is not known: recovery {0}")]
    NotRecovered(String),
    /// The pool could not be closed.
    #[error(transparent)]
    Pool(Box<pool::Error>),
    /// A thread could not be started.
    #[error("starting a recovery thread: {0}")]
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

/// An error that may say that the pool is full: waiting may make room ([`Heap::with_room`](crate::Heap::with_room)).
pub trait MayBeFull {
    /// Whether it does.
    fn is_full(&self) -> bool;
}

impl MayBeFull for Error {
    fn is_full(&self) -> bool {
        matches!(self, Error::Full { .. })
    }
}
