//! What a measurement can fail with.

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pool could not be created or opened.
    #[error(transparent)]
    Pool(#[from] pmem::pool::Error),
    /// The heap could not be opened, or the index in it.
    #[error(transparent)]
    Heap(#[from] heap::Error),
    /// An operation failed.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// An index did not behave as it must: its figures mean nothing.
    #[error("wrong result: {0}")]
    Wrong(String),
    /// A pool to be made is there already.
    #[error("'{}' exists: give the path of a file to be made", .0.display())]
    Exists(std::path::PathBuf),
    /// The process that fills the pool could not be run.
    #[error("the process that fills the pool: {0}")]
    Filler(std::io::Error),
    /// The result could not be printed.
    #[error("cannot print: {0}")]
    Output(std::io::Error),
    /// The result could not be written as JSON.
    #[error("cannot print: {0}")]
    Json(#[from] serde_json::Error),
}
