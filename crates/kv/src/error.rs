//! What the database can fail with.

use crate::IndexKind;

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
    /// The map cannot be dropped while somebody holds it.
    #[error("map '{0}': still in use: drop every handle to it first")]
    MapInUse(String),
    /// The map is held by an index that this program does not know.
    #[error("map '{name}': an index of kind {kind}, which this program does not know: use a newer Wollemi")]
    OtherKind {
        /// The map's name.
        name: String,
        /// The kind of its index.
        kind: u32,
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
    /// The name of a map is empty or too long.
    #[error("map name of {0} bytes: a name has 1 to {MAX_NAME} bytes")]
    MapName(usize),
}

impl Error {
    pub(crate) fn other_index(name: &str, found: IndexKind, wanted: IndexKind) -> Error {
        let name = name.to_owned();
        Error::OtherIndex { name, found, wanted }
    }
}
