//! A write-ahead log of absolute statements, in recycled segments, with group commit.

mod change;
pub mod disk;
mod error;
mod log;
mod lsn;
mod options;
mod segment;
mod stats;

pub use change::{Change, Changes};
pub use disk::{Directory, Disk, DiskError, DiskFile, Mapping};
pub use error::Error;
pub use log::{Log, Record, Scan, Syncer};
pub use lsn::Lsn;
pub use options::Options;
pub use stats::{Histogram, Stats};
