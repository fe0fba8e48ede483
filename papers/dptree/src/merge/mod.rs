//! The merge: merges the middle tree into the base tree, in place (DPTree §2.3, §3.3, Algorithms 1 and 9).
//!
//! 1. *Pairs.* In parallel over partitions of the leaves: plan the new version's leaves (`plan`), write pairs into
//!    slots that the valid version does not use, and new leaves. One fence makes the pairs of a partition in old leaves
//!    durable, and one each new leaf.
//! 2. *Metadata.* In parallel: each leaf's line of the new version, and one fence for as many leaves as a partition
//!    has. From here on nothing is allocated in the pool, so a merge that finds the pool full has changed nothing that
//!    counts.
//! 3. *Rebuild* the radix tree, in DRAM.
//! 4. *Flip.* First the head of the new version's list, persisted. Then one store to the root's state, persisted: the
//!    version, and the number of the buffer tree, whose log does not count from here on. That store is the commit
//!    point.
//! 5. *Publish* the new base tree to readers, without the middle.
//! 6. *Collect.* The log's pages are kept for reuse; leaves and records that only the old version or the log led to are
//!    retired.
//!
//! I1 A crash before the store of step 4 leaves the old version and the log, one after it the new version and a log
//!    that does not count. Nothing leads to anything else that was written, and post-crash collection reclaims it:
//!    there is no list of pending leaves.
//! I2 There is one merge at a time: no other thread changes leaves, except to repair volatile metadata. In-place
//!    changes happen only while there is no middle tree.
//! I3 The heap does not trace meanwhile.

mod plan;
mod write;

use crate::base::leaf::LeafRef;
use crate::base::slots::GROUPS;
use crate::base::{Base, Router};
use crate::buffer::Buffer;
use crate::key::{MarkedPair, SearchKey};
use crate::log::lock;
use crate::root::{Root, State, tag};
use crate::stats::Phase;
use crate::tree::{TreeState, Trees};
use heap::{Error, TracePause};
use index::Direction;
use plan::{Fill, Plan};
use pmem::{Link, Media, Purpose, persist_scope};
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::ops::{Bound, Range};
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicUsize, fence};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use write::Written;
pub(crate) use write::expected;

/// The results of a partition's writer.
#[derive(Debug, Default)]
struct Outcome {
    written: Vec<Written>,
    dead: Vec<Link>,
}

/// The right to merge.
pub(crate) struct Turn<'t> {
    _alone: MutexGuard<'t, ()>,
    _pause: TracePause,
}

impl<M: Media> TreeState<M> {
    /// Takes the right to merge, if no thread has it and recovery does not trace.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        let alone = match self.merging.try_lock() {
            Ok(alone) => alone,
            // The state left by a merge that panicked does not count.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let pause = self.heap.try_pause_trace()?;
        Some(Turn {
            _alone: alone,
            _pause: pause,
        })
    }

    /// Takes the right to merge, waiting for it.
    pub(crate) fn turn(&self) -> Turn<'_> {
        let alone = pmem::lock_across(&self.merging, self.heap.media());
        Turn {
            _alone: alone,
            _pause: self.heap.pause_trace(),
        }
    }

    /// Merges the middle, if there is one; then each front that is full, or, with `all`, the front as it was at the
    /// call, if a merge would change anything.
    pub(crate) fn merge(&self, _turn: &Turn<'_>, all: bool) -> Result<(), Error> {
        // With `all`, only this front: writers always put something into the next.
        let last = self.trees().front.log.number;
        loop {
            let trees = self.trees();
            match &trees.middle {
                Some(middle) => {
                    let merged = self.merge_middle(&trees, middle);
                    self.progress.enter(Phase::Idle);
                    self.progress.partitions.store(0, Relaxed);
                    *lock(&self.progress.failed) = match &merged {
                        Ok(()) => None,
                        Err(error) => Some((error.to_string(), trees.front.size())),
                    };
                    merged?;
                }
                None if (!all && trees.front.is_full())
                    || (all && trees.front.log.number <= last && self.has_work(&trees)?) =>
                {
                    self.heap.media().comes_to("merge: front becomes middle");
                    let front = self.new_front(trees.front.log.number + 1, trees.base.keys);
                    self.replace(|trees| Trees {
                        front: Arc::new(front),
                        middle: Some(Arc::clone(&trees.front)),
                        base: Arc::clone(&trees.base),
                    });
                }
                None => return Ok(()),
            }
        }
    }

    /// Whether a merge would change anything: the front is not empty, or a leaf was emptied in place.
    fn has_work(&self, trees: &Trees) -> Result<bool, Error> {
        if !trees.front.is_empty() {
            return Ok(true);
        }
        for &link in &trees.base.leaves {
            let leaf = LeafRef::at(&self.heap, link)?;
            if leaf.bitmap(trees.base.state.version, self.heap.media()) == [0; GROUPS] {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Replaces the trees while no writer is inside.
    fn replace(&self, next: impl FnOnce(&Trees) -> Trees) {
        let _closed = self.gate.close(self.heap.media());
        let guard = heap::pin();
        let next = next(self.current.load(&guard));
        self.is_full.store(next.front.is_full(), Relaxed);
        self.current.replace(next, &guard);
    }

    fn merge_middle(&self, trees: &Trees, middle: &Buffer) -> Result<(), Error> {
        let (heap, base) = (&self.heap, &*trees.base);
        let version = 1 - base.state.version;
        // Readers of the previous base tree, whose version is overwritten now, check this afterwards.
        self.started.store(base.serial + 1, SeqCst);
        fence(SeqCst);
        let made = self.write_leaves(base, middle, version)?;
        let state = State {
            merged: middle.log.number,
            version,
        };
        self.progress.enter(Phase::Rebuild);
        let next = Arc::new(self.next_base(base, state, &made));
        self.progress.enter(Phase::Flip);
        let root = self.root()?;
        self.flip(root, state, made.written.first());
        // From here on the merge has succeeded. Retirement is optional: an object that cannot be read stays until the
        // next recovery finds that nothing leads to it.
        self.progress.enter(Phase::Publish);
        self.replace(|trees| Trees {
            front: Arc::clone(&trees.front),
            middle: None,
            base: Arc::clone(&next),
        });
        self.progress.merges.fetch_add(1, Relaxed);
        self.progress.enter(Phase::Collect);
        middle.log.drop_pages(heap, root, &self.cache);
        self.collect(base, &next, made.dead, middle.take_superseded());
        Ok(())
    }

    /// Writes all leaves of the new version: pairs, then metadata.
    fn write_leaves(&self, base: &Base, middle: &Buffer, version: usize) -> Result<Outcome, Error> {
        let step = self.options.merge_partition;
        let partitions: Vec<Range<usize>> = match base.leaves.len() {
            0 => std::iter::once(0..0).collect(),
            count => (0..count)
                .step_by(step)
                .map(|at| at..count.min(at + step))
                .collect(),
        };
        self.progress.enter(Phase::Pairs);
        self.progress.done.store(0, Relaxed);
        self.progress.partitions.store(partitions.len(), Relaxed);
        let outcomes: Vec<Mutex<Outcome>> = partitions.iter().map(|_| Mutex::default()).collect();
        let written = self.in_parallel(partitions.len(), |i| {
            let mut outcome = lock(&outcomes[i]);
            let done = self.write_partition(base, middle, partitions[i].clone(), version, &mut outcome);
            self.progress.done.fetch_add(1, Relaxed);
            done
        });
        let mut all = Outcome::default();
        for outcome in outcomes {
            let outcome = outcome
                .into_inner()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            all.written.extend(outcome.written);
            all.dead.extend(outcome.dead);
        }
        let written = written.and_then(|()| {
            self.progress.enter(Phase::Metadata);
            let leaves = &all.written;
            self.in_parallel(leaves.len().div_ceil(step), |i| {
                let end = leaves.len().min((i + 1) * step);
                let next = leaves.get(end).map_or(Link::NULL, |leaf| leaf.link);
                write::write_metadata(&self.heap, &leaves[i * step..end], next, version)
            })
        });
        if let Err(error) = written {
            // Nothing that counts leads to the new leaves, so they can be retired at once.
            let guard = heap::pin();
            for leaf in all.written.iter().filter(|leaf| leaf.fresh) {
                self.retire_leaf(&guard, leaf.link);
            }
            return Err(error);
        }
        Ok(all)
    }

    fn write_partition(
        &self,
        base: &Base,
        middle: &Buffer,
        range: Range<usize>,
        version: usize,
        outcome: &mut Outcome,
    ) -> Result<(), Error> {
        let heap = &self.heap;
        let capacity = self.shape.leaf;
        let start = base.start(range.start).map(<[u8]>::to_vec);
        let end = match range.end.checked_sub(1) {
            Some(last) => base.end(last),
            None => Bound::Unbounded,
        };
        // As many as there are on average, and a quarter more.
        let room = middle.size() * range.len().max(1) / base.leaves.len().max(1) * 5 / 4;
        let entries = self.entries_between(middle, start, end, room)?;
        let fill = Fill {
            capacity,
            filled: ((capacity as f64 * self.options.fill_rate) as usize).max(1),
            few: (capacity as f64 * self.options.consolidation_threshold) as usize,
        };
        let plan = Plan::new(heap, base, range, entries, fill)?;
        write::write_pairs(heap, &plan, version, capacity, &mut outcome.written)?;
        outcome.dead = plan.dead;
        Ok(())
    }

    fn entries_between(
        &self,
        buffer: &Buffer,
        start: Bound<Vec<u8>>,
        end: Bound<&[u8]>,
        room: usize,
    ) -> Result<Vec<MarkedPair>, Error> {
        let mut entries = Vec::with_capacity(room);
        let mut cursor = buffer.tree.cursor(start, Direction::Forward);
        let end = match end {
            Bound::Included(end) => Some(SearchKey::new(end)),
            _ => None,
        };
        while let Some(entry) = cursor.peek(&self.heap)? {
            if let Some(end) = &end
                && end.compare(&self.heap, entry.prefix, entry.link)? == Ordering::Less
            {
                break;
            }
            entries.push(entry);
            cursor.advance();
        }
        Ok(entries)
    }

    /// Runs `0..count` on the workers; the first error, if any, ends it.
    fn in_parallel(
        &self,
        count: usize,
        run: impl Fn(usize) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        let next = AtomicUsize::new(0);
        let error = Mutex::new(None);
        let work = || {
            while lock(&error).is_none() {
                let i = next.fetch_add(1, Relaxed);
                if i >= count {
                    return;
                }
                if let Err(failed) = run(i) {
                    lock(&error).get_or_insert(failed);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.options.workers.min(count) {
                // With fewer threads than requested, it only takes longer.
                let _ = std::thread::Builder::new()
                    .name("wollemi-merge".into())
                    .spawn_scoped(scope, work);
            }
            work();
        });
        match error
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
        {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    fn next_base(&self, base: &Base, state: State, made: &Outcome) -> Base {
        let leaves = &made.written;
        let greatest: Vec<&[u8]> = leaves.iter().map(|leaf| &leaf.greatest[..]).collect();
        Base {
            state,
            serial: base.serial + 1,
            leaves: leaves.iter().map(|leaf| leaf.link).collect(),
            router: Router::new(&greatest[..greatest.len().saturating_sub(1)]),
            keys: leaves.iter().map(|leaf| leaf.pairs).sum(),
        }
    }

    /// The commit point. Costs two fences.
    fn flip(&self, root: &Root, state: State, first: Option<&Written>) {
        let media = self.heap.media();
        media.comes_to("merge: flip");
        persist_scope(media, Purpose::Node, |batch| {
            let first = first.map_or(Link::NULL, |leaf| leaf.link);
            root.heads[state.version].store(first, &batch);
            let _durable = batch.fence().durable();
        });
        persist_scope(media, Purpose::Node, |batch| {
            root.state.store(state.word(), &batch);
            let _durable = batch.fence().durable();
        });
    }

    /// Retires the objects that only the old version, and the log, led to.
    fn collect(&self, old: &Base, new: &Base, dead: Vec<Link>, superseded: Vec<Link>) {
        self.heap.media().comes_to("merge: collection");
        let guard = heap::pin();
        let kept: BTreeSet<_> = new.leaves.iter().map(|link| link.offset()).collect();
        for leaf in old.leaves.iter().filter(|leaf| !kept.contains(&leaf.offset())) {
            self.retire_leaf(&guard, *leaf);
        }
        // The entry of a removal has the record of the removed pair, so a record may be listed twice. (In a damaged
        // pool, any may.)
        let mut records = dead;
        records.extend(superseded);
        records.sort_unstable_by_key(|link| link.offset());
        records.dedup_by_key(|link| link.offset());
        for link in records {
            // SAFETY: nothing leads to the record: the merge has unlinked it, and has paused the trace since before
            // that.
            let _ = unsafe { index::codec::retire(&self.heap, &guard, link) };
        }
    }

    #[track_caller]
    fn retire_leaf(&self, guard: &heap::Guard, link: Link) {
        debug_assert!(tag::LEAF.contains(&link.tag()));
        if let Some(offset) = link.offset() {
            let extent = crate::base::leaf::extent(self.shape.leaf);
            // SAFETY: nothing leads to the leaf: the merge has swung the base's list past it, or has made it and failed
            // before that. It has paused the trace since before that, and no other thread merges.
            unsafe { self.heap.retire(guard, offset, extent) };
        }
    }
}
