//! Wollemi: an embedded, ordered, persistent key-value store that is up again the instant it is reopened, after a
//! clean close as well as after `kill -9`.
//!
//! A [`Db`] is one file, the pool. It holds named [`Map`]s from keys to values, both arbitrary bytes. Every operation
//! is durable at the pool's level when it returns: by default it survives the death of the process but not a loss of
//! power (see below). With the default index, opening then replays no log and loads nothing.
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! # let path = dir.path().join("shop.pool");
//! let db = wollemi::Db::open(&path)?;
//! let map = db.map("prices")?;
//! map.upsert("apple", "0.30")?;
//! map.upsert("apricot", "0.45")?;
//!
//! assert_eq!(map.get("apple")?, Some(b"0.30".to_vec()));
//! for entry in map.prefix("ap") {
//!     let (key, value) = entry?;
//!     println!("{} {}", String::from_utf8_lossy(&key), String::from_utf8_lossy(&value));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A transaction reads and changes several keys, of any maps, atomically and in isolation:
//!
//! ```
//! # let db = wollemi::Db::anonymous()?;
//! # let (seats, bookings) = (db.map("seats")?, db.map("bookings")?);
//! # seats.upsert("7a", "free")?;
//! let booked = db.transact(|tx| {
//!     let is_free = tx.get(&seats, "7a")?.as_deref() == Some(b"free");
//!     if is_free {
//!         tx.upsert(&seats, "7a", "taken")?;
//!         tx.upsert(&bookings, "alice", "7a")?;
//!     }
//!     Ok::<_, wollemi::Error>(is_free)
//! })?;
//! assert!(booked);
//! # Ok::<(), wollemi::Error>(())
//! ```
//!
//! Transactions are optimistic: a running one holds no lock, and [`Db::transact`] runs it again if another writer
//! changes something it has read before it commits. A [`Batch`] changes keys without reading them first. A [`Snapshot`]
//! reads all maps as they were at one moment, for as long as it is kept.
//!
//! The pool's [`Level`] says what a crash may lose. At `process`, which any file supports, everything acknowledged
//! survives the death of the process. At `disk` it also survives a loss of power: a log and checkpoints beside the pool
//! hold it, and every write waits for the log's sync (unless [`Durability`] says otherwise). At `power`, which needs
//! persistent memory mapped with `MAP_SYNC`, it survives both without a log. Request the level you need with
//! [`Options::level`]: opening fails where it is not available.
//!
//! The index that holds a map is chosen when the map is created ([`Options::index`], [`Db::map_with`]); the pool
//! records it.
//!
//! [`indexes`] lists the indexes that can hold a map. Below this crate: their contract (`wollemi-index`),
//! the persistent heap (`wollemi-heap`) and persistent memory itself (`wollemi-pmem`).

mod backup;
mod bounds;
mod build;
#[cfg(test)]
mod damaged;
mod db;
mod disk;
#[cfg(feature = "disks")]
mod disks;
#[cfg(feature = "doubles")]
mod doubles;
mod entry;
mod error;
mod expiry;
mod files_error;
pub mod indexes;
mod io_error;
mod level;
mod map;
#[cfg(doctest)]
mod misuse;
mod options;
mod read;
mod report;
mod stream;
mod txn;
#[cfg(feature = "typed")]
mod typed;
mod write;

pub use backup::Copied;
pub use bounds::{KeyRange, within};
pub use db::Db;
pub use disk::progress::{OnRebuild, Rebuilding};
#[cfg(feature = "disks")]
pub use disks::OnDisk;
pub use entry::Entry;
pub use error::{Error, MAX_NAME};
pub use expiry::expiring::{Expiring, WithLife};
pub use expiry::iter::ExpiringIter;
pub use expiry::sweeper::Sweeper;
pub use expiry::view::ExpiringView;
pub use expiry::watch::ExpiringWatch;
pub use files_error::FilesError;
pub use heap::Error as HeapError;
pub use index::Error as IndexError;
pub use index::Merges;
pub use index::{Action, Edit, Edits, Faults, Guard, Index, MAX_KEY, MAX_VALUE, Value};
pub use index::{Direction, Remove, Upsert};
pub use index::{Pair, Pairs, Parts, Sorted};
pub use indexes::{IndexKind, Unknown as UnknownIndex};
pub use level::{Level, UnknownLevel};
pub use map::Map;
pub use options::Options;
pub use pmem::pool::{AfterPowerLoss, Error as PoolError, ErrorKind as PoolErrorKind};
pub use pmem::{Hardware, Media};
pub use read::iter::Iter;
pub use read::reader::{Range, Reader};
pub use read::snapshot::{Snapshot, View, ViewIter};
pub use read::walk::{Swept, Walked};
pub use report::{
    Check, Checkpoint, HeapCheck, LogStats, MapCheck, MapInfo, Rebuilt, Recovery, RecoveryState, Space, Stats,
};
pub use txn::batch::Batch;
pub use txn::cursor::TransactionCursor;
pub use txn::overlay::{Overlay, Visit};
pub use txn::range::TransactionRange;
pub use txn::transaction::Transaction;
#[cfg(feature = "typed")]
pub use typed::{Key, KeyBytes, TypedIter, TypedMap, TypedView, TypedViewIter, TypedWatch};
#[cfg(feature = "derive")]
pub use wollemi_derive::Key;
pub use write::journal::Durability;
pub use write::retry::Retry;
pub use write::turn::{PausedTurn, Turn};
pub use write::watch::{Event, Watch};

/// Compiles the README's example.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
