//! The database's errors.

use crate::IndexKind;
use crate::files_error::FilesError;

/// Maximum length of a map's name, in bytes.
pub const MAX_NAME: usize = heap::MAX_NAME;

/// Why a call on a database or a map failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pool could not be opened, created or grown: file missing, not a pool, in use, damaged, or no space.
    #[error(transparent)]
    Pool(#[from] pmem::pool::Error),
    /// The heap is full, or its directory or its pages are damaged.
    #[error(transparent)]
    Heap(#[from] heap::Error),
    /// An operation on a map failed. It changed nothing, except for [`NotDurable`](crate::IndexError::NotDurable).
    #[error(transparent)]
    Index(#[from] index::Error),
    /// The log or the checkpoint of a database of level [`Disk`](crate::Level::Disk) cannot be written or read.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The database or its maps have other handles.
    #[error("the database is still in use: drop every other handle of it and of its maps first")]
    InUse,
    /// The call must wait for recovery, and recovery waits for a [`Reader`](crate::Reader) that this thread holds. Drop
    /// the reader first.
    #[error("recovery waits for a reader that this thread holds: drop the reader first")]
    HoldsReader,
    /// The map cannot be dropped while a handle to it, a snapshot, or a view of a snapshot exists.
    #[error("map '{0}': still in use: drop every handle to it, and every snapshot with its views, first")]
    MapInUse(String),
    /// This program does not know the index that holds the map.
    #[error("map '{name}': an index of kind {kind}, which this program does not know: use a newer Wollemi")]
    OtherKind {
        /// The map's name.
        name: String,
        /// The kind number of its index.
        kind: u32,
    },
    /// This program is built without the index that holds the map (Cargo features `papers` and, for ablations,
    /// `ablations`).
    #[error("map '{name}': held by {index}")]
    LeftOut {
        /// The map's name.
        name: String,
        /// The index that holds it, and which build includes that index.
        index: String,
    },
    /// Another program has created a map whose name is not text, so that no call finds it by its name. A copy of all
    /// maps would lack it.
    #[error(
        "map '{0}': has a name that is not UTF-8, given by another program, so it cannot be read or copied"
    )]
    MapNotText(String),
    /// The map is held by a different index than requested.
    #[error("map '{name}': held by the index '{found}', not by '{wanted}'")]
    OtherIndex {
        /// The map's name.
        name: String,
        /// The index that holds it.
        found: IndexKind,
        /// The requested index.
        wanted: IndexKind,
    },
    /// The map belongs to a different database than the batch, transaction or snapshot it was passed to.
    #[error("map '{0}' belongs to another database")]
    OtherDatabase(String),
    /// Another writer changed a key that the transaction had read before it could commit, in its last retry too.
    /// Nothing was changed. Run it again.
    #[error("map '{map}': key '{}' was changed while a transaction that has read it was running; run it again", key.escape_ascii())]
    Conflict {
        /// The map's name.
        map: String,
        /// The key that was changed. While another commit is about to change a key with the same hash, a key that was
        /// read.
        key: Vec<u8>,
    },
    /// The batch or transaction is committed, but not all of its changes could be applied: the pool is damaged, or full
    /// despite the reserved room. The next opening of the database applies them if there is room; until then all writes
    /// fail.
    #[error(
        "the changes are committed; the next opening of the database completes them if there is room, and until then all writes fail: {0}"
    )]
    Unfinished(Box<Error>),
    /// A map of this name exists, so none can be created.
    #[error("map '{0}' already exists")]
    MapExists(String),
    /// The map holds values that were not written through an [`Expiring`](crate::Expiring).
    #[error("map '{0}': a value has no expiry header, since it was not written through Expiring")]
    NotExpiring(String),
    /// A [bounded](crate::Db::snapshot_within) snapshot would need more bytes of before-images than its limit. It can
    /// no longer be read. Drop it to free the memory.
    #[error(
        "snapshot outgrown: the changes since it was taken need more than its limit of {0} bytes; take a new one"
    )]
    SnapshotOutgrown(u64),
    /// An [`Overlay`](crate::Overlay) exceeds its limit of bytes of changes to one map. Nothing was changed.
    #[error("overlay outgrown: the changes of a map need more than its limit of {0} bytes")]
    OverlayOutgrown(usize),
    /// A backup could not be read or written.
    #[error("backup: {0}")]
    Backup(#[source] std::io::Error),
    /// The input is not a backup, or is a damaged one.
    #[error("not a backup: {0}")]
    NotBackup(String),
    /// A value cannot be decoded as the requested type, or cannot be encoded.
    #[cfg(feature = "typed")]
    #[error("map '{map}': key or value does not match the map's types: {why}")]
    Value {
        /// The map's name.
        map: String,
        /// The reason.
        why: String,
    },
    /// A thread could not be started.
    #[error("starting a thread: {0}")]
    Thread(#[source] std::io::Error),
    /// The name of a map is empty or too long.
    #[error("map name of {0} bytes: a name has 1 to {MAX_NAME} bytes")]
    MapName(usize),
}

impl Error {
    pub(crate) fn conflict(map: &str, key: &[u8]) -> Error {
        let (map, key) = (map.to_owned(), key.to_owned());
        Error::Conflict { map, key }
    }

    pub(crate) fn other_index(name: &str, found: IndexKind, wanted: IndexKind) -> Error {
        let name = name.to_owned();
        Error::OtherIndex { name, found, wanted }
    }
}

impl heap::MayBeFull for Error {
    fn is_full(&self) -> bool {
        match self {
            Error::Heap(error) => error.is_full(),
            Error::Index(error) => error.is_full(),
            _ => false,
        }
    }
}
