//! The errors of the files beside a pool.

use crate::stream::StreamError;

/// Why the log or the checkpoint of a database cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The file system refused.
    #[error(transparent)]
    Disk(#[from] log::DiskError),
    /// The log refused, or is not what it should be.
    #[error(transparent)]
    Log(#[from] log::Error),
    /// A file was changed by something else, or by a failing disk.
    #[error("file '{file}': damaged: {why}")]
    Damaged {
        /// The file's name.
        file: String,
        /// What does not make sense.
        why: String,
    },
    /// A file was written by a later program.
    #[error(
        "file '{file}': written in format {version}, which this program does not know: use a newer Wollemi"
    )]
    Newer {
        /// The file's name.
        file: String,
        /// The file's format.
        version: u32,
    },
    /// A file that the checkpoint needs is not there.
    #[error("file '{file}': missing, and the checkpoint needs it")]
    Missing {
        /// The file's name.
        file: String,
    },
    /// The machine has stopped while the pool was open, and it has a log.
    #[error(
        "pool '{0}': the machine stopped while it was open: open it to write once, which rebuilds it from its log"
    )]
    NeedsRebuild(String),
    /// A pool that was to be read is missing, and its log and its checkpoint are there.
    #[error(
        "pool '{0}': missing, though its log and its checkpoint are there: open it to write once, which makes it anew from them"
    )]
    PoolMissing(String),
    /// There is no database: a crash interrupted its making.
    #[error(
        "pool '{0}': missing; a crash interrupted its making, before it could hold anything: open it with `create`, \
         which makes it anew"
    )]
    Unmade(String),
    /// The pool and the manifest are missing, and there are files that no interrupted making leaves.
    #[error(
        "file '{file}': of a database whose pool and manifest are missing: put these back, or move the directory of \
         this file away to make a new database"
    )]
    Bereft {
        /// One of the files.
        file: String,
    },
    /// A checkpoint was given up, since the database is being closed.
    #[error("the checkpoint was given up: the database is being closed")]
    Stopped,
    /// The pool has a log, and beside it there is no checkpoint.
    #[error(
        "'{0}': missing, and the pool has a log: put back what was beside the pool, or only read it (to back it up, say)"
    )]
    NoCheckpoint(String),
    /// The directory belongs to another pool.
    #[error(
        "the log and the checkpoint beside the pool belong to the pool {found}, and this is the pool {pool}"
    )]
    Foreign {
        /// The pool whose it is.
        found: pmem::pool::Uuid,
        /// The pool beside it.
        pool: pmem::pool::Uuid,
    },
}

impl FilesError {
    pub(crate) fn damaged(file: impl Into<String>, why: impl Into<String>) -> FilesError {
        FilesError::Damaged {
            file: file.into(),
            why: why.into(),
        }
    }

    /// What a stream in a file has failed with.
    pub(crate) fn of_stream(file: &str, error: StreamError) -> FilesError {
        match error {
            StreamError::Version(version) => FilesError::Newer {
                file: file.into(),
                version,
            },
            // The adaptors of files put the disk's error into it.
            StreamError::Io(error) => match error.downcast::<log::DiskError>() {
                Ok(error) => error.into(),
                Err(error) => FilesError::damaged(file, error.to_string()),
            },
            error => FilesError::damaged(file, error.to_string()),
        }
    }
}
