//! Bulk building: a radix tree from sorted pairs, bottom-up ([`index::Bulk`]).
//!
//! Nothing is reachable until the root has its name, so the order of persists before that is free: all lines are
//! written back once, and each thread fences once, when its part is complete. All radix indexes share the mechanism
//! (`builder`); an index defines its leaves, nodes and root by a [`Layout`].
//!
//! Several threads build parts of one tree. The nodes whose strings are prefixes of a part's border are assembled at
//! the end, by one thread (`builder`, I3). Their number does not grow with that of the keys: some 65,000 links at most
//! for each full level along a border.

mod builder;
mod bunch;

use crate::{Child, Children, Design, Digit, Radix, RootNode, draft_leaf};
use builder::{Borders, Builder, Item};
pub use bunch::Group;
use heap::{Access, Error, Heap, Trace};
use index::{Bulk, OnHeap, Parts, Reading};
use pmem::{Erased, Flushed, Link, Media, PersistBatch, Purpose, Tag, persist_scope};

/// The place of an object under construction.
#[derive(Clone, Copy, Debug)]
pub struct Spot<'k> {
    /// A key below it.
    pub key: &'k [u8],
    /// Number of digits that lead to it.
    pub depth: usize,
    /// Its level: the number of digits of the key that form its string.
    pub level: usize,
}

/// The layout of a radix index's objects for bulk building. All new objects are flushed into the batch.
pub trait Layout {
    /// The digit that nodes branch on.
    type Digit: Digit;

    /// Whether the root is a node of level 0, rather than an object with one child.
    const ROOT_IS_NODE: bool;

    /// Maximum number of pairs in one slot without a node, if this is one of them. With several pairs the smallest
    /// maximum counts.
    fn max(key: &[u8], value: &[u8]) -> usize;

    /// Drafts a leaf for a pair.
    ///
    /// # Errors
    ///
    /// If the heap has no room.
    fn leaf<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        key: &[u8],
        value: &[u8],
    ) -> Result<Child<'e, 'h>, Error> {
        let leaf = draft_leaf(heap, key, value, batch)?.flush(batch);
        Ok(Child::New(leaf.erased(), crate::Kind::Leaf, 0))
    }

    /// Drafts the object for these pairs, which share a slot to which `depth` digits lead; a leaf for a single one.
    ///
    /// # Errors
    ///
    /// If the heap has no room. None of it remains then.
    fn group<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        depth: usize,
        pairs: Group<'_>,
    ) -> Result<Child<'e, 'h>, Error>;

    /// Drafts a node with these children, in ascending order of their digits; on failure they stay in `children`.
    ///
    /// # Errors
    ///
    /// If the heap has no room.
    fn node<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        spot: Spot<'_>,
        children: &mut Children<'e, 'h>,
    ) -> Result<Child<'e, 'h>, Error>;

    /// Drafts a root, and returns the tag of its link. If the root is not a node, its only child is in `ends`. On
    /// failure the children stay in `children`.
    ///
    /// # Errors
    ///
    /// If the heap has no room.
    fn root<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        children: &mut Children<'e, 'h>,
    ) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error>;
}

/// Builds an index of this layout under the root `name`, of the tracer's kind.
///
/// # Errors
///
/// As for [`Bulk::build`].
///
/// # Safety
///
/// The access is for an index of this kind, and the objects of the layout are what the tracer and the readers of this
/// kind expect.
pub unsafe fn build<L: Layout, M: Media>(
    heap: &Access<M>,
    name: &[u8],
    tracer: &dyn Trace<M>,
    parts: Parts<'_>,
) -> Result<Link, index::Error> {
    if parts.is_one() {
        return parts.read_here(|mut pairs| {
            // SAFETY: the caller's promise.
            unsafe {
                build_top::<L, M>(
                    heap,
                    name,
                    tracer,
                    |builder| builder.push_all(&mut pairs),
                    Vec::new(),
                )
            }
        });
    }
    let left = build_parts::<L, M>(heap, tracer, parts)?;
    // SAFETY: the caller's promise.
    unsafe { build_top::<L, M>(heap, name, tracer, |_| Ok(()), left) }
}

/// Gives back objects that were not published.
fn give_back<M: Media>(heap: &Heap<M>, tracer: &dyn Trace<M>, links: Vec<Link>) -> Result<(), Error> {
    // SAFETY: a build has drafted them, and published none.
    unsafe { heap.retire_unpublished(links, tracer) }
}

/// Builds a tree from what `fill` adds, or from the items of the parts, and names it.
///
/// # Safety
///
/// As for [`build`].
unsafe fn build_top<L: Layout, M: Media>(
    heap: &Access<M>,
    name: &[u8],
    tracer: &dyn Trace<M>,
    fill: impl for<'b, 'e, 'h> FnOnce(&mut Builder<'b, 'e, 'h, L, M>) -> Result<(), index::Error>,
    left: Vec<Item<Link>>,
) -> Result<Link, index::Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let mut builder = Builder::<L, M>::new(heap, &batch, Borders::default());
        let mut left = left.into_iter();
        let make = || {
            fill(&mut builder)?;
            left.try_for_each(|item| builder.push_item(item))?;
            let mut children = builder.finish()?;
            match heap.with_room(|| L::root(heap, &batch, &mut children)) {
                Ok(root) => Ok(root),
                Err(error) => {
                    builder.resume(children);
                    Err(error.into())
                }
            }
        };
        let (root, tag) = match make() {
            Ok(root) => root,
            Err(error) => {
                let rest = builder.abandon();
                heap.media().site("art: build given up");
                let fenced = batch.fence();
                let mut links: Vec<_> = rest.into_iter().map(|child| child.into_link(&fenced)).collect();
                links.extend(left.flat_map(|item: Item<Link>| item.links()));
                give_back(heap, tracer, links)?;
                return Err(error);
            }
        };
        heap.media().site("art: index built of pairs");
        let root = root.persisted(&batch.fence());
        // SAFETY: the caller's promise; nothing of it was published.
        Ok(unsafe { index::name_built(heap, name, root, tag, tracer) }?)
    })
}

/// Builds the parts side by side; returns their items for the top of the tree, durable.
fn build_parts<L: Layout, M: Media>(
    heap: &Access<M>,
    tracer: &dyn Trace<M>,
    parts: Parts<'_>,
) -> Result<Vec<Item<Link>>, index::Error> {
    let parts = parts.read(|mut reading: Reading<'_>| {
        let borders = Borders {
            from: reading.from(),
            until: reading.until(),
        };
        persist_scope(heap.media(), Purpose::Node, |batch| {
            let mut builder = Builder::<L, M>::new(heap, &batch, borders);
            let left = builder
                .push_all(&mut reading)
                .and_then(|()| Ok(builder.finish_part()?));
            let rest = builder.abandon();
            let fenced = batch.fence();
            match left {
                Ok(items) => {
                    let items = items.into_iter().map(|item| item.into_links(&fenced));
                    (items.collect(), None)
                }
                Err(error) => {
                    let rest = rest.into_iter().map(|child| child.into_link(&fenced));
                    (Vec::new(), Some((error, rest.collect::<Vec<_>>())))
                }
            }
        })
    })?;
    let (mut items, mut failed, mut rest) = (Vec::new(), None, Vec::new());
    for (left, failure) in parts {
        items.extend(left);
        if let Some((error, links)) = failure {
            failed.get_or_insert(error);
            rest.extend(links);
        }
    }
    match failed {
        None => Ok(items),
        Some(error) => {
            rest.extend(items.iter().flat_map(Item::links));
            give_back(heap, tracer, rest)?;
            Err(error)
        }
    }
}

/// A design whose trees can be built in bulk.
pub trait Grown: Design {
    /// Drafts a node with these children, as [`Layout::node`] does.
    ///
    /// # Errors
    ///
    /// If the heap has no room.
    fn draft_node<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        spot: Spot<'_>,
        children: &mut Children<'e, 'h>,
    ) -> Result<Child<'e, 'h>, Error>;
}

/// The layout of a design: each slot holds a leaf or a node.
impl<D: Grown> Layout for D {
    type Digit = D::Digit;

    const ROOT_IS_NODE: bool = D::Root::OBJECT.is_none();

    #[inline(always)]
    fn max(_key: &[u8], _value: &[u8]) -> usize {
        1
    }

    fn group<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        _depth: usize,
        pairs: Group<'_>,
    ) -> Result<Child<'e, 'h>, Error> {
        let (key, value) = pairs.first();
        Self::leaf(heap, batch, key, value)
    }

    fn node<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        spot: Spot<'_>,
        children: &mut Children<'e, 'h>,
    ) -> Result<Child<'e, 'h>, Error> {
        D::draft_node(heap, batch, spot, children)
    }

    fn root<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        children: &mut Children<'e, 'h>,
    ) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error> {
        D::Root::draft(heap, batch, children)
    }
}

impl<D: Grown, M: Media> Bulk for Radix<D, M> {
    fn build(heap: &Heap<M>, name: &[u8], parts: Parts<'_>) -> Result<Self, index::Error> {
        let access = Self::access_of(heap);
        let tracer = <Self as OnHeap>::tracer();
        // SAFETY: design, nodes and root belong to one design.
        let root = unsafe { build::<D, M>(access, name, &*tracer, parts) }?;
        Ok(Self::at(access, root))
    }
}
