//! A write-ahead log of idempotent records, in recycled segments, with group commit.
//!
//! [`Log::append`] copies a record into the page cache, where it survives the process; [`Log::wait_durable`] returns
//! when it survives a power loss, after one `fdatasync` for all waiting threads. [`Log::open`] finds the end that a
//! crash has left, and [`Log::scan`] reads the records again.
//!
//! ```
//! use std::sync::Arc;
//! use wollemi_log::{Change, Directory, Log, LogOptions, Needs};
//!
//! # let directory = tempfile::tempdir().expect("a directory");
//! # let path = directory.path();
//! # fn example(path: &std::path::Path) -> Result<(), wollemi_log::Error> {
//! let disk = Arc::new(Directory::open(path)?);
//! let log = Log::create(disk.clone(), 7, LogOptions::default())?;
//! let begin = log.begin();
//! let put = Change::Put { map: "stock", key: b"apples", value: b"12" };
//! let end = log.append(&[put])?;
//! log.wait_durable(end)?;
//! drop(log);
//!
//! let needs = Needs { keep: begin, check: begin, reach: begin, durable: begin };
//! let log = Log::open(disk, 7, needs, LogOptions::default())?;
//! let mut scan = log.scan(begin..log.appended())?;
//! while let Some(record) = scan.next()? {
//!     assert_eq!(record.changes.collect::<Vec<_>>(), [put]);
//! }
//! # Ok(())
//! # }
//! # example(path).expect("a log");
//! ```
//!
//! # Invariants of every log
//!
//! L1 A position ([`Lsn`]) is a number of bytes since the start of the log as it was created. Records lie one after
//!    the other; each states the new values of keys and maps, so that replaying it twice is the same as replaying it
//!    once.
//! L2 A record is present as a whole or absent, however many changes and segments it has.
//! L3 Once `wait_durable(end)` returns, every record up to `end` survives any crash. An appended record survives the
//!    end of the process.
//! L4 After a crash the log consists of everything appended up to some position: no record is missing in the middle,
//!    and none is added at the end. Bytes of a file's earlier use, of another log, or after an end that an earlier
//!    crash has left, are never taken for records: each fragment's checksum is keyed with the log's id and with the
//!    fragment's position (F1), and the fragment's header states the *incarnation* in which it was written. Each
//!    opening begins the next incarnation, by a mark that is durable before anything follows it.
//! L5 A record with a bad checksum marks the end of the log only if no later fragment or segment header proves that
//!    the record was durable (F3). Otherwise it is damaged, which is an error. Damage can be mistaken for a crash only
//!    in the records of the last two syncs, since a record that is stored during a sync does not yet state that the
//!    sync has succeeded. [`Needs::reach`] rules that out: a program that closes its log in order stores the result of
//!    the last [`Log::sync`].
//! L6 A failed sync is never repeated. If it was to make records durable, the log accepts no more, and the next
//!    opening rewrites those that were not known to be durable (O2).
//! L7 A failed append has changed nothing: all segments that it needs are made ready before (A2).
//!
//! # Modules
//!
//! | file | idea |
//! |---|---|
//! | `disk` | the directory's files, behind a trait: D1 to D4 |
//! | `change` | the contents of a record |
//! | `lsn`, `geometry` | positions, and how they are divided into segments |
//! | `fragment`, `segment` | the bytes of records and of files: F1 to F3, S1, S2 |
//! | `hash` | the hash of a body, which a fragment's checksum includes |
//! | `log` | the state that the parts below share: `tail`, `group`, `kept` |
//! | `append` | reserve and copy under one lock: A1 to A3 |
//! | `durable` | group commit: G1 to G3 |
//! | `make` | segments made ready ahead: M1, M2 |
//! | `keep` | dropping records and recycling segments, the limit: R1 to R3 |
//! | `create` | the first use of a log |
//! | `walk`, `open`, `scan` | reading: O1 to O4, B1 to B3 |
//! | `names` | directory syncs: a failure is reported to every thread whose changes of names it may concern |
//! | `unused` | which log a file belongs to; leftovers of an interrupted creation |
//! | `syncer` | the thread that syncs, within a bounded time, records that no thread waits for |
//!
//! Locks are taken in the order maker, tail; maker, segments; maker, pins; group, pins. The lock of the name syncs
//! comes last. The leader of a group holds no lock while it syncs.
//!
//! # Why a mapping
//!
//! Records are copied into a shared mapping of a preallocated, already written file: no system call for each record
//! (about 100 ns instead of 1,500 for 120 bytes), and `fdatasync` has no metadata to write. Groups then become
//! durable as fast as by `pwrite` or `O_DIRECT | O_DSYNC` (`examples/raw` measures all of them). Two conditions
//! preserve this speed. Pages are written and read one by one, since a store dirties a whole *folio* of the page
//! cache, and the file system would write a megabyte for each group. And blocks are allocated ahead, so that no store
//! finds the disk full.
//!
//! Not here: the meaning of records, checkpoints, and which writes a reader waits for; these belong to the database.

mod append;
mod change;
mod create;
pub mod disk;
mod durable;
mod error;
mod fragment;
mod geometry;
mod group;
mod hash;
mod keep;
mod kept;
mod lock;
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
mod tail;
mod unused;
mod version;
mod walk;

pub use change::{Change, Changes};
pub use disk::{Directory, Disk, DiskError, DiskFile, Mapping};
pub use error::Error;
pub use log::Log;
pub use lsn::Lsn;
pub use names::NameChanges;
pub use open::Needs;
pub use options::LogOptions;
pub use scan::{LogRecord, Scan};
pub use segment::is_segment;
pub use stats::{Histogram, LogStats};
pub use syncer::Syncer;
pub use unused::Remains;
