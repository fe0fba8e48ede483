//! ROART: a range-query optimized persistent adaptive radix tree (FAST'21).
//!
//! Inner nodes of 4, 16, 48 and 256 entries (`node`) with compressed paths (`prefix`), leaf arrays (`array`,
//! `fingerprint`), leaf arrays that hold short pairs themselves (`inline`); reads without locks (`read`, `multi_get`,
//! `scan`), writes (`writer`) of one key (`locate`, `write`, `edit_inline`) or of several together (`together`),
//! structure modifications (`grow`, `shrink`, `subtree`), building from sorted pairs (`bulk`), live objects and faults
//! (`trace`, `check`); the paper's switches as types (`variant`). `docs/papers.md` maps the paper's sections to these
//! files, and `docs/deviations.md` lists deviations and their reasons.
//!
//! It is not an `art::Radix`: there each slot leads to one leaf or node, here also to an array of leaves or of pairs.
//! Reads, scans, traces and checks handle these within their walks. What the walks are made of comes from `art`:
//! leaves, links, bounds, groups of reads, building and publishing.

mod array;
mod bulk;
mod check;
mod edit_inline;
mod fingerprint;
mod grow;
mod inline;
mod locate;
#[cfg(doctest)]
mod misuse;
mod multi_get;
mod node;
mod prefix;
mod read;
mod scan;
mod shrink;
mod subtree;
mod together;
mod trace;
mod variant;
mod write;
mod writer;

use art::{Children, GROUP};
use heap::{Access, Heap, Trace};
use index::{Action, CarryOut, Direction, EachEdit, Edit, Faults, Guard, OnHeap, Value, Visit};
use pmem::{Fault, Hardware, Link, Media};
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;
pub use variant::{
    Full, Raw, Streaming, Switches, Variant, WithoutEc, WithoutInline, WithoutLc, WithoutMo, WithoutSizes,
    WithoutSmp,
};
use writer::{Above, Writer};

/// The kind of a ROART in the heap's root directory.
pub const KIND: u32 = 1;

/// A ROART in a heap, under a root of its own.
#[derive(Clone, Debug)]
pub struct Roart<M: Media = Hardware, V: Variant = Full> {
    heap: Access<M>,
    root: Link,
    variant: PhantomData<V>,
}

/// The tracer, which shows the heap the chunks that a ROART's root keeps alive.
pub fn tracer<M: Media>() -> Arc<dyn Trace<M>> {
    Arc::new(trace::Tracer)
}

impl<M: Media, V: Variant> Roart<M, V> {
    /// Creates an empty index under the root `name`.
    ///
    /// # Errors
    ///
    /// If the name is taken or invalid, or the pool is full.
    pub fn create(heap: &Heap<M>, name: &[u8]) -> Result<Self, heap::Error> {
        // SAFETY: it is the root of an empty ROART.
        let root = unsafe {
            index::create_root(heap, name, KIND, |batch| {
                let root = node::draft_root(heap, batch, &mut Children::default())?;
                Ok((root, root_tag::<V>()))
            })
        }?;
        Ok(Self::at(access(heap), root))
    }

    /// Opens the index under the root `name`; returns `None` if there is no such root.
    ///
    /// # Errors
    ///
    /// If the root is of another kind, or damaged, or of a variant with another place for its key bytes (with or
    /// without entry compression) or its short pairs (with or without inline leaf arrays).
    pub fn open(heap: &Heap<M>, name: &[u8]) -> Result<Option<Self>, heap::Error> {
        let Some(root) = heap.root(name)? else {
            return Ok(None);
        };
        let link = root.link;
        if root.kind != KIND || link.tag() != root_tag::<V>() {
            return Err(art::damaged("root of a ROART of this variant", link).into());
        }
        let heap = access(heap);
        locate::check_level(&node::Node::at(heap, link)?, link, 0, heap.media())?;
        Ok(Some(Self::at(heap, link)))
    }

    /// The index whose root this is.
    fn at(heap: &Access<M>, root: Link) -> Self {
        Roart {
            heap: heap.clone(),
            root,
            variant: PhantomData,
        }
    }

    /// The heap it lives in.
    pub fn heap(&self) -> &Heap<M> {
        &self.heap
    }

    /// A writer of `key`, which may start where a walk under this guard has ended.
    fn writer<'g>(&'g self, key: &'g [u8], guard: &'g Guard, above: Option<Above>) -> Writer<'g, M, V> {
        Writer {
            index: self,
            heap: &self.heap,
            guard,
            key,
            above: Cell::new(above),
            begun_below: Cell::default(),
            passed: Cell::default(),
            looks: Cell::new(false),
            is_full: Cell::new(false),
        }
    }
}

/// The heap, for a ROART.
fn access<M: Media>(heap: &Heap<M>) -> &Access<M> {
    // SAFETY: readers here hold a guard, that of the caller or, in a check, their own; they follow only the root and
    // slots. Writers retire what they have unlinked under their locks and their guard.
    unsafe { heap.access() }
}

/// The tag of a root, which differs between variants that cannot read each other's nodes.
fn root_tag<V: Variant>() -> pmem::Tag {
    art::child_tag(art::Kind::N256, u8::from(!V::EC) | u8::from(!V::INLINE) << 1, 0)
}

impl<M: Media, V: Variant> OnHeap for Roart<M, V> {
    type Media = M;
    const KIND: u32 = KIND;

    fn create(heap: &Heap<M>, name: &[u8]) -> Result<Self, heap::Error> {
        Roart::create(heap, name)
    }

    fn open(heap: &Heap<M>, name: &[u8]) -> Result<Option<Self>, heap::Error> {
        Roart::open(heap, name)
    }

    fn tracer() -> Arc<dyn Trace<M>> {
        tracer()
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
        for keys in keys.chunks(GROUP) {
            self.walk_group::<false>(keys)?;
        }
        Ok(())
    }

    fn edit(&self, key: &[u8], edit: &mut dyn Edit, guard: &Guard) -> Result<Action, heap::Error> {
        self.writer(key, guard, None).edit(edit)
    }

    fn edit_many(&self, keys: &[&[u8]], guard: &Guard, each: &mut EachEdit<'_>) {
        for (group, keys) in keys.chunks(GROUP).enumerate() {
            let mut each = |i, carry_out: &mut CarryOut<'_>| each(group * GROUP + i, carry_out);
            if self.edit_group(keys, guard, &mut each).is_break() {
                return;
            }
        }
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
