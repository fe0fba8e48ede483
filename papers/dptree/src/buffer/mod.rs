//! Buffer trees (DPTree §2.1, §3.1): a tree in DRAM, its filter, and its log.
//!
//! I1 Everything that readers find is durable: the log record is durable before the entry is in the tree.
//! I2 The newest entry of each key counts; older ones' records live until the log is dropped, since it leads to them.

mod bloom;
mod node;
mod tree;

use crate::key::{MarkedPair, SearchKey};
use crate::log::{Log, lock};
use crate::root::Shape;
use bloom::Bloom;
use heap::Access;
use pmem::{Fault, Link, Media, Offset};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
pub(crate) use tree::{Cursor, LockedLeaf, Tree};

/// One buffer tree.
#[derive(Debug)]
pub(crate) struct Buffer {
    pub(crate) tree: Tree,
    pub(crate) log: Log,
    bloom: Bloom,
    /// Number of log records, in steps of `step`, and of removals in the base tree.
    size: AtomicUsize,
    step: usize,
    /// The size at which it should be merged.
    pub(crate) threshold: usize,
    /// Records that a newer entry of the key has replaced.
    superseded: Mutex<Vec<Link>>,
}

/// In a large buffer, the record count is updated once per this many records in a partition, so that it is no
/// bottleneck.
const STEP: usize = 16;

impl Buffer {
    /// Creates an empty buffer.
    pub(crate) fn new(number: u64, shape: Shape, threshold: usize) -> Buffer {
        let step = if threshold < 4 * STEP * shape.partitions {
            1
        } else {
            STEP
        };
        Buffer {
            tree: Tree::new(),
            log: Log::new(number, shape),
            bloom: Bloom::new(threshold),
            size: AtomicUsize::new(0),
            step,
            threshold,
            superseded: Mutex::default(),
        }
    }

    /// Prefetches what shows whether it may have a key of this hash.
    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        self.bloom.prefetch(hash);
    }

    /// The key's entry, even if it is a removal.
    #[inline]
    pub(crate) fn get<M: Media>(
        &self,
        heap: &Access<M>,
        key: &SearchKey<'_>,
        hash: u64,
    ) -> Result<Option<MarkedPair>, Fault> {
        if self.bloom.may_have(hash) {
            self.tree.get(heap, key)
        } else {
            Ok(None)
        }
    }

    /// Inserts an entry whose log record is durable.
    pub(crate) fn put(&self, leaf: LockedLeaf<'_>, hash: u64, entry: MarkedPair) {
        if let Some(old) = leaf.entry()
            && !old.link.is_null()
        {
            lock(&self.superseded).push(old.link);
        }
        self.bloom.add(hash);
        leaf.put(entry);
    }

    /// Counts a record that was appended at this position of its page. Returns whether the buffer is found full then.
    #[inline]
    pub(crate) fn count(&self, position: usize) -> bool {
        // The step is a power of two.
        position & (self.step - 1) == 0 && self.grow(self.step)
    }

    /// Counts a removal in the base tree: it adds work to the next merge, as a log record does. Returns whether the
    /// buffer is full then.
    pub(crate) fn count_removal(&self) -> bool {
        self.grow(1)
    }

    fn grow(&self, by: usize) -> bool {
        self.size.fetch_add(by, Relaxed) + by >= self.threshold
    }

    /// Inserts an entry of its own log.
    pub(crate) fn replay<M: Media>(
        &self,
        heap: &Access<M>,
        entry: MarkedPair,
        partition: usize,
    ) -> Result<(), Fault> {
        let mut bytes = [0; 8];
        let key = entry.key(heap, &mut bytes)?;
        if self.log.partition(key.hash()) != partition {
            return Err(Fault {
                what: "a log record in the wrong partition",
                offset: entry.link.offset().map_or(0, Offset::get),
            });
        }
        let leaf = self.tree.lock(heap, &key)?;
        self.put(leaf, key.hash(), entry);
        self.size.fetch_add(1, Relaxed);
        Ok(())
    }

    /// Approximate number of log records, and of removals in the base tree.
    pub(crate) fn size(&self) -> usize {
        self.size.load(Relaxed)
    }

    /// Whether it should be merged.
    pub(crate) fn is_full(&self) -> bool {
        self.size() >= self.threshold
    }

    /// Whether it has no log record, and no removal in the base tree was counted.
    pub(crate) fn is_empty(&self) -> bool {
        self.size() == 0 && self.log.bytes() == 0
    }

    /// Takes the records that newer entries have replaced.
    pub(crate) fn take_superseded(&self) -> Vec<Link> {
        std::mem::take(&mut lock(&self.superseded))
    }
}
