//! A DPTree's statistics.

use index::Merges;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

/// The sizes of the trees, and the progress of a merge.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DpTreeStats {
    /// Approximate number of log records of the front tree, and of removals in place since it was made.
    pub front: usize,
    /// Number of log records that starts a merge.
    pub threshold: usize,
    /// Approximate number of log records of the tree being merged; 0 if there is none.
    pub middle: usize,
    /// Number of keys of the base tree when it was made.
    pub base: usize,
    /// Number of leaves of the base tree.
    pub leaves: usize,
    /// Bytes of the logs' pages.
    pub log_bytes: usize,
    /// Log pages kept for reuse.
    pub ready_pages: usize,
    /// Whether the background thread merges, or is about to.
    pub merging: bool,
    /// The phase of the running merge.
    pub phase: Phase,
    /// Merges that have succeeded since the opening.
    pub merges: usize,
    /// Number of partitions of the running merge; 0 if there is none.
    pub merge_partitions: usize,
    /// Number of partitions whose new pairs are written, in the running merge or else in the last one.
    pub merge_done: usize,
    /// Why the last merge failed, if it did: it will be retried.
    pub failed: Option<String>,
}

/// The phase of a merge (`merge` explains each).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// No merge runs.
    #[default]
    Idle,
    /// Plans leaves and writes their pairs.
    Pairs,
    /// Writes the leaves' metadata of the new version.
    Metadata,
    /// Rebuilds the radix tree in DRAM.
    Rebuild,
    /// Commits.
    Flip,
    /// Makes the new base tree visible to readers.
    Publish,
    /// Empties the merged log, and retires objects that only that or the old version led to.
    Collect,
}

impl Phase {
    /// All of them, in order.
    pub const ALL: [Phase; 7] = [
        Phase::Idle,
        Phase::Pairs,
        Phase::Metadata,
        Phase::Rebuild,
        Phase::Flip,
        Phase::Publish,
        Phase::Collect,
    ];

    /// The name of the phase.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Pairs => "pairs",
            Phase::Metadata => "metadata",
            Phase::Rebuild => "rebuild",
            Phase::Flip => "flip",
            Phase::Publish => "publish",
            Phase::Collect => "collect",
        }
    }
}

/// The progress of merges.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// The phase of the running one: its place in [`Phase::ALL`].
    phase: AtomicU8,
    /// Number of merges that have succeeded.
    pub(crate) merges: AtomicUsize,
    /// Number of partitions of the running one; 0 if there is none.
    pub(crate) partitions: AtomicUsize,
    /// Number of partitions whose pairs are written, in the running one or else in the last.
    pub(crate) done: AtomicUsize,
    /// Why the last attempt failed, if it did, and the size of the front then.
    pub(crate) failed: Mutex<Option<(String, usize)>>,
}

impl Progress {
    pub(crate) fn phase(&self) -> Phase {
        let place = usize::from(self.phase.load(Relaxed));
        Phase::ALL.get(place).copied().unwrap_or_default()
    }

    pub(crate) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Relaxed);
    }
}

impl DpTreeStats {
    /// The contract's form of the statistics, without DPTree's own terms.
    pub(crate) fn merges(self) -> Merges {
        Merges {
            gathered: self.front as u64,
            threshold: self.threshold as u64,
            merging: self.middle as u64,
            phase: self.phase.name(),
            parts: self.merge_partitions as u64,
            parts_done: self.merge_done as u64,
            merges: self.merges as u64,
            failed: self.failed,
        }
    }
}
