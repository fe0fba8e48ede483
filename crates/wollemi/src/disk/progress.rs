//! The progress of a rebuild, and its reports.

use crate::report::Rebuilt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

/// Progress of a rebuild.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Rebuilding {
    /// Entries of the checkpoint loaded so far; removed keys count.
    pub entries: u64,
    /// All entries of the checkpoint.
    pub entries_in_all: u64,
    /// Bytes of the log replayed so far.
    pub log: u64,
    /// Bytes of the log to replay in all.
    pub log_in_all: u64,
    /// Whether the pool is complete, and in its place: only in the last report.
    pub is_done: bool,
}

/// Called with the progress of a rebuild, by several threads.
pub type OnRebuild = Arc<dyn Fn(&Rebuilding) + Send + Sync>;

/// Maximum number of entries between two progress reports of a part of a map.
pub(crate) const STRIDE: u64 = 16 << 10;

/// Bytes of the log, or of a part's entries, between two progress reports.
pub(crate) const BYTES_STRIDE: u64 = 1 << 20;

/// The progress of a rebuild, for the callback.
pub(crate) struct Progress {
    pub entries: AtomicU64,
    pub log: AtomicU64,
    pub entries_in_all: u64,
    pub log_in_all: u64,
    pub report: Option<OnRebuild>,
    pub begun: Instant,
}

impl Progress {
    pub fn report(&self) {
        if let Some(report) = &self.report {
            report(&Rebuilding {
                entries: self.entries.load(Relaxed),
                entries_in_all: self.entries_in_all,
                log: self.log.load(Relaxed),
                log_in_all: self.log_in_all,
                is_done: false,
            });
        }
    }

    /// Reports that the rebuilt pool is in its place.
    pub fn report_done(&self) -> Rebuilt {
        if let Some(report) = &self.report {
            report(&Rebuilding {
                entries: self.entries_in_all,
                entries_in_all: self.entries_in_all,
                log: self.log_in_all,
                log_in_all: self.log_in_all,
                is_done: true,
            });
        }
        Rebuilt {
            entries: self.entries_in_all,
            log: self.log_in_all,
            seconds: self.begun.elapsed().as_secs_f64(),
        }
    }
}
