//! The trees together: front, middle and base, and which thread may change them when (DPTree §3.2, Fig. 6).
//!
//! Readers load the three as one value under a guard and search front, middle and base in turn; writers do so inside
//! the [`Gate`], so that the three are not replaced until the write has ended.
//!
//! I1 The front accepts writes; the middle, if there is one, accepts none and is being merged; the base is changed by
//!    a merge, or, if there is no middle, in place.
//! I2 At any moment the newest entry of a key is in the first of the three that has one.

use crate::DpTreeOptions;
use crate::base::Base;
use crate::buffer::Buffer;
use crate::gate::Gate;
use crate::log::cache::Cache;
use crate::log::{Log, lock, replay};
use crate::root::{Root, Shape};
use crate::stats::{DpTreeStats, Progress};
use heap::{Access, Error, Swap};
use pmem::{Link, Media};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex};

/// Front, middle and base.
#[derive(Clone, Debug)]
pub(crate) struct Trees {
    pub(crate) front: Arc<Buffer>,
    pub(crate) middle: Option<Arc<Buffer>>,
    pub(crate) base: Arc<Base>,
}

/// The state that all handles of one DPTree share.
#[derive(Debug)]
pub(crate) struct TreeState<M: Media> {
    pub(crate) heap: Access<M>,
    pub(crate) root: Link,
    pub(crate) shape: Shape,
    pub(crate) options: DpTreeOptions,
    pub(crate) current: Swap<Trees>,
    pub(crate) gate: Gate,
    pub(crate) cache: Cache,
    /// Held by the thread that merges.
    pub(crate) merging: Mutex<()>,
    /// The serial of the base tree that the most recently begun merge makes.
    pub(crate) started: AtomicU64,
    pub(crate) progress: Progress,
    /// Whether the front should be merged. Set by writers inside the gate, and set anew while it is closed.
    pub(crate) is_full: AtomicBool,
}

impl<M: Media> TreeState<M> {
    /// Opens the trees of a root, replaying the logs.
    pub(crate) fn open(heap: &Access<M>, root: Link, options: DpTreeOptions) -> Result<TreeState<M>, Error> {
        let options = options.sane();
        let persistent = Root::at(heap, root)?;
        let shape = persistent.shape(heap.media())?;
        persistent.persist_seen(heap.media())?;
        let merged = persistent.state(heap.media()).merged;
        crate::log::forget_merged(heap, persistent, merged)?;
        let base = Base::open(heap, persistent, shape.leaf)?;
        let threshold = threshold(&options, base.keys);
        let threads = options.workers.max(heap.recovery_threads());
        let buffer = |number| -> Result<Buffer, Error> {
            let buffer = Buffer::new(number, shape, threshold);
            replay_all(heap, persistent, &buffer, threads)?;
            Ok(buffer)
        };
        let first = buffer(merged + 1)?;
        let second = buffer(merged + 2)?;
        // The second log begins when the first tree is about to be merged.
        let (front, middle) = if second.log.bytes() > 0 {
            heap.media().comes_to("opening: merge to be begun again");
            (second, Some(first))
        } else {
            (first, None)
        };
        let is_full = front.is_full();
        Ok(TreeState {
            heap: heap.clone(),
            root,
            shape,
            options,
            current: Swap::new(Trees {
                front: Arc::new(front),
                middle: middle.map(Arc::new),
                base: Arc::new(base),
            }),
            gate: Gate::default(),
            cache: Cache::default(),
            merging: Mutex::default(),
            started: AtomicU64::new(0),
            progress: Progress::default(),
            is_full: AtomicBool::new(is_full),
        })
    }

    /// The persistent root.
    pub(crate) fn root(&self) -> Result<&Root, Error> {
        Root::at(&self.heap, self.root)
    }

    /// The trees as they are now.
    pub(crate) fn trees(&self) -> Trees {
        self.current.load(&heap::pin()).clone()
    }

    /// Whether the front should be merged.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Relaxed)
    }

    /// An empty front for a base tree of this many keys.
    pub(crate) fn new_front(&self, number: u64, keys: usize) -> Buffer {
        Buffer::new(number, self.shape, threshold(&self.options, keys))
    }

    /// The tree's statistics.
    pub(crate) fn stats(&self) -> DpTreeStats {
        let trees = self.trees();
        let middle = trees.middle.as_deref();
        DpTreeStats {
            front: trees.front.size(),
            threshold: trees.front.threshold,
            middle: middle.map_or(0, |middle| middle.size()),
            base: trees.base.keys,
            leaves: trees.base.leaves.len(),
            log_bytes: trees.front.log.bytes() + middle.map_or(0, |middle| middle.log.bytes()),
            ready_pages: self.cache.len(),
            merging: false,
            phase: self.progress.phase(),
            merges: self.progress.merges.load(Relaxed),
            merge_partitions: self.progress.partitions.load(Relaxed),
            merge_done: self.progress.done.load(Relaxed),
            failed: lock(&self.progress.failed).as_ref().map(|(why, _)| why.clone()),
        }
    }

    /// Whether everything read of the base tree, up to now, belonged to it.
    #[inline]
    pub(crate) fn is_valid(&self, base: &Base) -> bool {
        self.started.load(SeqCst) <= base.serial + 1
    }
}

/// Number of log records that starts a merge into this many keys.
fn threshold(options: &DpTreeOptions, keys: usize) -> usize {
    ((keys as f64 * options.merge_threshold) as usize).max(options.merge_floor)
}

/// Replays the partitions of a buffer's log, side by side.
fn replay_all<M: Media>(heap: &Access<M>, root: &Root, buffer: &Buffer, threads: usize) -> Result<(), Error> {
    let partitions = buffer.log.partitions();
    let next = AtomicUsize::new(0);
    let error = Mutex::new(None);
    let work = || {
        loop {
            let partition = next.fetch_add(1, Relaxed);
            if partition >= partitions {
                return;
            }
            let apply = &mut |entry| Ok(buffer.replay(heap, entry, partition)?);
            if let Err(failed) = replay(heap, root, &buffer.log, partition, apply) {
                lock(&error).get_or_insert(failed);
                return;
            }
        }
    };
    if threads < 2 || buffer.log.number_of_pages(root, heap.media()) == 0 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 1..threads.min(partitions) {
                // With fewer threads than requested, it only takes longer.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
    }
    match error
        .into_inner()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
    {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

impl Log {
    /// Number of partitions that have a page.
    fn number_of_pages<M: Media>(&self, root: &Root, media: &M) -> usize {
        root.log(self.number)
            .iter()
            .filter(|slot| !slot.peek(media).is_null())
            .count()
    }
}
