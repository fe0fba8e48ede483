//! Converts the database's errors to Python exceptions.

use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::io::ErrorKind;
use wollemi::{Error, FilesError, HeapError, IndexError, PoolError, PoolErrorKind};

create_exception!(
    wollemi,
    WollemiError,
    PyException,
    "The base class of the database's errors."
);
create_exception!(
    wollemi,
    ConflictError,
    WollemiError,
    "A key that a transaction has read was changed: see `map` and `key`."
);
create_exception!(
    wollemi,
    DamagedError,
    WollemiError,
    "The pool, its log or its checkpoint is damaged, or the file is not a pool."
);
create_exception!(
    wollemi,
    PowerLossError,
    WollemiError,
    "The machine stopped while the pool was open at level `process`."
);
create_exception!(
    wollemi,
    FullError,
    WollemiError,
    "There is no room. Nothing was changed."
);
create_exception!(
    wollemi,
    ReadOnlyError,
    WollemiError,
    "The database is opened read-only."
);
create_exception!(
    wollemi,
    BusyError,
    WollemiError,
    "Another process, or this one, has the pool open."
);
create_exception!(
    wollemi,
    InUseError,
    WollemiError,
    "The map has other handles, or a snapshot exists."
);
create_exception!(
    wollemi,
    NotDurableError,
    WollemiError,
    "The change may not survive a loss of power."
);
create_exception!(
    wollemi,
    ClosedError,
    WollemiError,
    "The object, or the database, is closed."
);

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("WollemiError", py.get_type::<WollemiError>())?;
    module.add("ConflictError", py.get_type::<ConflictError>())?;
    module.add("DamagedError", py.get_type::<DamagedError>())?;
    module.add("PowerLossError", py.get_type::<PowerLossError>())?;
    module.add("FullError", py.get_type::<FullError>())?;
    module.add("ReadOnlyError", py.get_type::<ReadOnlyError>())?;
    module.add("BusyError", py.get_type::<BusyError>())?;
    module.add("InUseError", py.get_type::<InUseError>())?;
    module.add("NotDurableError", py.get_type::<NotDurableError>())?;
    module.add("ClosedError", py.get_type::<ClosedError>())
}

pub fn closed() -> PyErr {
    ClosedError::new_err("closed: this object or its database is closed")
}

pub fn of(py: Python<'_>, error: Error) -> PyErr {
    let (text, kind) = (error.to_string(), error.io_kind());
    match error {
        Error::Pool(error) => of_pool(error, text),
        Error::Heap(error) => of_heap(&error, text),
        // The log refuses writes at its limit, on a full disk, or after it has failed.
        Error::Index(IndexError::Refused(_)) => by_kind(kind, text),
        Error::Index(error) => of_index(&error, text),
        Error::Files(FilesError::NeedsRebuild(_)) => PowerLossError::new_err(text),
        Error::Files(_) => by_kind(kind, text),
        Error::Conflict { map, key } => conflict(py, text, &map, &key),
        Error::InUse | Error::MapInUse(_) => InUseError::new_err(text),
        Error::OtherIndex { .. } | Error::OtherDatabase(_) | Error::MapName(_) | Error::NotExpiring(_) => {
            PyValueError::new_err(text)
        }
        Error::Backup(error) | Error::Thread(error) => PyOSError::new_err(error.to_string()),
        _ => WollemiError::new_err(text),
    }
}

fn conflict(py: Python<'_>, text: String, map: &str, key: &[u8]) -> PyErr {
    let error = ConflictError::new_err(text);
    let value = error.value(py);
    // Setting attributes cannot fail for an exception; if it does, the text has the same information.
    let _ = value.setattr("map", map);
    let _ = value.setattr("key", PyBytes::new(py, key));
    error
}

fn of_pool(PoolError { kind, .. }: PoolError, text: String) -> PyErr {
    match kind {
        PoolErrorKind::Foreign { .. }
        | PoolErrorKind::Empty
        | PoolErrorKind::Truncated { .. }
        | PoolErrorKind::Damaged { .. } => DamagedError::new_err(text),
        PoolErrorKind::Busy { .. } => BusyError::new_err(text),
        PoolErrorKind::Missing => pyo3::exceptions::PyFileNotFoundError::new_err(text),
        PoolErrorKind::Denied => pyo3::exceptions::PyPermissionError::new_err(text),
        PoolErrorKind::NotAFile => PyOSError::new_err(text),
        PoolErrorKind::Lost => PowerLossError::new_err(text),
        PoolErrorKind::Full { .. } | PoolErrorKind::NoSpace { .. } => FullError::new_err(text),
        PoolErrorKind::PageSize(_) => PyValueError::new_err(text),
        PoolErrorKind::Io { ref source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            pyo3::exceptions::PyFileNotFoundError::new_err(text)
        }
        PoolErrorKind::Io { .. } => PyOSError::new_err(text),
        _ => WollemiError::new_err(text),
    }
}

fn of_heap(error: &HeapError, text: String) -> PyErr {
    match error {
        HeapError::Damaged { .. } => DamagedError::new_err(text),
        HeapError::Full { .. } | HeapError::TooManyRoots(_) => FullError::new_err(text),
        HeapError::NameTooLong(_) => PyValueError::new_err(text),
        _ => WollemiError::new_err(text),
    }
}

fn of_index(error: &IndexError, text: String) -> PyErr {
    match error {
        IndexError::KeyTooLong(_) | IndexError::ValueTooLong(_) | IndexError::Unordered => {
            PyValueError::new_err(text)
        }
        IndexError::ReadOnly => ReadOnlyError::new_err(text),
        IndexError::NotDurable(_) => NotDurableError::new_err(text),
        IndexError::Heap(error) => of_heap(error, text),
        _ => WollemiError::new_err(text),
    }
}

/// Maps an error of the log and the files beside a pool.
fn by_kind(kind: ErrorKind, text: String) -> PyErr {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => FullError::new_err(text),
        ErrorKind::InvalidData => DamagedError::new_err(text),
        ErrorKind::NotFound => pyo3::exceptions::PyFileNotFoundError::new_err(text),
        ErrorKind::InvalidInput => PyValueError::new_err(text),
        ErrorKind::PermissionDenied => pyo3::exceptions::PyPermissionError::new_err(text),
        _ => WollemiError::new_err(text),
    }
}
