//! A DPTree's statistics.

use index::Merges;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering::Relaxed};

/// Where the keys are, and how far a merge is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Log records of the front tree, about.
    pub front: usize,
    /// Log records that begin a merge.
    pub threshold: usize,
    /// Log records of the tree being merged, about; 0 if there is none.
    pub middle: usize,
    /// Keys of the base tree when it was made.
    pub base: usize,
    /// Leaves of the base tree.
    pub leaves: usize,
    /// Bytes of the logs' pages.
    pub log_bytes: usize,
    /// Log pages that wait to serve again.
    pub ready_pages: usize,
    /// Whether the background thread merges, or is about to.
    pub merging: bool,
    /// What the merge under way does.
    pub phase: Phase,
    /// Merges since the opening.
    pub merges: usize,
    /// Partitions of the merge under way; 0 if there is none.
    pub merge_partitions: usize,
    /// How many of these have their new pairs.
    pub merge_done: usize,
    /// Why the last merge failed, if it did: it will be tried again.
    pub failed: Option<String>,
}

/// What a merge does (`merge` tells what each is).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// There is none.
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
    /// Shows readers the new base tree.
    Publish,
    /// Gives back what only the old version led to.
    Collect,
}

impl Phase {
    /// All of them, in their order.
    pub const ALL: [Phase; 7] = [
        Phase::Idle,
        Phase::Pairs,
        Phase::Metadata,
        Phase::Rebuild,
        Phase::Flip,
        Phase::Publish,
        Phase::Collect,
    ];

    /// In a word.
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

/// What has come of the merges so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// What the one under way does: its place in [`Phase::ALL`].
    phase: AtomicU8,
    /// Merges that have ended.
    pub(crate) merges: AtomicUsize,
    /// Of the one under way: partitions, and those that have their pairs. Zero if there is none.
    pub(crate) partitions: AtomicUsize,
    pub(crate) done: AtomicUsize,
    /// Why the last attempt failed, if it did, and how large the front was then.
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

impl Stats {
    /// As the contract reports merges, without DPTree's own terms.
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
