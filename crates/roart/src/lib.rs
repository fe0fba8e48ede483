//! ROART: a range-query optimized persistent adaptive radix tree (FAST'21).
//!
//! Inner nodes of 4, 16, 48 and 256 entries (`node`), leaf arrays (`array`), leaves (`leaf`); reads without locks
//! (`read`, `scan`), writes under one lock (`locate`, `write`), structure modifications (`grow`, `shrink`); the
//! paper's switches as types (`variant`). `docs/papers.md` maps the paper's sections to these files, and
//! `docs/deviations.md` says where and why this differs.

mod array;
mod check;
mod grow;
mod leaf;
mod locate;
mod multi_get;
mod node;
mod read;
mod scan;
mod shrink;
mod trace;
mod variant;
mod write;

use heap::{Heap, Trace};
use index::{Action, Direction, Edit, Error, Faults, Guard, Index, MAX_KEY, MAX_VALUE, Value, Visit};
use leaf::Leaf;
use pmem::{Fault, Hardware, Link, Media, Purpose, persist_scope};
use std::marker::PhantomData;
use std::ops::Bound;
use std::sync::Arc;
pub use variant::{Full, Raw, Streaming, Switches, Variant, WithoutEc, WithoutLc, WithoutMo, WithoutSmp};

/// What the heap's root directory calls a ROART.
pub const KIND: u32 = 1;

/// A ROART in a heap, under a root of its own.
#[derive(Clone, Debug)]
pub struct Roart<M: Media = Hardware, V: Variant = Full> {
    heap: Heap<M>,
    root: Link,
    variant: PhantomData<V>,
}

/// What tells the heap which chunks a ROART's root keeps alive.
pub fn tracer<M: Media>() -> Arc<dyn Trace<M>> {
    Arc::new(trace::Tracer)
}

impl<M: Media, V: Variant> Roart<M, V> {
    /// Makes an empty index under the root `name`.
    ///
    /// # Errors
    ///
    /// If the name is taken or not a name, or the pool is full.
    pub fn create(heap: &Heap<M>, name: &[u8]) -> Result<Self, heap::Error> {
        let root = persist_scope(heap.media(), Purpose::Node, |batch| {
            let (node, kind) = node::draft_root(heap, &batch)?;
            let fenced = batch.fence();
            debug_assert_eq!(kind, art::Kind::N256);
            heap.create_root(name, KIND, node.persisted(&fenced), root_tag::<V>())
        })?;
        Ok(Roart {
            heap: heap.clone(),
            root,
            variant: PhantomData,
        })
    }

    /// The index under the root `name`; `None` if there is no such root.
    ///
    /// # Errors
    ///
    /// If the root is of another kind, or damaged, or of a variant that keeps its key bytes elsewhere (with and without
    /// entry compression).
    pub fn open(heap: &Heap<M>, name: &[u8]) -> Result<Option<Self>, heap::Error> {
        let Some(root) = heap.root(name)? else {
            return Ok(None);
        };
        let link = root.link;
        if root.kind != KIND || link.tag() != root_tag::<V>() {
            return Err(locate::damaged("root of a ROART of this variant", link).into());
        }
        locate::check_level(&node::Node::at(heap, link)?, link, 0, heap.media())?;
        Ok(Some(Roart {
            heap: heap.clone(),
            root: link,
            variant: PhantomData,
        }))
    }

    /// The heap it lives in.
    pub fn heap(&self) -> &Heap<M> {
        &self.heap
    }
}

/// The tag of a root: its byte tells the variants apart that cannot read each other's nodes.
fn root_tag<V: Variant>() -> pmem::Tag {
    art::child_tag(art::Kind::N256, u8::from(!V::EC), 0)
}

#[cold]
fn damaged(fault: Fault) -> Error {
    heap::Error::from(fault).into()
}

fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.len() > MAX_KEY {
        Err(Error::KeyTooLong(key.len()))
    } else {
        Ok(())
    }
}

impl<M: Media, V: Variant> Index for Roart<M, V> {
    #[inline]
    fn get<'g>(&'g self, key: &[u8], _guard: &'g Guard) -> Result<Option<Value<'g>>, Error> {
        check_key(key)?;
        self.read(key).map_err(damaged)
    }

    fn multi_get<'g>(
        &'g self,
        keys: &[&[u8]],
        _guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Error> {
        keys.iter().try_for_each(|key| check_key(key))?;
        self.read_many(keys, found).map_err(damaged)
    }

    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        check_key(key)?;
        let mut edit = Limited { edit, too_long: None };
        let done = self.edit(key, &mut edit, &heap::pin());
        let action = match done {
            // Nothing was changed, and what recovery finds may make room. It waits for guards, so ours had to go first.
            Err(heap::Error::Full { recovering: true, .. }) if self.heap.wait_for_room() => {
                self.edit(key, &mut edit, &heap::pin())?
            }
            done => done?,
        };
        match edit.too_long {
            Some(len) => Err(Error::ValueTooLong(len)),
            None => Ok(action),
        }
    }

    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        _guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        for bound in [lower, upper] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                check_key(key)?;
            }
        }
        self.visit_range(lower, upper, direction, visit).map_err(damaged)
    }

    fn check(&self) -> Result<Faults, Error> {
        Ok(self.find_faults())
    }
}

/// An edit that puts nothing longer than a value may be.
struct Limited<'a> {
    edit: &'a mut dyn Edit,
    too_long: Option<usize>,
}

impl Edit for Limited<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        let action = self.edit.decide(current);
        if action == Action::Put && self.edit.value().len() > MAX_VALUE {
            self.too_long = Some(self.edit.value().len());
            return Action::Keep;
        }
        action
    }

    fn value(&self) -> &[u8] {
        self.edit.value()
    }
}
