//! A radix index, and what a design of one must tell so that reads, traces and checks come once.
//!
//! A *design* (P-ART, WORT, …) is its node layouts and its writes, whose order of persists is its own. Readers learn
//! from it how a node looks: which child hangs there for a digit of the key, which key ends there, and at which level
//! it branches. From that come [`get`](index::Index::get), [`multi_get`](index::Index::multi_get) and
//! [`scan`](index::Index::scan) without locks (`read`, `multi_get`, `scan`), the post-crash trace (`trace`) and the
//! skeleton of the check (`check`).
//!
//! What readers rely on, whatever the design and beside any writer:
//!
//! R1 A node stands for one string of digits as long as anybody can reach it: all keys below begin with it,
//!    and its length, the node's *level*, never changes. Readers skip the digits between levels and compare
//!    the whole key at the leaf, so a prefix in a node may say anything.
//! R2 What `child`, `ends` and `children` return is durable, its node's part in it included.
//! R3 A link that was replaced leads to what was there before, unchanged, until the reader's guard is gone.
//! R4 The root stays where it is.

use crate::{Children, Digit, damaged};
use heap::{Access, Error, Heap, Trace};
use index::{Action, Direction, Edit, Faults, Guard, OnHeap, Value, Visit};
use pmem::{Erased, Fault, Flushed, Hardware, Link, Media, PersistBatch, Tag};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// A design of a radix index: its nodes and its writes.
///
/// # Safety
///
/// The design, its root and its nodes keep the rules of [`Heap::access`], given that their caller holds a guard; nodes
/// report all their children, and a root what hangs from it.
pub unsafe trait Design: Debug + Send + Sync + Sized + 'static {
    /// What the heap's root directory calls such an index.
    const KIND: u32;

    /// What a node branches on.
    type Digit: Digit;

    /// A node being used.
    type Node<'g>: Node<'g>;

    /// What the index's entry in the heap's root directory leads to.
    type Root: Root;

    /// Carries out an edit of one key, as [`Index::write`](index::Index::write) does.
    ///
    /// # Errors
    ///
    /// Where the pool is full or makes no sense. Nothing was changed then.
    fn edit<M: Media>(
        index: &Radix<Self, M>,
        heap: &Access<M>,
        key: &[u8],
        edit: &mut dyn Edit,
        guard: &Guard,
    ) -> Result<Action, Error>;
}

/// The root of an index: where walks start, or an object from which that hangs.
pub trait Root {
    /// If it is no node (the tag of its link is then no [`Kind`](crate::Kind)'s), and only [`top`](Root::top)
    /// hangs from it: its [`footprint`](heap::footprint).
    const OBJECT: Option<usize>;

    /// Builds a root with these children, and the tag of its link. From one that is no node hangs the child that `ends`
    /// there. Where it fails they are left.
    ///
    /// # Errors
    ///
    /// If the heap has no room.
    fn draft<'e, 'h, M: Media>(
        heap: &'h Heap<M>,
        batch: &PersistBatch<'e, 'h, M>,
        children: &mut Children<'e, 'h>,
    ) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error>;

    /// Where walks start, given the link to the root: a node to which no digits lead, a leaf, or null.
    ///
    /// # Errors
    ///
    /// Where the pool makes no sense.
    fn top<M: Media>(heap: &Access<M>, root: Link) -> Result<Link, Fault>;

    /// Whether there is such a root.
    ///
    /// # Errors
    ///
    /// Where there is not.
    fn check<M: Media>(heap: &Access<M>, root: Link) -> Result<(), Fault>;
}

/// What is below a node, for the check of the node itself.
#[derive(Clone, Copy, Debug)]
pub struct Site<'k> {
    /// Digits that lead to the node: the level of the node above and one; 0 for the root.
    pub depth: usize,
    /// The node's own level.
    pub level: usize,
    /// A key below it, if there is any.
    pub key: Option<&'k [u8]>,
}

/// How a node looks to readers. Links to nodes have the tag of an inner node's [`Kind`](crate::Kind).
pub trait Node<'g>: Copy {
    /// The node that a link to an inner node leads to.
    ///
    /// # Errors
    ///
    /// Where there cannot be one.
    fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<Self, Fault>;

    /// The level at which it branches, given that `depth` digits lead to it: a fault, if that would be less.
    ///
    /// # Errors
    ///
    /// As said.
    fn level<M: Media>(&self, heap: &'g Access<M>, link: Link, depth: usize) -> Result<usize, Fault>;

    /// The same, by what the node itself says, where [`level`](Node::level) believes its link. Walks that follow more
    /// than one key's path use this: ascending levels end every path through a damaged pool.
    ///
    /// # Errors
    ///
    /// As said, and where node and link differ.
    #[inline]
    fn own_level<M: Media>(&self, heap: &'g Access<M>, link: Link, depth: usize) -> Result<usize, Fault> {
        self.level(heap, link, depth)
    }

    /// The child for a digit, or null.
    fn child<M: Media>(&self, heap: &'g Access<M>, digit: u8) -> Link;

    /// The leaf of the key that ends at the node's level, or null.
    fn ends<M: Media>(&self, heap: &'g Access<M>) -> Link;

    /// Tells each child whose digit is in the range, with its digit and in any order.
    fn children<M: Media>(&self, heap: &'g Access<M>, digits: Range<usize>, each: impl FnMut(u8, Link));

    /// How many digits to ask [`children`](Node::children) for at a time: less than all where it looks at no
    /// more than it is asked for.
    fn stride(&self) -> usize {
        256
    }

    /// The [`footprint`](heap::footprint) of the node's draft.
    fn size(&self) -> usize;

    /// What does not make sense in the node itself. Levels, digits that occur twice, and whether keys lead to
    /// their leaves are checked for it.
    fn fault<M: Media>(&self, heap: &'g Access<M>, site: Site<'_>) -> Option<&'static str>;

    /// Asks for the lines that the next step from `link` to the child for `digit` reads. Never faults.
    fn prefetch<M: Media>(heap: &Access<M>, link: Link, digit: u8);
}

/// A radix index of some design in a heap, under a root of its own.
pub struct Radix<D: Design, M: Media = Hardware> {
    heap: Access<M>,
    root: Link,
    design: PhantomData<D>,
}

impl<D: Design, M: Media> Clone for Radix<D, M> {
    fn clone(&self) -> Self {
        Radix {
            heap: self.heap.clone(),
            root: self.root,
            design: PhantomData,
        }
    }
}

impl<D: Design, M: Media> Debug for Radix<D, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Radix")
            .field("kind", &D::KIND)
            .field("heap", &self.heap)
            .field("root", &self.root)
            .finish()
    }
}

impl<D: Design, M: Media> Radix<D, M> {
    /// The heap, for an index of the design.
    pub(crate) fn access_of(heap: &Heap<M>) -> &Access<M> {
        // SAFETY: what reads here holds a guard, that of the caller or, of a check, its own; it goes where roots and
        // slots lead. The design keeps the rules (its trait's promise), and alone retires.
        unsafe { heap.access() }
    }

    /// The index whose root this is.
    pub(crate) fn at(heap: &Access<M>, root: Link) -> Self {
        Radix {
            heap: heap.clone(),
            root,
            design: PhantomData,
        }
    }

    /// The heap, for reads.
    #[inline(always)]
    pub(crate) fn access(&self) -> &Access<M> {
        &self.heap
    }

    /// The root.
    #[inline(always)]
    pub fn root(&self) -> Link {
        self.root
    }

    /// Where walks start.
    ///
    /// # Errors
    ///
    /// Where the pool makes no sense.
    #[inline(always)]
    pub(crate) fn top(&self) -> Result<Link, Fault> {
        D::Root::top(&self.heap, self.root)
    }
}

impl<D: Design, M: Media> OnHeap for Radix<D, M> {
    type Media = M;
    const KIND: u32 = D::KIND;

    fn create(heap: &Heap<M>, name: &[u8]) -> Result<Self, Error> {
        // SAFETY: the root is one of the design.
        let root = unsafe {
            index::create_root(heap, name, D::KIND, |batch| {
                D::Root::draft(heap, batch, &mut Children::default())
            })
        }?;
        Ok(Self::at(Self::access_of(heap), root))
    }

    fn open(heap: &Heap<M>, name: &[u8]) -> Result<Option<Self>, Error> {
        let Some(root) = heap.root(name)? else {
            return Ok(None);
        };
        if root.kind != D::KIND {
            return Err(damaged("root of such a radix index", root.link).into());
        }
        let heap = Self::access_of(heap);
        D::Root::check(heap, root.link)?;
        Ok(Some(Self::at(heap, root.link)))
    }

    fn tracer() -> Arc<dyn Trace<M>> {
        Arc::new(crate::trace::Tracer::<D>::new())
    }

    #[inline(always)]
    fn heap(&self) -> &Heap<M> {
        &self.heap
    }

    #[inline]
    fn find<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Fault> {
        Ok(self.find_leaf(key, guard)?.map(|leaf| leaf.value(&self.heap)))
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
        D::edit(self, &self.heap, key, edit, guard)
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
