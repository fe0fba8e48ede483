//! P-HOT: the height optimized trie, converted (RECIPE §6.1; Binna et al., SIGMOD 2018).
//!
//! A binary Patricia trie whose branches are gathered into nodes of up to 32 entries, so that the fan-out is high
//! wherever the keys part. A node holds, side by side, the branching bits' masks, a sparse partial key for each
//! entry, and the entries' links: a step extracts the branching bits from the key by `PEXT` and compares all partial
//! keys at once.
//!
//! ```text
//!  root -> node ------------------> node ----> leaf (key, value)
//!          masks | partials | slots  ...  `--> leaf
//! ```
//!
//! **RECIPE's conditions**: #1, for SMOs as for other writes. Every write becomes visible by one store of eight bytes.
//! No inconsistency needs to be detected or repaired, and readers never restart.
//!
//! | operation | which store | before it |
//! |---|---|---|
//! | insert: normal, pull-up, intermediate node | the link to the copies, in the slot above | leaf, copies: one fence |
//! | insert: leaf-node pushdown | the link to the new node, in the leaf's slot | leaf and node, one fence |
//! | update of an eight-byte value | the value, in its leaf | its mark, in the same line |
//! | update of another value | the link to the new leaf | the leaf, one fence |
//! | remove | the link to the copy, or to the only other entry, in the slot above | the copy, one fence |
//! | remove of the only key, or in a full pool | null, in the leaf's slot | nothing |
//!
//! The conversion: new objects are written back and fenced together before that store (RECIPE fences each of its
//! stores), the store itself is written back and fenced, and a reader that meets it before that persists it
//! (link-and-persist).
//!
//! **Locks** (ROWEX). A writer locks the node that it copies, or in whose slot it stores, then, if that node is
//! replaced, the one above, and so on: from the child upward only. It releases them from the top down, when the store
//! is durable; replaced nodes are then obsolete, and a writer that waited for one restarts. Readers take no locks: a
//! replaced node's slots still lead to the same objects.
//!
//! | file | idea |
//! |---|---|
//! | `position` | bits of keys, so that prefixes of each other differ |
//! | `layout`, `node` | the nine layouts; a node as readers see it |
//! | `plan` | a node to be built: inserting, removing, splitting and merging entries |
//! | `walk`, `multi_get`, `scan` | reads |
//! | `lock`, `write`, `insert`, `remove`, `build` | writes: locks; the cases; building and persisting new objects |
//! | `bulk` | a tree from sorted pairs, as low as it can be |
//! | `root`, `trace`, `check` | the root; live objects; faults |

mod build;
mod bulk;
mod check;
mod insert;
mod layout;
mod lock;
mod multi_get;
mod node;
mod plan;
mod position;
mod remove;
mod root;
mod scan;
mod trace;
mod walk;
mod write;

use art::damaged;
pub use check::Form;
use heap::{Access, Error, Heap, Trace};
use index::{Action, Direction, Edit, Faults, Guard, OnHeap, Value, Visit};
use pmem::{Fault, Hardware, Link, Media};
use root::Root;
use std::ops::Bound;
use std::sync::Arc;

/// The kind of a P-HOT in the heap's root directory.
pub const KIND: u32 = 9;

/// A P-HOT in a heap, under a root of its own. Clones are handles of the same one.
#[derive(Clone, Debug)]
pub struct Hot<M: Media = Hardware> {
    heap: Access<M>,
    root: Link,
}

impl<M: Media> Hot<M> {
    /// The heap, for a P-HOT.
    fn access_of(heap: &Heap<M>) -> &Access<M> {
        // SAFETY: reads and writes hold their caller's guard, checks one of their own; they follow only the root and
        // slots, and writers retire what they have unlinked under its lock, once. Builds read nothing.
        unsafe { heap.access() }
    }

    fn root(&self) -> Result<&Root, Fault> {
        Root::at(&self.heap, self.root)
    }
}

impl<M: Media> OnHeap for Hot<M> {
    type Media = M;
    const KIND: u32 = KIND;

    fn create(heap: &Heap<M>, name: &[u8]) -> Result<Self, Error> {
        // SAFETY: it is the root of an empty P-HOT.
        let root = unsafe { index::create_root(heap, name, Self::KIND, |batch| Root::draft(heap, batch)) }?;
        let heap = Self::access_of(heap).clone();
        Ok(Hot { heap, root })
    }

    fn open(heap: &Heap<M>, name: &[u8]) -> Result<Option<Self>, Error> {
        let Some(root) = heap.root(name)? else {
            return Ok(None);
        };
        if root.kind != Self::KIND || root.link.tag() != layout::ROOT_TAG {
            return Err(damaged("root of a P-HOT", root.link).into());
        }
        let heap = Self::access_of(heap).clone();
        let index = Hot {
            heap,
            root: root.link,
        };
        index.root()?;
        Ok(Some(index))
    }

    fn tracer() -> Arc<dyn Trace<M>> {
        Arc::new(trace::Tracer)
    }

    #[inline(always)]
    fn heap(&self) -> &Heap<M> {
        &self.heap
    }

    #[inline]
    fn find<'g>(&'g self, key: &[u8], _guard: &'g Guard) -> Result<Option<Value<'g>>, Fault> {
        Ok(self.find_leaf(key)?.map(|leaf| leaf.value(&self.heap)))
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
        let writer = write::Writer {
            index: self,
            heap: &self.heap,
            guard,
            key,
        };
        writer.edit(edit)
    }

    fn visit_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        _guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault> {
        self.scan_range(lower, upper, direction, visit)
    }

    fn find_faults(&self) -> Faults {
        self.check_structure()
    }
}
