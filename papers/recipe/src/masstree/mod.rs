//! P-Masstree: a trie of B+-trees, converted (Masstree, EuroSys 2012; RECIPE §6.5).
//!
//! ```text
//!  layer 0     [ inner ] --> [ inner ]                       by bytes 0 to 7 of the key
//!               |     \        |    \
//!             [border]->[border]->[border]->[border]
//!               | value, leaf: key and value, or
//!  layer 1     [border]                                      by bytes 8 to 15, of keys with the same bytes 0 to 7
//! ```
//!
//! A layer is a B+-tree whose keys are eight bytes (`slice`), with siblings linked at all levels (`node`). If only
//! one longer key has a given slice, the whole key hangs there as a leaf; two or more get a further layer. A node's
//! permutation lists the entries that count, in order (`order`).
//!
//! | operation | condition | the store that commits it |
//! |---|---|---|
//! | read, scan | non-blocking | none: it goes right if a sibling has its key, and never returns to the root |
//! | insert | #1 | the permutation, which names a new entry |
//! | update | #1 | the value in place; the link to a new leaf; the permutation, which names another entry |
//! | remove | #1 | the permutation, which names one entry less |
//! | new layer | #1 | the link of the entry, which led to a leaf and leads to the layer |
//! | removal of a layer | #1 | the link of its entry, which leads to the last key's leaf; or the permutation |
//! | new root of a layer, or a lower one | #1 | the link to the layer |
//! | split | #3 | (1) the sibling's link; then (2) the permutation; then (3) the parent's permutation |
//! | removal of an empty node | #3 | (1) the parent's permutation; then (2) the left sibling's link |
//!
//! Each store is durable before the next. A crash between (1) and (2) of a split leaves entries in a node that belong
//! to its sibling; one before (3), or during a removal, leaves a node without a separator in the parent. Readers
//! tolerate both (the sibling's `low` is the node's high key), and the first writer that meets them repairs them:
//! `repair`.
//!
//! **Locks** are taken from lower layers upward, within a layer from lower levels upward, within a level from right
//! to left: so waits cannot form a cycle. A new sibling is locked before it is published, until its separator is in
//! the parent.
//!
//! | file | idea |
//! |---|---|
//! | `slice`, `order`, `link`, `node` | key slices, permutations, links, nodes and how they are read |
//! | `read`, `scan` | lookups, alone and many side by side; scans both ways |
//! | `locate`, `repair` | the place of a write; repair after a crash |
//! | `write`, `insert`, `kinds`, `layer` | edits; entries, and what their words are; further layers |
//! | `split`, `shrink`, `tidy` | nodes that come and go |
//! | `bulk` | an index built from sorted pairs |
//! | `trace`, `check` | live objects; faults |

mod bulk;
mod check;
mod insert;
mod kinds;
mod layer;
mod link;
mod locate;
mod node;
mod order;
mod read;
mod repair;
mod scan;
mod shrink;
mod slice;
mod split;
mod tidy;
mod trace;
mod write;

use art::damaged;
use heap::{Access, Error, Heap, Trace};
use index::{Action, Direction, Edit, Faults, Guard, OnHeap, Value, Visit};
use locate::{HeldNodes, Writer};
use node::Node;
use pmem::{
    Erased, Fault, Flushed, GenerationLock, Hardware, Link, Media, PSlot, PersistBatch, Tag, persistent,
};
use std::ops::Bound;
use std::sync::Arc;

/// The kind of a P-Masstree in the heap's root directory.
pub const KIND: u32 = 8;

persistent! {
    /// The root of an index: the link to layer 0.
    #[derive(Debug)]
    struct Root [size: 16] {
        lock: GenerationLock,
        top: PSlot,
    }
}

/// A P-Masstree in a heap, under a root of its own.
#[derive(Debug)]
pub struct Masstree<M: Media = Hardware> {
    heap: Access<M>,
    root: Link,
}

impl<M: Media> Clone for Masstree<M> {
    fn clone(&self) -> Self {
        Masstree {
            heap: self.heap.clone(),
            root: self.root,
        }
    }
}

impl Root {
    /// For a draft.
    fn new(generation: u32) -> Root {
        Root {
            lock: GenerationLock::new(generation),
            top: PSlot::null(),
        }
    }
}

/// The root's object.
fn root_at<M: Media>(heap: &Access<M>, root: Link) -> Result<&Root, Fault> {
    match (root.offset(), root.tag() == link::ROOT) {
        (Some(offset), true) => heap.at(offset),
        _ => Err(damaged("root of a P-Masstree", root)),
    }
}

/// Drafts the root of an empty index, and its border.
fn draft_root<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error> {
    let mut root = heap.draft(Root::new(heap.generation()), 0, batch)?;
    let border = heap.draft(Node::new(heap.generation(), 0, node::WHOLE), 0, batch)?;
    let used = border.used();
    root.adopt(
        |root| &mut root.top,
        border.flush_parts([used], batch),
        link::node_tag(0),
    );
    Ok((root.flush(batch).erased(), link::ROOT))
}

impl<M: Media> Masstree<M> {
    /// The heap, for a P-Masstree.
    fn access_of(heap: &Heap<M>) -> &Access<M> {
        // SAFETY: readers here hold a guard, that of the caller or, in a check, their own; they follow only roots and
        // slots. Writers retire only what they have unlinked themselves.
        unsafe { heap.access() }
    }

    /// The link to layer 0.
    #[inline(always)]
    fn top(&self) -> Result<Link, Fault> {
        Ok(root_at(&self.heap, self.root)?.top.load(self.heap.media()))
    }
}

impl<M: Media> OnHeap for Masstree<M> {
    type Media = M;
    const KIND: u32 = KIND;

    fn create(heap: &Heap<M>, name: &[u8]) -> Result<Self, Error> {
        // SAFETY: it is the root of an empty P-Masstree.
        let root = unsafe { index::create_root(heap, name, KIND, |batch| draft_root(heap, batch)) }?;
        let heap = Self::access_of(heap).clone();
        Ok(Masstree { heap, root })
    }

    fn open(heap: &Heap<M>, name: &[u8]) -> Result<Option<Self>, Error> {
        let Some(root) = heap.root(name)? else {
            return Ok(None);
        };
        let heap = Self::access_of(heap);
        if root.kind != KIND {
            return Err(damaged("root of a P-Masstree", root.link).into());
        }
        root_at(heap, root.link)?;
        Ok(Some(Masstree {
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
            key,
            held: &HeldNodes::default(),
        };
        writer.edit(edit)
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
