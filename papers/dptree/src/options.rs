//! A DPTree's options.

use pmem::Media;

/// Maximum number of partitions of a log.
pub(crate) const MAX_PARTITIONS: usize = 64;

/// Maximum of [`merge_floor`](DpTreeOptions::merge_floor). The front of an index has a filter for at least as many keys
/// as the floor, which takes 96 MiB for this many.
const MAX_FLOOR: usize = 1 << 26;

/// The options of a DPTree. The defaults are the paper's (§4.2, §4.4), except for the smaller log pages.
///
/// Options that shape persistent objects are fixed when the tree is created; [`open_with`](crate::DpTree::open_with)
/// takes them from the pool and the rest from its argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DpTreeOptions {
    /// R: a merge begins when the buffer tree has as many log records as this share of the base tree's keys.
    pub merge_threshold: f64,
    /// Minimum number of log records before a merge begins.
    pub merge_floor: usize,
    /// Entries of a base tree's leaf: a multiple of 64, at most 256. Fixed at creation.
    pub leaf_capacity: usize,
    /// CT: leaves filled less than this are merged with a neighbour, or get pairs of it.
    pub consolidation_threshold: f64,
    /// FR: the share to which new leaves are filled.
    pub fill_rate: f64,
    /// Partitions of the log: 1 to 64. Fixed at creation.
    pub partitions: usize,
    /// Bytes of a log page: a multiple of 64 from 256 to 64 KiB. Fixed at creation.
    pub log_page: usize,
    /// Threads that merge. With 0 there are only the callers' threads, and the writer that fills the buffer tree
    /// merges. An opening replays the log with as many threads, or with as many as
    /// [recover](heap::Heap::recovery_threads) the heap, if those are more (§4.5).
    pub workers: usize,
    /// Leaves per partition of a merge (the paper's PSize).
    pub merge_partition: usize,
    /// How a leaf is searched for a key.
    pub probing: Probing,
    /// Writers that hold no guard wait while a merge runs or is due and the buffer tree is this many times as large as
    /// the size that starts a merge.
    pub backlog: usize,
}

impl Default for DpTreeOptions {
    fn default() -> DpTreeOptions {
        DpTreeOptions {
            merge_threshold: 0.1,
            merge_floor: 8192,
            leaf_capacity: 256,
            consolidation_threshold: 0.34,
            fill_rate: 0.7,
            partitions: 16,
            log_page: 16 << 10,
            workers: 1,
            merge_partition: 64,
            probing: Probing::Both,
            backlog: 4,
        }
    }
}

/// How the search in a base tree's leaf is narrowed, to measure the benefit of each means (§4.1, Fig. 10). The leaves
/// are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Probing {
    /// Groups from the key's own on, and in them the pairs with its fingerprint: the default.
    Both,
    /// Groups from the key's own on, and in them all pairs.
    Linear,
    /// All groups from the first on, and in them the pairs with its fingerprint.
    Fingerprints,
}

/// Options as a type, for indexes that differ only in these: the options of a tree created or opened without any.
pub trait Choice: Send + Sync + 'static {
    /// Changes the default options.
    fn choose(options: &mut DpTreeOptions);
}

/// The default options.
#[derive(Debug)]
pub struct Defaults;

impl Choice for Defaults {
    fn choose(_: &mut DpTreeOptions) {}
}

/// A merge threshold R of this many percent.
#[derive(Debug)]
pub struct Threshold<const PERCENT: u8>;

impl<const PERCENT: u8> Choice for Threshold<PERCENT> {
    fn choose(options: &mut DpTreeOptions) {
        options.merge_threshold = f64::from(PERCENT) / 100.0;
    }
}

/// Leaves probed without fingerprints.
#[derive(Debug)]
pub struct Linear;

impl Choice for Linear {
    fn choose(options: &mut DpTreeOptions) {
        options.probing = Probing::Linear;
    }
}

/// Leaves probed only by fingerprints.
#[derive(Debug)]
pub struct Fingerprints;

impl Choice for Fingerprints {
    fn choose(options: &mut DpTreeOptions) {
        options.probing = Probing::Fingerprints;
    }
}

impl DpTreeOptions {
    /// The options if none are given, with the choices of `C`: the default ones; or the
    /// [smallest](DpTreeOptions::SMALL) on a media whose threads take turns, which would wait for ever for the tree's
    /// own thread, and whose histories are short.
    pub(crate) fn on<M: Media, C: Choice>() -> DpTreeOptions {
        let mut options = if M::TAKES_TURNS {
            DpTreeOptions::SMALL
        } else {
            DpTreeOptions::default()
        };
        C::choose(&mut options);
        options
    }

    /// Trees of a few dozen keys are merged every few writes, by the writer, and their leaves are split and
    /// consolidated: for tests that must meet every phase of a merge.
    pub const SMALL: DpTreeOptions = DpTreeOptions {
        merge_threshold: 0.1,
        merge_floor: 12,
        leaf_capacity: 64,
        consolidation_threshold: 0.34,
        fill_rate: 0.7,
        partitions: 2,
        log_page: 256,
        workers: 0,
        merge_partition: 2,
        probing: Probing::Both,
        backlog: 4,
    };

    /// These options with valid values: a number out of range becomes the nearest in range, sizes are rounded down to a
    /// multiple of 64, and a share that is not finite becomes the default.
    pub(crate) fn sane(self) -> DpTreeOptions {
        let share = |value: f64, low, high, default| {
            if value.is_finite() {
                value.clamp(low, high)
            } else {
                default
            }
        };
        DpTreeOptions {
            merge_threshold: share(self.merge_threshold, 0.0, 1.0, 0.1),
            merge_floor: self.merge_floor.clamp(1, MAX_FLOOR),
            leaf_capacity: self.leaf_capacity.clamp(64, 256) / 64 * 64,
            consolidation_threshold: share(self.consolidation_threshold, 0.0, 0.5, 0.34),
            fill_rate: share(self.fill_rate, 0.5, 1.0, 0.7),
            partitions: self.partitions.clamp(1, MAX_PARTITIONS),
            log_page: self.log_page.clamp(256, 64 << 10) / 64 * 64,
            workers: self.workers.min(64),
            merge_partition: self.merge_partition.max(1),
            probing: self.probing,
            backlog: self.backlog.max(1),
        }
    }
}
