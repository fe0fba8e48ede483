//! The database's errors.

use crate::IndexKind;
use crate::files_error::FilesError;

/// The longest name of a map, in bytes.
pub const MAX_NAME: usize = heap::MAX_NAME;

/// Why a call on a database or a map failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pool could not be opened, created or grown: no such file, not a pool, in use, damaged, no space.
    #[error(transparent)]
    Pool(#[from] pmem::pool::Error),
    /// The heap could not serve: its directory or its pages do not make sense, or it is full.
    #[error(transparent)]
    Heap(#[from] heap::Error),
    /// An operation on a map failed; it changed nothing.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// The log or the checkpoint of a database of level [`Disk`](crate::Level::Disk) cannot be written or read.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The database has other handles, or maps do.
    #[error("the database is still in use: drop every other handle of it and of its maps first")]
    InUse,
    /// The call needs recovery to end, and recovery waits for a [`Reader`](crate::Reader) that this thread holds. Drop the
    /// reader first.
    #[error("recovery waits for a reader that this thread holds: drop it before what waits for recovery")]
    HoldsReader,
    /// The map cannot be dropped while there is a handle to it, or a snapshot, or a view of one.
    #[error("map '{0}': still in use: drop every handle to it, and every snapshot with its views, first")]
    MapInUse(String),
    /// The map is held by an index that this program does not know.
    #[error("map '{name}': an index of kind {kind}, which this program does not know: use a newer Wollemi")]
    OtherKind {
        /// The map's name.
        name: String,
        /// The kind of its index.
        kind: u32,
    },
    /// The map is held by an index that this program is built without (Cargo features `papers` and, for ablations,
    /// `ablations`).
    #[error("map '{name}': held by {index}")]
    LeftOut {
        /// The map's name.
        name: String,
        /// The index that holds it, and which program has that index.
        index: String,
    },
    /// The map is held by another index than the one that was asked for.
    #[error("map '{name}': held by the index '{found}', not by '{wanted}'")]
    OtherIndex {
        /// The map's name.
        name: String,
        /// What holds it.
        found: IndexKind,
        /// What was asked for.
        wanted: IndexKind,
    },
    /// The map belongs to another database than the batch, the transaction or the snapshot that it was given to.
    #[error("map '{0}': of another database")]
    OtherDatabase(String),
    /// Another writer changed what a transaction has read before it was committed, also in its last retry. Nothing was
    /// changed. Run it again.
    #[error("map '{map}': key '{}' was changed while a transaction that has read it was running; run it again", key.escape_ascii())]
    Conflict {
        /// The map's name.
        map: String,
        /// The key; or, while another commit is about to change a key of the same hash, one that was read.
        key: Vec<u8>,
    },
    /// The batch or transaction is committed, but not all of its changes could be made: the pool is damaged, or was
    /// full although room had been set apart. The next opening of the database makes them, given room; until then all
    /// writes fail.
    #[error(
        "the changes are committed, and the next opening of the database will complete them, given room; until then nothing can be written: {0}"
    )]
    Unfinished(Box<Error>),
    /// There is a map of this name already, and what was to be made is another.
    #[error("map '{0}': there already")]
    MapExists(String),
    /// The map holds values that were not put by an [`Expiring`](crate::Expiring).
    #[error("map '{0}': a value has no expiry header, since it was not written through Expiring")]
    NotExpiring(String),
    /// A [bounded](crate::Db::snapshot_within) snapshot would need more bytes of before-images than its limit. It can
    /// no longer be read. Drop it, which frees the memory.
    #[error(
        "snapshot outgrown: the changes since it was taken need more than its limit of {0} bytes; take a new one"
    )]
    SnapshotOutgrown(u64),
    /// An [`Overlay`](crate::Overlay) has more bytes of changes to one map than it may. Nothing was changed.
    #[error("overlay outgrown: the changes of a map need more than its limit of {0} bytes")]
    OverlayOutgrown(usize),
    /// A backup could not be read or written.
    #[error("backup: {0}")]
    Backup(#[source] std::io::Error),
    /// The input is no backup, or a damaged one.
    #[error("not a backup: {0}")]
    NotBackup(String),
    /// A value is not of the type that it was asked for as, or cannot be written as bytes.
    #[cfg(feature = "typed")]
    #[error("map '{map}': not of the map's types: {why}")]
    Value {
        /// The map's name.
        map: String,
        /// What is wrong.
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
