//! The errors of the files beside a pool.

use crate::stream::StreamError;

/// Why the log or the checkpoint of a database cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The file system failed.
    #[error(transparent)]
    Disk(#[from] log::DiskError),
    /// The log failed or is damaged.
    #[error(transparent)]
    Log(#[from] log::Error),
    /// A file is damaged: another program or a failing disk changed it.
    #[error("file '{file}': damaged: {why}")]
    Damaged {
        /// The file's name.
        file: String,
        /// What is inconsistent.
        why: String,
    },
    /// A newer version wrote the file.
    #[error(
        "file '{file}': written in format {version}, which this program does not know: use a newer Wollemi"
    )]
    Newer {
        /// The file's name.
        file: String,
        /// The file's format.
        version: u32,
    },
    /// A file that the checkpoint needs is missing.
    #[error("file '{file}': missing, and the checkpoint needs it")]
    Missing {
        /// The file's name.
        file: String,
    },
    /// The machine stopped while the pool was open, and the pool has a log.
    #[error(
        "pool '{0}': the machine stopped while it was open: open it to write once, which rebuilds it from its log"
    )]
    NeedsRebuild(String),
    /// The pool to be read is missing, but its log and its checkpoint exist.
    #[error(
        "pool '{0}': missing, but its log and its checkpoint exist: open it to write once, which rebuilds it from them"
    )]
    PoolMissing(String),
    /// The database does not exist: a crash interrupted its creation.
    #[error(
        "pool '{0}': missing; a crash interrupted its creation, before it held any data: open it with `create`, \
         which creates it again"
    )]
    Unmade(String),
    /// The pool and the manifest are missing, and the files beside them are not those of an interrupted creation.
    #[error(
        "file '{file}' belongs to a database whose pool and manifest are missing: restore these, or move the directory of \
         this file away to make a new database"
    )]
    Bereft {
        /// One of the files.
        file: String,
    },
    /// A checkpoint was abandoned because the database is being closed, or because [the
    /// caller](crate::Options::end_checkpoints_if) wants it to end.
    #[error("checkpoint abandoned: the database is being closed, or the program stops")]
    Stopped,
    /// The pool has a log, but the checkpoint beside it is missing.
    #[error(
        "'{0}': missing, and the pool has a log: restore the directory beside the pool, or open the pool only to read (for a backup)"
    )]
    NoCheckpoint(String),
    /// The directory belongs to another pool.
    #[error(
        "the log and the checkpoint beside the pool belong to the pool {found}, and this is the pool {pool}"
    )]
    Foreign {
        /// The pool that the directory belongs to.
        found: pmem::pool::Uuid,
        /// The pool beside the directory.
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

    /// Converts the error of a stream in a file.
    pub(crate) fn of_stream(file: &str, error: StreamError) -> FilesError {
        match error {
            StreamError::Version(version) => FilesError::Newer {
                file: file.into(),
                version,
            },
            // File adaptors wrap the disk's error in it.
            StreamError::Io(error) => match error.downcast::<log::DiskError>() {
                Ok(error) => error.into(),
                Err(error) => FilesError::damaged(file, error.to_string()),
            },
            error => FilesError::damaged(file, error.to_string()),
        }
    }
}
