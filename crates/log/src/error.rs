//! The log's errors.

use crate::version::VERSION;
use crate::{DiskError, Lsn};
use std::sync::Arc;

/// Why a log operation failed. A failed append has appended nothing; after a failed sync, appended records may or may
/// not be durable.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no space for another segment. Appends succeed again when there is.
    #[error("the log needs another segment, and there is no space left for it: {0}")]
    DiskFull(#[source] DiskError),
    /// The log has reached its limit. Appends succeed again after [`drop_below`](crate::Log::drop_below).
    #[error("the log has reached its limit of {limit} bytes: a checkpoint must be taken first")]
    LogFull {
        /// [`LogOptions::limit`](crate::LogOptions::limit).
        limit: u64,
        /// The [room](crate::Log::room) that the record needs, in bytes.
        needed: u64,
    },
    /// The record would not fit into an empty log.
    #[error("a record of {bytes} bytes: the log's limit of {limit} bytes leaves room for {max}")]
    TooLarge {
        /// Bytes of the record.
        bytes: u64,
        /// [`LogOptions::limit`](crate::LogOptions::limit).
        limit: u64,
        /// Bytes that the record may take in the log, headers included.
        max: u64,
    },
    /// A name, a key or a value is longer than its length field allows.
    #[error("{what} of {bytes} bytes: the maximum is {max} bytes")]
    TooLong {
        /// The kind of string.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// The maximum length.
        max: usize,
    },
    /// A setting is out of range.
    #[error("{what} of {bytes} bytes: must be {least} to {max} bytes, and a segment's size a power of two")]
    Setting {
        /// The setting.
        what: &'static str,
        /// The requested value.
        bytes: u64,
        /// The minimum.
        least: u64,
        /// The maximum.
        max: u64,
    },
    /// The log has been opened 2^32 - 1 times, and its counter is exhausted.
    #[error("the log's open counter is exhausted: restore a backup into a new database")]
    Incarnations,
    /// A disk operation of the log failed, now or earlier: the log accepts no records until it is opened again.
    #[error("the log has failed and accepts no more records: {0}; open the database again")]
    Failed(Arc<str>),
    /// A disk operation failed while the log was created, opened, scanned or removed; or the system was short of
    /// memory or file descriptors when a segment was made, which may succeed later.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// The directory contains a log already.
    #[error("file '{file}': a log already exists")]
    Exists {
        /// One of its files.
        file: String,
    },
    /// The file is not a segment of a log.
    #[error("file '{file}': not a segment of a Wollemi log ({what})")]
    NotALog {
        /// The file's name.
        file: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The log belongs to another database.
    #[error("file '{file}': belongs to the log {found:032x}, but this database's log is {expected:032x}")]
    Foreign {
        /// The file's name.
        file: String,
        /// The id in the file.
        found: u128,
        /// The expected id.
        expected: u128,
    },
    /// The log was written by a newer program.
    #[error(
        "file '{file}': in format {version}, but this program reads formats up to {VERSION}: use a newer Wollemi"
    )]
    Newer {
        /// The file's name.
        file: String,
        /// The file's format.
        version: u32,
    },
    /// A required segment does not exist.
    #[error(
        "file '{file}': missing, although later segments exist or the log is needed up to {needed}: restore a backup"
    )]
    Missing {
        /// The file's name.
        file: String,
        /// Position up to which the log is needed.
        needed: Lsn,
    },
    /// A segment's header or length, or a durable record, is damaged.
    #[error("file '{file}': damaged at byte {at}: {what}")]
    Damaged {
        /// The file's name.
        file: String,
        /// Offset in the file, in bytes.
        at: u64,
        /// What is invalid.
        what: &'static str,
    },
    /// The log ends before a position that it must reach.
    #[error("file '{file}': the log ends at {end}, but is needed up to {needed}")]
    Ends {
        /// The file in which it ends.
        file: String,
        /// Its end.
        end: Lsn,
        /// The position that it must reach.
        needed: Lsn,
    },
    /// The position lies before the log's beginning, behind its end or behind its durable part, or no record begins
    /// there.
    #[error("position {lsn} of the log: {what}")]
    Position {
        /// The position.
        lsn: Lsn,
        /// What is wrong with it.
        what: &'static str,
    },
}
