//! The log's errors.

use crate::segment::VERSION;
use crate::{DiskError, Lsn};
use std::sync::Arc;

/// Why a call of the log failed. Nothing was appended then.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no room for another segment. Works again when there is room.
    #[error("the log needs another segment, and there is no space left for it: {0}")]
    DiskFull(#[source] DiskError),
    /// The log has reached its limit. Works again after [`drop_below`](crate::Log::drop_below).
    #[error("the log has reached its limit of {limit} bytes: a checkpoint must be taken first")]
    LogFull {
        /// [`Options::limit`](crate::Options::limit).
        limit: u64,
    },
    /// The record would not fit into an empty log.
    #[error("a record of {bytes} bytes: the log's limit of {limit} bytes leaves room for {max}")]
    TooLarge {
        /// Bytes of the record.
        bytes: u64,
        /// [`Options::limit`](crate::Options::limit).
        limit: u64,
        /// Bytes of the largest record.
        max: u64,
    },
    /// A name or a key is longer than its length field can tell.
    #[error("{what} of {bytes} bytes: the longest has {max} bytes")]
    TooLong {
        /// What it is.
        what: &'static str,
        /// Its length.
        bytes: usize,
        /// What fits.
        max: usize,
    },
    /// A setting is out of its range.
    #[error("{what} of {bytes} bytes: it has {least} to {max} bytes, and a segment's size is a power of two")]
    Setting {
        /// The setting.
        what: &'static str,
        /// What was asked for.
        bytes: u64,
        /// The least.
        least: u64,
        /// The most.
        max: u64,
    },
    /// It was opened 2^32 - 1 times.
    #[error("the log can be opened no more often: restore a backup into a new database")]
    Incarnations,
    /// A write or a sync of the log failed earlier, or now: the log takes nothing more until it is opened anew.
    #[error("the log takes no more records, since it failed: {0}; open the database again")]
    Failed(Arc<str>),
    /// The disk refused while the log was created, opened or scanned.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// There is a log in the directory already.
    #[error("file '{file}': there is a log already")]
    Exists {
        /// One of its files.
        file: String,
    },
    /// The file is no segment of a log.
    #[error("file '{file}': not a segment of a Wollemi log ({what})")]
    NotALog {
        /// The file's name.
        file: String,
        /// What is wrong.
        what: &'static str,
    },
    /// The log belongs to another database.
    #[error("file '{file}': belongs to the log {found:032x}, and this database's log is {expected:032x}")]
    Foreign {
        /// The file's name.
        file: String,
        /// The id in the file.
        found: u128,
        /// The id asked for.
        expected: u128,
    },
    /// The log was written by a later program.
    #[error(
        "file '{file}': written in format {version}, and this program reads formats up to {VERSION}: use a newer Wollemi"
    )]
    Newer {
        /// The file's name.
        file: String,
        /// The file's format.
        version: u32,
    },
    /// A segment that must be there is not.
    #[error("file '{file}': missing, and the log goes on behind it or is needed up to {needed}")]
    Missing {
        /// The file's name.
        file: String,
        /// Up to where the log is known to have been durable.
        needed: Lsn,
    },
    /// A record that was durable is not what was written.
    #[error("file '{file}': damaged at byte {at}: {what}")]
    Damaged {
        /// The file's name.
        file: String,
        /// Where, in bytes from the file's start.
        at: u64,
        /// What does not make sense.
        what: &'static str,
    },
    /// The log ends before a position up to which it must reach.
    #[error("file '{file}': the log ends at {end}, and it is needed up to {needed}")]
    Ends {
        /// The file in which it ends.
        file: String,
        /// Where it ends.
        end: Lsn,
        /// Where it must not end before.
        needed: Lsn,
    },
    /// The position lies in no segment that is kept, or not at the beginning of a record.
    #[error("position {lsn} of the log: {what}")]
    Position {
        /// The position.
        lsn: Lsn,
        /// What is wrong with it.
        what: &'static str,
    },
}
