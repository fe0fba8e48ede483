//! Conversion of the database's errors to `std::io::Error`, for callers whose functions return it.

use crate::{Error, FilesError, HeapError, IndexError, PoolError, PoolErrorKind};
use std::io::{self, ErrorKind};

/// Wraps the database's error in one of the matching kind; [`io::Error::downcast`] returns it.
///
/// ```
/// use std::io;
///
/// fn price(path: &std::path::Path) -> io::Result<Option<Vec<u8>>> {
///     let db = wollemi::Options::new().create(false).open(path)?;
///     Ok(db.map("prices")?.get("apple")?)
/// }
///
/// let missing = price("/no/such/file".as_ref()).expect_err("there is no such file");
/// assert_eq!(missing.kind(), io::ErrorKind::NotFound);
/// assert!(matches!(missing.downcast::<wollemi::Error>(), Ok(wollemi::Error::Pool(_))));
/// ```
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::new(error.io_kind(), error)
    }
}

impl Error {
    /// Returns the kind of the [`io::Error`] made from this error, for callers that choose a reaction by kind.
    /// `StorageFull` and `QuotaExceeded`: no room. `InvalidData`: something is damaged or foreign. `NotFound`: a file
    /// is missing. `Unsupported`: this build cannot read the pool; use another version or build.
    pub fn io_kind(&self) -> ErrorKind {
        match self {
            Error::Pool(error) => of_pool(error),
            Error::Heap(error) => of_heap(error),
            Error::Index(error) => of_index(error),
            Error::Files(error) => of_files(error),
            Error::InUse | Error::HoldsReader | Error::MapInUse(_) | Error::Conflict { .. } => {
                ErrorKind::ResourceBusy
            }
            Error::OtherKind { .. } | Error::LeftOut { .. } | Error::MapNotText(_) => ErrorKind::Unsupported,
            Error::OtherIndex { .. } | Error::OtherDatabase(_) | Error::MapName(_) => ErrorKind::InvalidInput,
            Error::MapExists(_) => ErrorKind::AlreadyExists,
            Error::NotExpiring(_) | Error::NotBackup(_) => ErrorKind::InvalidData,
            #[cfg(feature = "typed")]
            Error::Value { .. } => ErrorKind::InvalidData,
            Error::SnapshotOutgrown(_) | Error::OverlayOutgrown(_) => ErrorKind::QuotaExceeded,
            Error::Backup(error) | Error::Thread(error) => error.kind(),
            // Not the kind of the inner error, because the changes are committed.
            Error::Unfinished(_) => ErrorKind::Other,
        }
    }
}

fn of_files(error: &FilesError) -> ErrorKind {
    match error {
        FilesError::Disk(error) => error.source.kind(),
        FilesError::Log(error) => of_log(error),
        FilesError::Newer { .. } => ErrorKind::Unsupported,
        FilesError::Missing { .. }
        | FilesError::NoCheckpoint(_)
        | FilesError::PoolMissing(_)
        | FilesError::Unmade(_)
        | FilesError::Bereft { .. } => ErrorKind::NotFound,
        FilesError::NeedsRebuild(_) => ErrorKind::InvalidData,
        FilesError::Stopped => ErrorKind::Interrupted,
        FilesError::Damaged { .. } | FilesError::Foreign { .. } => ErrorKind::InvalidData,
    }
}

fn of_log(error: &log::Error) -> ErrorKind {
    match error {
        log::Error::Disk(error) | log::Error::DiskFull(error) => error.source.kind(),
        log::Error::LogFull { .. } | log::Error::TooLarge { .. } => ErrorKind::QuotaExceeded,
        log::Error::TooLong { .. } => ErrorKind::InvalidInput,
        log::Error::Newer { .. } => ErrorKind::Unsupported,
        log::Error::Failed(_) => ErrorKind::Other,
        _ => ErrorKind::InvalidData,
    }
}

fn of_pool(error: &PoolError) -> ErrorKind {
    match &error.kind {
        PoolErrorKind::Foreign { .. }
        | PoolErrorKind::Empty
        | PoolErrorKind::Truncated { .. }
        | PoolErrorKind::Damaged { .. }
        | PoolErrorKind::Lost => ErrorKind::InvalidData,
        PoolErrorKind::Newer { .. } | PoolErrorKind::NotPower => ErrorKind::Unsupported,
        PoolErrorKind::Busy { .. } => ErrorKind::ResourceBusy,
        PoolErrorKind::Exists => ErrorKind::AlreadyExists,
        PoolErrorKind::Missing => ErrorKind::NotFound,
        PoolErrorKind::NotAFile | PoolErrorKind::PageSize(_) => ErrorKind::InvalidInput,
        PoolErrorKind::Denied => ErrorKind::PermissionDenied,
        PoolErrorKind::Full { .. } | PoolErrorKind::NoSpace { .. } => ErrorKind::StorageFull,
        PoolErrorKind::Io { source, .. } => source.kind(),
        _ => ErrorKind::Other,
    }
}

fn of_heap(error: &HeapError) -> ErrorKind {
    match error {
        HeapError::Damaged { .. } => ErrorKind::InvalidData,
        HeapError::Full { .. } | HeapError::TooManyRoots(_) => ErrorKind::StorageFull,
        HeapError::RootExists(_) => ErrorKind::AlreadyExists,
        HeapError::NameTooLong(_) => ErrorKind::InvalidInput,
        HeapError::UnknownKind { .. } => ErrorKind::Unsupported,
        HeapError::Pool(error) => of_pool(error),
        HeapError::Thread(error) => error.kind(),
        _ => ErrorKind::Other,
    }
}

fn of_index(error: &IndexError) -> ErrorKind {
    match error {
        IndexError::KeyTooLong(_) | IndexError::ValueTooLong(_) => ErrorKind::InvalidInput,
        IndexError::ReadOnly => ErrorKind::ReadOnlyFilesystem,
        IndexError::Heap(error) => of_heap(error),
        IndexError::Refused(error) => error.downcast_ref().map_or(ErrorKind::Other, of_log),
        _ => ErrorKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Db, Options};

    fn io_kind<T>(result: Result<T, Error>) -> Option<ErrorKind> {
        result.err().map(|error| io::Error::from(error).kind())
    }

    #[test]
    fn errors_have_the_kind_that_fits() -> Result<(), Box<dyn std::error::Error>> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("a.pool");
        let missing = Options::new().create(false).open(&path);
        assert_eq!(io_kind(missing), Some(ErrorKind::NotFound));
        assert_eq!(io_kind(Db::open(dir.path())), Some(ErrorKind::InvalidInput));

        let foreign = dir.path().join("foreign");
        std::fs::write(&foreign, "something else")?;
        assert_eq!(io_kind(Db::open(&foreign)), Some(ErrorKind::InvalidData));

        let db = Db::open(&path)?;
        let map = db.map("m")?;
        assert_eq!(io_kind(Db::open(&path)), Some(ErrorKind::ResourceBusy));
        assert_eq!(io_kind(db.map("")), Some(ErrorKind::InvalidInput));
        let too_long = map.upsert([0; crate::MAX_KEY + 1], "");
        assert_eq!(io_kind(too_long), Some(ErrorKind::InvalidInput));
        drop((map, db));

        let map = Options::new().read_only(true).open(&path)?.map("m")?;
        let read_only = map.upsert("key", "value");
        assert_eq!(io_kind(read_only), Some(ErrorKind::ReadOnlyFilesystem));

        let small = Options::new().max_size(64 << 20).anonymous()?.map("m")?;
        let full = (0..100u8).try_for_each(|i| small.upsert([i], vec![i; 1 << 20]));
        assert_eq!(io_kind(full), Some(ErrorKind::StorageFull));
        Ok(())
    }

    /// A refusal by the log means either no room or a failed log.
    #[test]
    fn refusals_of_the_log_are_told_apart() {
        let refused = |error: log::Error| Error::Index(IndexError::Refused(Box::new(error))).io_kind();
        assert_eq!(
            refused(log::Error::LogFull { limit: 1, needed: 2 }),
            ErrorKind::QuotaExceeded
        );
        assert_eq!(
            refused(log::Error::Failed("a sync has failed".into())),
            ErrorKind::Other
        );
    }

    /// The database's error can be recovered whole, with its text.
    #[test]
    fn the_error_is_inside() {
        let error = io::Error::from(Error::MapExists("m".into()));
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!(error.to_string(), "map 'm' already exists");
        assert!(matches!(error.downcast::<Error>(), Ok(Error::MapExists(name)) if name == "m"));
    }
}
