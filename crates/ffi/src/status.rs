//! Status codes, and the details of the last failed call of a thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::io::ErrorKind;
use wollemi::{Error, FilesError, HeapError, IndexError, PoolError, PoolErrorKind};
use wollemi_status::*;

/// The result of a call. The numbers stay the same in all versions; new ones may be added. Below 16 nothing is wrong:
/// the result is "yes" or a plain "no". From 16 on the call has failed, and wollemi_message() says why.
#[allow(clippy::upper_case_acronyms)]
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum wollemi_status {
    /// Done.
    WOLLEMI_OK = 0,
    /// The key or map does not exist, or the cursor has reached its end.
    WOLLEMI_NOT_FOUND = 1,
    /// Nothing was changed, because the call's condition does not hold: an insert of a present key, an update of an
    /// absent one, a compare-and-swap or a batch with a different expectation.
    WOLLEMI_UNCHANGED = 2,
    /// The value is longer than the caller's buffer. Its length was returned.
    WOLLEMI_TOO_SMALL = 3,
    /// An argument is invalid: an unexpected NULL, text that is not UTF-8, an undefined number.
    WOLLEMI_ERROR_ARGUMENT = 16,
    /// The handle is closed, or of another kind.
    WOLLEMI_ERROR_HANDLE = 17,
    /// The handle is for one thread at a time, and another call is using it.
    WOLLEMI_ERROR_THREADS = 18,
    /// The library has a bug. Please report it, with the message.
    WOLLEMI_ERROR_BUG = 19,
    /// Another process, or another handle of this one, has the pool open.
    WOLLEMI_ERROR_BUSY = 20,
    /// The file does not exist.
    WOLLEMI_ERROR_MISSING = 21,
    /// The file is not a pool, or not a regular file.
    WOLLEMI_ERROR_NOT_A_POOL = 22,
    /// The file or a map in it has a newer format, or an index that this library does not include.
    WOLLEMI_ERROR_UNSUPPORTED = 23,
    /// The pool, its log or its checkpoint is damaged.
    WOLLEMI_ERROR_DAMAGED = 24,
    /// The file's permissions do not allow reading or writing it.
    WOLLEMI_ERROR_DENIED = 25,
    /// The file does not support the requested level.
    WOLLEMI_ERROR_LEVEL = 26,
    /// The machine stopped while the pool was open at level `process`: see wollemi_options_set_after_power_loss().
    WOLLEMI_ERROR_POWER_LOSS = 27,
    /// There is no room: on the disk, within the pool's size, or within a log's limit. Nothing was changed.
    WOLLEMI_ERROR_FULL = 28,
    /// The operating system has failed in another way.
    WOLLEMI_ERROR_SYSTEM = 29,
    /// A key, a value or a name is too long, or a name is empty.
    WOLLEMI_ERROR_LENGTH = 30,
    /// The call needs an order of keys, which the map's index lacks.
    WOLLEMI_ERROR_UNORDERED = 31,
    /// The database is opened read-only.
    WOLLEMI_ERROR_READ_ONLY = 32,
    /// The map has other handles, or a snapshot exists.
    WOLLEMI_ERROR_IN_USE = 33,
    /// The map is held by a different index than requested.
    WOLLEMI_ERROR_OTHER_INDEX = 34,
    /// The map belongs to a different database than the batch, the transaction or the snapshot.
    WOLLEMI_ERROR_OTHER_DATABASE = 35,
    /// Another writer has changed a key that the transaction has read. Nothing was changed. wollemi_conflict() returns
    /// the key.
    WOLLEMI_ERROR_CONFLICT = 36,
    /// A batch or transaction is committed, but not all of its changes could be made. The next opening makes the others
    /// if there is room; until then all writes fail with this status.
    WOLLEMI_ERROR_UNFINISHED = 37,
    /// The change was made, or seen, but may not survive a loss of power: the disk has failed. Only at level `disk`.
    WOLLEMI_ERROR_NOT_DURABLE = 38,
    /// The map holds values that were not written by the functions for expiring maps.
    WOLLEMI_ERROR_NOT_EXPIRING = 39,
    /// The snapshot has exceeded its memory limit, and can no longer be read.
    WOLLEMI_ERROR_SNAPSHOT = 40,
    /// Another failure. The message describes it.
    WOLLEMI_ERROR_OTHER = 41,
}

const ALL: [(wollemi_status, &CStr); 30] = [
    (WOLLEMI_OK, c"ok"),
    (WOLLEMI_NOT_FOUND, c"not found"),
    (WOLLEMI_UNCHANGED, c"unchanged"),
    (WOLLEMI_TOO_SMALL, c"buffer too small"),
    (WOLLEMI_ERROR_ARGUMENT, c"bad argument"),
    (WOLLEMI_ERROR_HANDLE, c"bad handle"),
    (WOLLEMI_ERROR_THREADS, c"handle in use by another call"),
    (WOLLEMI_ERROR_BUG, c"bug in the library"),
    (WOLLEMI_ERROR_BUSY, c"pool in use"),
    (WOLLEMI_ERROR_MISSING, c"no such file"),
    (WOLLEMI_ERROR_NOT_A_POOL, c"not a pool"),
    (WOLLEMI_ERROR_UNSUPPORTED, c"unsupported format or index"),
    (WOLLEMI_ERROR_DAMAGED, c"damaged"),
    (WOLLEMI_ERROR_DENIED, c"permission denied"),
    (WOLLEMI_ERROR_LEVEL, c"level not supported"),
    (WOLLEMI_ERROR_POWER_LOSS, c"machine stopped while open"),
    (WOLLEMI_ERROR_FULL, c"full"),
    (WOLLEMI_ERROR_SYSTEM, c"system error"),
    (WOLLEMI_ERROR_LENGTH, c"too long or empty"),
    (WOLLEMI_ERROR_UNORDERED, c"index without order"),
    (WOLLEMI_ERROR_READ_ONLY, c"read only"),
    (WOLLEMI_ERROR_IN_USE, c"in use"),
    (WOLLEMI_ERROR_OTHER_INDEX, c"other index"),
    (WOLLEMI_ERROR_OTHER_DATABASE, c"other database"),
    (WOLLEMI_ERROR_CONFLICT, c"conflict"),
    (WOLLEMI_ERROR_UNFINISHED, c"committed but unfinished"),
    (WOLLEMI_ERROR_NOT_DURABLE, c"not known to be durable"),
    (WOLLEMI_ERROR_NOT_EXPIRING, c"not an expiring map"),
    (WOLLEMI_ERROR_SNAPSHOT, c"snapshot outgrown"),
    (WOLLEMI_ERROR_OTHER, c"other error"),
];

/// Why a call failed.
#[derive(Debug)]
pub struct Failure {
    pub status: wollemi_status,
    message: String,
    conflict: Option<(CString, Vec<u8>)>,
}

impl Failure {
    pub fn new(status: wollemi_status, message: impl Into<String>) -> Failure {
        Failure {
            status,
            message: message.into(),
            conflict: None,
        }
    }

    pub fn argument(message: impl Into<String>) -> Failure {
        Failure::new(WOLLEMI_ERROR_ARGUMENT, message)
    }
}

/// Converts a callback's result to the result of the call that ran it. Keeps the details of a call that failed inside
/// the callback.
pub fn passed_on(code: c_int) -> Result<wollemi_status, Failure> {
    let known = ALL.iter().find(|(status, _)| *status as c_int == code);
    known.map_or_else(
        || {
            Err(Failure::argument(format!(
                "the callback returned {code}, which is not a status"
            )))
        },
        |(status, _)| Ok(*status),
    )
}

/// Returns a C string, cut at the first inner NUL.
pub fn c_string(text: impl Into<Vec<u8>>) -> CString {
    let mut bytes = text.into();
    if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
        bytes.truncate(end);
    }
    CString::new(bytes).unwrap_or_default()
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let (status, message) = (of(&error), error.to_string());
        let conflict = match error {
            Error::Conflict { map, key } => Some((c_string(map), key)),
            _ => None,
        };
        Failure {
            status,
            message,
            conflict,
        }
    }
}

fn of(error: &Error) -> wollemi_status {
    match error {
        Error::Pool(error) => of_pool(error),
        Error::Heap(error) => of_heap(error),
        // The log refuses writes at its limit, on a full disk, or after it has failed.
        Error::Index(IndexError::Refused(_)) => by_kind(error.io_kind()),
        Error::Index(error) => of_index(error),
        Error::Files(FilesError::NeedsRebuild(_)) => WOLLEMI_ERROR_POWER_LOSS,
        Error::Files(_) => by_kind(error.io_kind()),
        Error::InUse | Error::MapInUse(_) | Error::MapExists(_) => WOLLEMI_ERROR_IN_USE,
        Error::OtherKind { .. } | Error::LeftOut { .. } => WOLLEMI_ERROR_UNSUPPORTED,
        Error::OtherIndex { .. } => WOLLEMI_ERROR_OTHER_INDEX,
        Error::OtherDatabase(_) => WOLLEMI_ERROR_OTHER_DATABASE,
        Error::Conflict { .. } => WOLLEMI_ERROR_CONFLICT,
        Error::Unfinished(_) => WOLLEMI_ERROR_UNFINISHED,
        Error::NotExpiring(_) => WOLLEMI_ERROR_NOT_EXPIRING,
        Error::SnapshotOutgrown(_) => WOLLEMI_ERROR_SNAPSHOT,
        Error::MapName(_) => WOLLEMI_ERROR_LENGTH,
        Error::Backup(_) | Error::Thread(_) => WOLLEMI_ERROR_SYSTEM,
        _ => WOLLEMI_ERROR_OTHER,
    }
}

fn of_pool(error: &PoolError) -> wollemi_status {
    match &error.kind {
        PoolErrorKind::Foreign { .. } | PoolErrorKind::Empty | PoolErrorKind::NotAFile => {
            WOLLEMI_ERROR_NOT_A_POOL
        }
        PoolErrorKind::Truncated { .. } | PoolErrorKind::Damaged { .. } => WOLLEMI_ERROR_DAMAGED,
        PoolErrorKind::Newer { .. } => WOLLEMI_ERROR_UNSUPPORTED,
        PoolErrorKind::Busy { .. } => WOLLEMI_ERROR_BUSY,
        PoolErrorKind::Missing => WOLLEMI_ERROR_MISSING,
        PoolErrorKind::Denied => WOLLEMI_ERROR_DENIED,
        PoolErrorKind::NotPower => WOLLEMI_ERROR_LEVEL,
        PoolErrorKind::Lost => WOLLEMI_ERROR_POWER_LOSS,
        PoolErrorKind::Full { .. } | PoolErrorKind::NoSpace { .. } => WOLLEMI_ERROR_FULL,
        PoolErrorKind::PageSize(_) => WOLLEMI_ERROR_ARGUMENT,
        PoolErrorKind::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            WOLLEMI_ERROR_MISSING
        }
        PoolErrorKind::Io { .. } => WOLLEMI_ERROR_SYSTEM,
        _ => WOLLEMI_ERROR_OTHER,
    }
}

fn of_heap(error: &HeapError) -> wollemi_status {
    match error {
        HeapError::Damaged { .. } => WOLLEMI_ERROR_DAMAGED,
        HeapError::Full { .. } | HeapError::TooManyRoots(_) => WOLLEMI_ERROR_FULL,
        HeapError::NameTooLong(_) => WOLLEMI_ERROR_LENGTH,
        HeapError::UnknownKind { .. } => WOLLEMI_ERROR_UNSUPPORTED,
        HeapError::Pool(error) => of_pool(error),
        HeapError::Thread(_) => WOLLEMI_ERROR_SYSTEM,
        _ => WOLLEMI_ERROR_OTHER,
    }
}

fn of_index(error: &IndexError) -> wollemi_status {
    match error {
        IndexError::KeyTooLong(_) | IndexError::ValueTooLong(_) => WOLLEMI_ERROR_LENGTH,
        IndexError::Unordered => WOLLEMI_ERROR_UNORDERED,
        IndexError::Unfinished => WOLLEMI_ERROR_UNFINISHED,
        IndexError::ReadOnly => WOLLEMI_ERROR_READ_ONLY,
        IndexError::NotDurable(_) => WOLLEMI_ERROR_NOT_DURABLE,
        IndexError::Heap(error) => of_heap(error),
        _ => WOLLEMI_ERROR_OTHER,
    }
}

/// Maps an error of the log and the files beside a pool to a status.
fn by_kind(kind: ErrorKind) -> wollemi_status {
    match kind {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => WOLLEMI_ERROR_FULL,
        ErrorKind::InvalidData => WOLLEMI_ERROR_DAMAGED,
        ErrorKind::NotFound => WOLLEMI_ERROR_MISSING,
        ErrorKind::Unsupported => WOLLEMI_ERROR_UNSUPPORTED,
        ErrorKind::InvalidInput => WOLLEMI_ERROR_LENGTH,
        ErrorKind::PermissionDenied => WOLLEMI_ERROR_DENIED,
        _ => WOLLEMI_ERROR_SYSTEM,
    }
}

/// The details of the last call that failed on this thread.
#[derive(Default)]
struct Last {
    message: CString,
    conflict: Option<(CString, Vec<u8>)>,
}

thread_local! {
    static LAST: RefCell<Last> = RefCell::default();
}

/// Runs `run` with the map and the key of this thread's last failed call, if that was a conflict.
pub fn with_conflict<T>(run: impl FnOnce(Option<&(CString, Vec<u8>)>) -> T) -> T {
    LAST.with(|last| run(last.borrow().conflict.as_ref()))
}

/// Records the details of a failure, and returns its status.
pub fn record_failure(failure: Failure) -> wollemi_status {
    let Failure {
        status,
        message,
        conflict,
    } = failure;
    let message = c_string(message.replace('\0', "\\0"));
    // A thread that is exiting has no caller left to report to.
    let _ = LAST.try_with(|last| *last.borrow_mut() = Last { message, conflict });
    status
}

/// Returns why this thread's last failed call has failed: a sentence in English that names the objects involved. Empty
/// if none has failed. Valid until the next failure on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn wollemi_message() -> *const c_char {
    LAST.try_with(|last| last.borrow().message.as_ptr())
        .unwrap_or(c"".as_ptr())
}

/// Returns the name of a status in a few words: "conflict" for WOLLEMI_ERROR_CONFLICT. Never NULL; the string is
/// static.
#[unsafe(no_mangle)]
pub extern "C" fn wollemi_status_name(status: c_int) -> *const c_char {
    let found = ALL.iter().find(|(known, _)| *known as c_int == status);
    found.map_or(c"unknown status", |(_, name)| name).as_ptr()
}
