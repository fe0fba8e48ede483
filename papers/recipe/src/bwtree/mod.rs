//! P-BwTree: a B-link tree without locks, whose nodes change by deltas, converted (Bw-tree, ICDE 2013; OpenBw-Tree,
//! SIGMOD 2018; RECIPE §6.3).
//!
//! ```text
//!  root --> cell --> route --> base                         level 1: separators, each with the cell of a child
//!                                |
//!           cell --> put --> put --> base                   level 0: pairs
//!                                     | right
//!           cell --> split --> base                         a node and the mark of its split
//! ```
//!
//! A node is a *chain*: deltas in front of a *base*. A node is identified by the place of its *cell*, an object of
//! eight bytes that holds the head of the chain. The cells are the mapping table: entries of 16 bytes, whose pages
//! the heap grows, finds again after a crash, and reuses behind guards; so no table is allocated, and no node numbers
//! are assigned. A write puts a delta before the head by one compare-and-swap of the cell.
//!
//! | operation | condition | the store that commits it |
//! |---|---|---|
//! | read, scan | non-blocking | none: it replays the loaded chain, goes right if need be, and never restarts |
//! | insert, update | #1 | the head, which leads to a new delta |
//! | remove | #1 | the head, which names the removed pair |
//! | consolidation | #1 | the head, which leads to a base in place of a chain |
//! | split | #2 | (1) the head, which leads to a split's mark; then (2) the parent's head, or the link to the root |
//! | removal of a node | #2 | (1) its head: frozen; then (2) the left sibling's, merged; then (3) the parent's |
//! | lower root | #2 | (1) its only child's head: frozen; then (2) the link to the root |
//!
//! Each store is durable before the next (`PSlot::publish_if`: the slot is marked until it is, and a thread that loads
//! a marked slot persists it). Between the steps of a modification a mark is the node's head; the next writer to the
//! node that puts something there completes the modification (`help`), after a crash as well as beside a slow writer.
//! So no recovery is needed.
//!
//! **Removed pairs.** A remove must succeed in a full pool, so it is not a delta: besides the chain's depth, the head
//! itself names the pair that was removed last. The next writer to the node first sets the pair's flag, which is
//! durable before another head replaces the one that names it. A head is never the same twice, so a writer's
//! compare-and-swap fails if anything has happened; except for the head of an empty leaf, which may come again
//! (`drop_removed`).
//!
//! **Lifetimes.** Until it is replaced, a chain keeps everything that it has named, even the records of replaced or
//! removed pairs: a consolidation compares with their keys. A merge's mark keeps the merged node until the left
//! sibling is consolidated, which happens after the parent's separator was removed.
//!
//! | file | idea |
//! |---|---|
//! | `link`, `object`, `base` | tags of links; cells, deltas and marks; bases, and how they are read |
//! | `aim` | the target of a walk |
//! | `page`, `content` | a chain as of one load: lookup of a key, and its whole content |
//! | `read`, `scan` | lookups, alone and many side by side; scans both ways |
//! | `write`, `consolidate` | edits; replacement of chains |
//! | `help`, `split`, `merge` | modifications of several nodes, and their completion |
//! | `room` | the checks before they begin |
//! | `build`, `bulk` | new bases and cells; a tree from sorted pairs |
//! | `trace`, `check` | live objects; faults |

mod aim;
mod base;
mod build;
mod bulk;
mod check;
mod consolidate;
mod content;
mod help;
mod link;
mod merge;
mod object;
mod page;
mod read;
mod room;
mod scan;
mod split;
mod trace;
mod write;

use art::damaged;
use heap::{Access, Error, Heap, Trace};
use index::{Action, Direction, Edit, Faults, Guard, OnHeap, Value, Visit};
use pmem::{Erased, Fault, Flushed, Hardware, Link, Media, PSlot, PersistBatch, Tag, persistent};
use std::ops::Bound;
use std::sync::Arc;
use write::Writer;

/// The kind of a P-BwTree in the heap's root directory.
pub const KIND: u32 = 10;

persistent! {
    /// The root of an index: the link to the cell of the root node.
    #[derive(Debug)]
    struct Root [size: 8] {
        top: PSlot,
    }
}

/// A P-BwTree in a heap, under a root of its own, whose nodes split when they have more than `FULL` entries. `FULL`
/// must be from 8 to 1000. The pool does not record it, and works with any.
#[derive(Debug)]
pub struct BwTree<M: Media = Hardware, const FULL: usize = 64> {
    heap: Access<M>,
    root: Link,
}

impl<M: Media, const FULL: usize> Clone for BwTree<M, FULL> {
    fn clone(&self) -> Self {
        BwTree {
            heap: self.heap.clone(),
            root: self.root,
        }
    }
}

/// The root's object.
fn root_at<M: Media>(heap: &Access<M>, root: Link) -> Result<&Root, Fault> {
    match (root.offset(), root.tag() == link::ROOT) {
        (Some(offset), true) => heap.at(offset),
        _ => Err(damaged("root of a P-BwTree", root)),
    }
}

/// Drafts the root of an empty index, and its leaf.
fn draft_root<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error> {
    let mut root = heap.draft(Root { top: PSlot::null() }, 0, batch)?;
    let (cell, tag) = build::draft_first(heap, batch)?;
    root.adopt(|root| &mut root.top, cell, tag);
    Ok((root.flush(batch).erased(), link::ROOT))
}

impl<M: Media, const FULL: usize> BwTree<M, FULL> {
    /// The heap, for a P-BwTree.
    fn access_of(heap: &Heap<M>) -> &Access<M> {
        // SAFETY: readers here hold a guard, that of the caller or, in a check, their own; they follow only roots and
        // slots. Writers retire only what they have unlinked themselves. Builds read only what they have made.
        unsafe { heap.access() }
    }

    /// The cell of the root node.
    #[inline(always)]
    fn top(&self) -> Result<Link, Fault> {
        Ok(root_at(&self.heap, self.root)?.top.load(self.heap.media()))
    }
}

impl<M: Media, const FULL: usize> OnHeap for BwTree<M, FULL> {
    type Media = M;
    const KIND: u32 = KIND;
    const IS_LOCK_FREE: bool = true;

    fn create(heap: &Heap<M>, name: &[u8]) -> Result<Self, Error> {
        // SAFETY: it is the root of an empty P-BwTree.
        let root = unsafe { index::create_root(heap, name, KIND, |batch| draft_root(heap, batch)) }?;
        let heap = Self::access_of(heap).clone();
        Ok(BwTree { heap, root })
    }

    fn open(heap: &Heap<M>, name: &[u8]) -> Result<Option<Self>, Error> {
        let Some(root) = heap.root(name)? else {
            return Ok(None);
        };
        let heap = Self::access_of(heap);
        if root.kind != KIND {
            return Err(damaged("root of a P-BwTree", root.link).into());
        }
        root_at(heap, root.link)?;
        Ok(Some(BwTree {
            heap: heap.clone(),
            root: root.link,
        }))
    }

    fn tracer() -> Arc<dyn Trace<M>> {
        Arc::new(trace::Tracer)
    }

    fn heap(&self) -> &Heap<M> {
        &self.heap
    }

    #[inline]
    fn find<'g>(&'g self, key: &[u8], _guard: &'g Guard) -> Result<Option<Value<'g>>, Fault> {
        self.read(key)
    }

    fn find_many<'g>(
        &'g self,
        keys: &[&[u8]],
        _guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        self.read_many(keys, found)
    }

    fn prefetch_many(&self, keys: &[&[u8]], _guard: &Guard) -> Result<(), Fault> {
        self.read_many(keys, &mut |_, _| {})
    }

    fn edit(&self, key: &[u8], edit: &mut dyn Edit, guard: &Guard) -> Result<Action, Error> {
        let writer = Writer {
            index: self,
            heap: &self.heap,
            guard,
        };
        writer.edit(key, edit)
    }

    fn visit_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        self.scan_range(lower, upper, direction, guard, visit)
    }

    fn find_faults(&self) -> Faults {
        self.check_structure()
    }
}
