//! A write-ahead log of absolute statements, in recycled segments, with group commit.
//!
//! [`Log::append`] copies a record into the page cache, where it survives the process; [`Log::wait_durable`] returns
//! when it survives the loss of power, after one `fdatasync` for all threads that wait. [`Log::open`] finds the end that
//! a crash has left, and [`Log::scan`] reads the records again.
//!
//! ```
//! use std::sync::Arc;
//! use wollemi_log::{Change, Directory, Log, Needs, Options};
//!
//! # let directory = tempfile::tempdir().expect("a directory");
//! # let path = directory.path();
//! # fn example(path: &std::path::Path) -> Result<(), wollemi_log::Error> {
//! let disk = Arc::new(Directory::open(path)?);
//! let log = Log::create(disk.clone(), 7, Options::default())?;
//! let begin = log.begin();
//! let put = Change::Put { map: "stock", key: b"apples", value: b"12" };
//! let end = log.append(&[put])?;
//! log.wait_durable(end)?;
//! drop(log);
//!
//! let needs = Needs { keep: begin, check: begin, reach: begin, durable: begin };
//! let log = Log::open(disk, 7, needs, Options::default())?;
//! let mut scan = log.scan(begin..log.appended())?;
//! while let Some(record) = scan.next()? {
//!     assert_eq!(record.changes.collect::<Vec<_>>(), [put]);
//! }
//! # Ok(())
//! # }
//! # example(path).expect("a log");
//! ```
//!
//! # What is true of every log
//!
//! L1 A position ([`Lsn`]) is a number of bytes since the log's beginning. Records lie one after the other; each says
//!    what keys and maps shall be, so that carrying it out twice is carrying it out once.
//! L2 A record is whole or not there, however many changes and segments it has.
//! L3 What `wait_durable` has returned for is there after any crash, and all before it. An appended record is there
//!    after the end of the process.
//! L4 After a crash the log is what had been appended up to some position: nothing is missing in the middle, and nothing
//!    stands at its end that was not appended there. Bytes of a file's earlier use, of another log, or behind an end
//!    that an earlier crash has left, are never taken for records: each fragment's checksum is keyed with the log's id
//!    and its position (F1), and says the *incarnation* in which it was written. Each opening begins the next one, by a
//!    mark that is durable before anything follows it.
//! L5 A record that does not check is an end only if no fragment behind it says that it was durable (F3). Otherwise it
//!    is damage, which is an error. Damage looks like a crash only in the very last records, those that the last sync
//!    has made durable, unless the caller knows better ([`Needs::reach`]): a program that closes a log in order keeps
//!    what [`Log::sync`] returned.
//! L6 A sync that failed is never tried again. The log takes no more records, and the next opening writes again what was
//!    not known to be durable (O2).
//! L7 An append that fails has changed nothing: all segments that it needs are made ready before (A2).
//!
//! # Where things are
//!
//! | file | idea |
//! |---|---|
//! | `disk` | the directory's files, behind a trait: D1 to D4 |
//! | `change` | what a record says |
//! | `lsn` | positions, and how they are divided into segments |
//! | `fragment`, `segment` | the bytes of records and of files: F1 to F3, S1, S2 |
//! | `append` | reserve and copy under one lock: A1 to A3 |
//! | `group` | group commit: G1 to G3 |
//! | `make` | segments made ready ahead: M1, M2 |
//! | `keep` | the beginning, recycling, the limit |
//! | `walk`, `open`, `scan` | reading: O1 to O3 |
//! | `names` | syncs of the directory: a failed one has failed for all |
//! | `unused` | whose files they are, and what an interrupted creation leaves |
//! | `syncer` | the thread that syncs, within a bounded time, the records that no append waits for |
//!
//! Locks are taken in the order maker, tail; maker, segments; maker, pins; group, pins. The lock of the syncs
//! of names comes last. The leader of a group holds none while it syncs.
//!
//! # Why a mapping
//!
//! Records are copied into a shared mapping of a preallocated, already written file: no system call for each record
//! (about 100 ns instead of 1,500 for 120 bytes), and `fdatasync` has no metadata to write. Groups then become durable as
//! fast as by `pwrite` or `O_DIRECT | O_DSYNC` (`examples/raw` measures all of them). Two things keep that so. Pages
//! are written and read one by one, since a store makes a whole *folio* of the page cache dirty, and the file system
//! would write a megabyte for each group. And blocks are there before, so that no store finds the disk full.
//!
//! Not here: what the records mean, checkpoints, and for which writes a reader waits, which are the database's.

mod append;
mod change;
pub mod disk;
mod error;
mod fragment;
mod group;
mod keep;
mod log;
mod lsn;
mod make;
mod names;
mod open;
mod options;
mod scan;
mod segment;
mod stats;
mod syncer;
mod unused;
mod walk;

pub use change::{Change, Changes};
pub use disk::{Directory, Disk, DiskError, DiskFile, Mapping};
pub use error::Error;
pub use log::Log;
pub use lsn::Lsn;
pub use names::NameChanges;
pub use open::Needs;
pub use options::Options;
pub use scan::{Record, Scan};
pub use segment::is_segment;
pub use stats::{Histogram, Stats};
pub use syncer::Syncer;
pub use unused::Trace;
