//! The errors of a measurement.

/// Why a measurement failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The pool could not be created or opened.
    #[error(transparent)]
    Pool(#[from] pmem::pool::Error),
    /// The heap could not be opened, or the index in it.
    #[error(transparent)]
    Heap(#[from] heap::Error),
    /// The database failed.
    #[cfg(feature = "peers")]
    #[error(transparent)]
    Database(#[from] wollemi::Error),
    /// An operation failed.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// An index returned a wrong result: its figures are meaningless.
    #[error("wrong result: {0}")]
    Wrong(String),
    /// A peer failed.
    #[error("{peer}: {what}")]
    Peer {
        /// Its name.
        peer: &'static str,
        /// Its message.
        what: String,
    },
    /// The server to measure was not found.
    #[error("no program '{}': `cargo build --release` builds it beside this one, or give its path (--wollemi)", .0.display())]
    NoServer(std::path::PathBuf),
    /// The file of a new pool already exists.
    #[error("'{}' exists: give the path of a new file", .0.display())]
    Exists(std::path::PathBuf),
    /// Invalid options.
    #[error("options: {0}")]
    Options(&'static str),
    /// The workloads cannot run in this order.
    #[error("workloads: {0}")]
    Workloads(String),
    /// A file of keys cannot be used.
    #[error("keys of '{}': {what}", .path.display())]
    KeyFile {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The child process could not be run.
    #[error("child process: {0}")]
    Filler(std::io::Error),
    /// A directory for the engines' files could not be created or read.
    #[error("directory for the engines: {0}")]
    Directory(std::io::Error),
    /// The result could not be printed.
    #[error("cannot print: {0}")]
    Output(std::io::Error),
    /// The result could not be written as JSON.
    #[error("cannot print: {0}")]
    Json(#[from] serde_json::Error),
}
