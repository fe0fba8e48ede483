//! A radix index, and the description of a design on which reads, traces and checks are built once for all.
//!
//! A *design* (P-ART, WORT, …) consists of its node layouts and its writes, with their own order of persists. It
//! describes its nodes to readers: the child for a digit of the key, the key that ends at the node, and the level at
//! which the node branches. On that are built [`get`](index::Index::get), [`multi_get`](index::Index::multi_get) and
//! [`scan`](index::Index::scan) without locks (`read`, `multi_get`, `scan`), the post-crash trace (`trace`) and the
//! skeleton of the check (`check`); `on_heap` makes an index of all of them.
//!
//! Readers rely on the following, in every design and beside any writer:
//!
//! R1 A node stands for one string of digits as long as any thread can reach it: all keys below begin with it, and
//!    its length, the node's *level*, never changes. Readers skip the digits between levels and compare the whole key
//!    at the leaf, so they do not rely on the prefix in a node.
//! R2 Everything that `child`, `ends` and `children` return is durable, including the node's own words from which they
//!    read it.
//! R3 A replaced link leads to the same content as before, unchanged, until the reader's guard is gone.
//! R4 The root stays where it is.

use crate::{Children, Digit};
use heap::{Access, Error, Heap};
use index::{Action, Edit, Guard};
use pmem::{Erased, Fault, Flushed, Hardware, Link, Media, PersistBatch, Tag};
use std::fmt::Debug;
use std::marker::PhantomData;
use std::ops::Range;

/// A design of a radix index: its nodes and its writes.
///
/// # Safety
///
/// The design, its root and its nodes keep the rules of [`Heap::access`], given that their caller holds a guard;
/// nodes report all their children, and a root reports its child.
pub unsafe trait Design: Debug + Send + Sync + Sized + 'static {
    /// The kind of such an index in the heap's root directory.
    const KIND: u32;

    /// The digit that nodes branch on.
    type Digit: Digit;

    /// A reference to a node.
    type Node<'g>: Node<'g>;

    /// The object that the index's entry in the heap's root directory leads to.
    type Root: RootNode;

    /// Applies an edit to one key, as [`Index::write`](index::Index::write) does.
    ///
    /// # Errors
    ///
    /// If the pool is full or damaged. Nothing was changed then.
    fn edit<M: Media>(
        index: &Radix<Self, M>,
        heap: &Access<M>,
        key: &[u8],
        edit: &mut dyn Edit,
        guard: &Guard,
    ) -> Result<Action, Error>;
}

/// The root of an index: the node where walks start, or an object with one child.
pub trait RootNode {
    /// The root's [`footprint`](heap::footprint), if it is not a node (the tag of its link is then not that of a
    /// [`Kind`](crate::Kind)), but an object whose only child is [`top`](RootNode::top).
    const OBJECT: Option<usize>;

    /// Builds a root with these children, and returns the tag of its link. If it is not a node, its child is the one
    /// that `ends` there. On failure the children are left.
    ///
    /// # Errors
    ///
    /// If the heap has no room.
    fn draft<'e, 'h, M: Media>(
        heap: &'h Heap<M>,
        batch: &PersistBatch<'e, 'h, M>,
        children: &mut Children<'e, 'h>,
    ) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error>;

    /// Where walks start, given the link to the root: a node at depth 0, a leaf, or null.
    ///
    /// # Errors
    ///
    /// If the pool is damaged.
    fn top<M: Media>(heap: &Access<M>, root: Link) -> Result<Link, Fault>;

    /// Checks that there is such a root.
    ///
    /// # Errors
    ///
    /// If there is not.
    fn check<M: Media>(heap: &Access<M>, root: Link) -> Result<(), Fault>;
}

/// The surroundings of a node, for the check of the node itself.
#[derive(Clone, Copy, Debug)]
pub struct NodeSite<'k> {
    /// Number of digits that lead to the node: the level of the node above plus one; 0 for the root.
    pub depth: usize,
    /// The node's own level.
    pub level: usize,
    /// A key below it, if there is any.
    pub key: Option<&'k [u8]>,
}

/// A node as readers see it. Links to nodes have the tag of an inner node's [`Kind`](crate::Kind).
pub trait Node<'g>: Copy {
    /// The node that a link leads to.
    ///
    /// # Errors
    ///
    /// If no such node can be there.
    fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<Self, Fault>;

    /// The level at which it branches, given that `depth` digits lead to it.
    ///
    /// # Errors
    ///
    /// If the level is less than `depth`.
    fn level<M: Media>(&self, heap: &'g Access<M>, link: Link, depth: usize) -> Result<usize, Fault>;

    /// The same, but from the node itself, where [`level`](Node::level) trusts its link. Walks that follow more than
    /// one key's path use this: ascending levels end every path through a damaged pool.
    ///
    /// # Errors
    ///
    /// As for [`level`](Node::level), and if node and link differ.
    #[inline]
    fn own_level<M: Media>(&self, heap: &'g Access<M>, link: Link, depth: usize) -> Result<usize, Fault> {
        self.level(heap, link, depth)
    }

    /// The child for a digit, or null.
    fn child<M: Media>(&self, heap: &'g Access<M>, digit: u8) -> Link;

    /// The leaf of the key that ends at the node's level, or null.
    fn ends<M: Media>(&self, heap: &'g Access<M>) -> Link;

    /// Passes each child whose digit is in the range to `each`, with its digit and in any order.
    fn children<M: Media>(&self, heap: &'g Access<M>, digits: Range<usize>, each: impl FnMut(u8, Link));

    /// Number of digits to request from [`children`](Node::children) at a time: fewer than all if it only looks at
    /// the requested ones.
    fn stride(&self) -> usize {
        256
    }

    /// The [`footprint`](heap::footprint) of the node's draft.
    fn size(&self) -> usize;

    /// The fault of the node itself, if there is one. The caller checks levels, duplicate digits, and whether keys
    /// lead to their leaves.
    fn fault<M: Media>(&self, heap: &'g Access<M>, site: NodeSite<'_>) -> Option<&'static str>;

    /// Prefetches the lines that the next step from `link` to the child for `digit` reads. Never faults.
    fn prefetch<M: Media>(heap: &Access<M>, link: Link, digit: u8);
}

/// A radix index of a design in a heap, under a root of its own.
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
        // SAFETY: readers here hold a guard, that of the caller or, in a check, their own; they follow only roots and
        // slots. The design keeps the rules (its trait's promise), and only it retires objects.
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
    /// If the pool is damaged.
    #[inline(always)]
    pub(crate) fn top(&self) -> Result<Link, Fault> {
        D::Root::top(&self.heap, self.root)
    }
}
