//! DPTree: differential indexing for persistent memory (PVLDB 13(4), 2019).
//!
//! ```text
//!             writes                        reads: front, middle, base
//!               |
//!        +------v------+  full   +-------------+   merge, in place    +---------------------------+
//!  DRAM  |    front    | ------> |   middle    | -------------------> | radix tree over the leaves|
//!        +------|------+         +------|------+                      +-------------|-------------+
//!  - - - - - - -|- - - - - - - - - - - -|- - - - - - - - - - - - - - - - - - - - - -|- - - - - - - -
//!        +------v------+         +------v------+                      +-------------v-------------+
//!  pool  |     log     |         |     log     |                      | leaf -> leaf -> leaf ->   |
//!        +-------------+         +-------------+                      +---------------------------+
//! ```
//!
//! **Front.** A write goes to a B+-tree in DRAM, once its record is durable in the log: one write-back and one fence
//! for a pair of eight-byte key and value. (Without a middle, such a pair of the base is updated or removed in the base
//! itself.) **Merge.** When the front has a tenth as many records as the base has keys, and a minimum number, it
//! becomes the middle, a new front takes its place, and the middle is merged into the base's leaves, in place: each
//! leaf has its metadata twice, and a merge changes only the half that does not count, and slots that the other half
//! does not use. One store then makes the new half count, and at the same time ends the middle's log. **Base.** Leaves
//! of up to 256 pairs in a persistent list; each merge and each opening rebuilds the radix tree above them.
//!
//! **Recovery** reads three lines of each leaf (its head, its valid metadata, the slot of its greatest key) and, if
//! that key is not stored in place, its record; then it replays the logs. Nothing leads to the leftovers of a merge
//! that was interrupted before its one store, and the heap's post-crash collection reclaims them; so there is no list
//! of pending leaves, and no flag for a running merge.
//!
//! **Order of locks:** the right to merge; the gate; a leaf of the front; a log partition, or a leaf of the base. A
//! writer is inside the gate and holds its leaf of the front while the edit decides. A reader takes no lock, except
//! that of a leaf of the base whose volatile parts it is the first to need since the opening.
//!
//! | file | idea |
//! |---|---|
//! | `root`, `key` | the persistent root; entries. Keys, and pairs not stored in place, are in `index::codec` |
//! | `log` | partitions, pages, replay, reuse of pages |
//! | `buffer` | the tree in DRAM, its filter, its log |
//! | `base` | leaves, and the radix tree above them |
//! | `merge` | planning, writing, commit, collection |
//! | `tree`, `gate`, `worker` | front, middle and base together; excluding writers while these change; merging |
//! | `read`, `write`, `scan` | the operations |
//! | `search` | searches among sorted keys |
//! | `bulk` | building a tree from sorted pairs |
//! | `trace`, `check`, `stats` | live objects; faults; statistics |
//!
//! `docs/papers.md` maps the paper's sections to these files, and `docs/deviations.md` lists deviations and their
//! reasons.

mod base;
mod buffer;
mod bulk;
mod check;
mod gate;
mod key;
mod log;
mod merge;
mod options;
mod read;
mod root;
mod scan;
mod search;
mod stats;
mod trace;
mod tree;
mod worker;
mod write;

use heap::{Heap, Trace};
use index::{Action, Direction, Edit, Faults, Guard, Merges, OnHeap, Quiesced, Value, Visit};
use key::SearchKey;
pub use options::{Choice, Defaults, DpTreeOptions, Fingerprints, Linear, Probing, Threshold};
use pmem::{Erased, Fault, Flushed, Hardware, Link, Media, PersistBatch, Tag};
use root::{Root, tag};
pub use stats::{DpTreeStats, Phase};
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;
use tree::TreeState;
use worker::{Owner, Worker};

/// The kind of a DPTree in the heap's root directory.
pub const KIND: u32 = 20;

/// A DPTree in a heap, under a root of its own. Clones are handles of the same one.
///
/// Opening a tree that is already open returns another handle of it, whatever the options.
#[derive(Debug)]
pub struct DpTree<M: Media = Hardware, C: Choice = Defaults> {
    owner: Arc<Owner<M>>,
    chosen: PhantomData<C>,
}

impl<M: Media, C: Choice> Clone for DpTree<M, C> {
    fn clone(&self) -> DpTree<M, C> {
        DpTree {
            owner: Arc::clone(&self.owner),
            chosen: PhantomData,
        }
    }
}

/// The tracer, which shows the heap the chunks that a DPTree's root keeps alive.
pub fn tracer<M: Media>() -> Arc<dyn Trace<M>> {
    Arc::new(trace::Tracer)
}

impl<M: Media> DpTree<M> {
    /// Creates an empty index under the root `name`, with the default options.
    ///
    /// # Errors
    ///
    /// If the name is taken or invalid, the pool is full, or a thread for merges cannot be started.
    pub fn create(heap: &Heap<M>, name: &[u8]) -> Result<Self, heap::Error> {
        OnHeap::create(heap, name)
    }

    /// Creates an empty index under the root `name`. Options out of range are replaced by valid ones.
    ///
    /// # Errors
    ///
    /// As for [`create`](DpTree::create).
    pub fn create_with(heap: &Heap<M>, name: &[u8], options: DpTreeOptions) -> Result<Self, heap::Error> {
        Self::make(heap, name, options)
    }

    /// Opens the index under the root `name`, with the default options; returns `None` if there is no such root.
    ///
    /// # Errors
    ///
    /// If the root is of another kind, the tree is damaged, or a thread for merges cannot be started.
    pub fn open(heap: &Heap<M>, name: &[u8]) -> Result<Option<Self>, heap::Error> {
        OnHeap::open(heap, name)
    }

    /// Opens the index under the root `name`; returns `None` if there is no such root. Replays the tree's logs and
    /// reads the head of each leaf, so it takes time in proportion to both.
    ///
    /// # Errors
    ///
    /// As for [`open`](DpTree::open).
    pub fn open_with(
        heap: &Heap<M>,
        name: &[u8],
        options: DpTreeOptions,
    ) -> Result<Option<Self>, heap::Error> {
        Self::open_root(heap, name, options)
    }
}

impl<M: Media, C: Choice> DpTree<M, C> {
    fn make(heap: &Heap<M>, name: &[u8], options: DpTreeOptions) -> Result<Self, heap::Error> {
        let options = options.sane();
        // Before the root: a tree whose thread does not start is not created.
        let worker = Worker::start(&options)?;
        // SAFETY: it is the root of an empty DPTree.
        let link =
            unsafe { index::create_root(heap, name, KIND, |batch| draft_root(heap, &options, batch)) }?;
        Self::attach(heap, link, options, || Ok(worker))
    }

    fn open_root(heap: &Heap<M>, name: &[u8], options: DpTreeOptions) -> Result<Option<Self>, heap::Error> {
        let link = Self::find_root(heap, name)?;
        let open = |link| Self::attach(heap, link, options, || Worker::start(&options));
        link.map(open).transpose()
    }

    fn find_root(heap: &Heap<M>, name: &[u8]) -> Result<Option<Link>, heap::Error> {
        let Some(root) = heap.root(name)? else {
            return Ok(None);
        };
        if root.kind != KIND || root.link.tag() != tag::ROOT {
            return Err(Fault {
                what: "root of a DPTree",
                offset: root.link.bits(),
            }
            .into());
        }
        Ok(Some(root.link))
    }

    /// The tree under this root: the one that is open already, or else one opened from the pool, with this worker.
    fn attach(
        heap: &Heap<M>,
        root: Link,
        options: DpTreeOptions,
        worker: impl FnOnce() -> Result<Worker<M>, heap::Error>,
    ) -> Result<Self, heap::Error> {
        let fault = Fault {
            what: "root of a DPTree",
            offset: root.bits(),
        };
        let at = root.offset().ok_or(fault)?;
        // SAFETY: readers and writers hold their caller's guard. Only merges, of which one runs at a time, replace and
        // retire the base's leaves; so merges, and checks, which exclude them, need no guard. No other thread has the
        // tree while it is being opened.
        let heap = unsafe { heap.access() };
        let open = || Ok::<_, heap::Error>(Owner::new(TreeState::open(heap, root, options)?, worker()?));
        let owner = heap.attach(at, open)?;
        Ok(DpTree {
            owner: owner.ok_or(fault)?,
            chosen: PhantomData,
        })
    }

    #[inline]
    fn shared(&self) -> &TreeState<M> {
        &self.owner.shared
    }

    /// The heap it lives in.
    pub fn heap(&self) -> &Heap<M> {
        &self.shared().heap
    }

    /// Merges everything written before, in this thread and in as many more as the options ask for, and frees the log
    /// pages kept for reuse. Waits for a running merge first, and for the end of recovery's trace, if that has begun.
    /// What other threads write meanwhile may stay for the next merge.
    ///
    /// # Errors
    ///
    /// If the pool is full or damaged: the writes then stay in the buffer trees.
    pub fn settle(&self) -> Result<(), heap::Error> {
        let shared = self.shared();
        let turn = shared.turn();
        shared.merge(&turn, true)?;
        shared.cache.clear(&shared.heap, &heap::pin());
        Ok(())
    }

    /// The tree's statistics.
    pub fn stats(&self) -> DpTreeStats {
        DpTreeStats {
            merging: self.owner.is_merging(),
            ..self.shared().stats()
        }
    }
}

/// Drafts the root of an empty tree.
fn draft_root<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    options: &DpTreeOptions,
    batch: &PersistBatch<'e, 'h, M>,
) -> Result<(Flushed<'e, 'h, Erased>, Tag), heap::Error> {
    let draft = heap.draft(Root::new(options), 0, batch)?;
    heap.media().site("dptree: root");
    Ok((draft.flush(batch).erased(), tag::ROOT))
}

/// The error of a read: reads need no memory, so it can only be damage.
#[cold]
fn fault(error: heap::Error) -> Fault {
    match error {
        heap::Error::Damaged { what, offset } => Fault { what, offset },
        _ => Fault {
            what: "an impossible error of a read",
            offset: 0,
        },
    }
}

impl<M: Media, C: Choice> OnHeap for DpTree<M, C> {
    type Media = M;
    const KIND: u32 = KIND;

    fn create(heap: &Heap<M>, name: &[u8]) -> Result<Self, heap::Error> {
        Self::make(heap, name, DpTreeOptions::on::<M, C>())
    }

    fn open(heap: &Heap<M>, name: &[u8]) -> Result<Option<Self>, heap::Error> {
        Self::open_root(heap, name, DpTreeOptions::on::<M, C>())
    }

    fn is_there(heap: &Heap<M>, name: &[u8]) -> Result<bool, heap::Error> {
        Ok(Self::find_root(heap, name)?.is_some())
    }

    fn tracer() -> Arc<dyn Trace<M>> {
        tracer()
    }

    fn heap(&self) -> &Heap<M> {
        Self::heap(self)
    }

    #[inline]
    fn find<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Fault> {
        self.shared().read(key, guard).map_err(fault)
    }

    fn find_many<'g>(
        &'g self,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        self.shared().read_many(keys, guard, found).map_err(fault)
    }

    fn prefetch_many(&self, keys: &[&[u8]], guard: &Guard) -> Result<(), Fault> {
        self.shared().prefetch(keys, guard);
        Ok(())
    }

    fn edit(&self, key: &[u8], edit: &mut dyn Edit, guard: &Guard) -> Result<Action, heap::Error> {
        self.shared().edit(&SearchKey::new(key), edit, guard)
    }

    fn wrote(&self) {
        if self.shared().is_full() {
            self.owner.make_room();
        }
    }

    fn settle(&self) -> Result<(), heap::Error> {
        DpTree::settle(self)
    }

    fn quiesce(&self) -> Box<dyn Quiesced + '_> {
        Box::new(self.shared().turn())
    }

    fn merges(&self) -> Option<Merges> {
        Some(self.stats().merges())
    }

    fn visit_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        self.shared()
            .visit_range(lower, upper, direction, guard, visit)
            .map_err(fault)
    }

    fn find_faults(&self) -> Faults {
        self.shared().find_faults()
    }
}
