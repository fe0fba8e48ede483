//! The index that a design, its reads, its trace and its check make together.

use crate::trace::Tracer;
use crate::{Children, Design, Radix, RootNode, damaged};
use heap::{Error, Heap, Trace};
use index::{Action, Direction, Edit, Faults, Guard, OnHeap, Value, Visit};
use pmem::{Fault, Media};
use std::ops::Bound;
use std::sync::Arc;

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
        Arc::new(Tracer::<D>::new())
    }

    #[inline(always)]
    fn heap(&self) -> &Heap<M> {
        self.access()
    }

    #[inline]
    fn find<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Fault> {
        Ok(self.find_leaf(key, guard)?.map(|leaf| leaf.value(self.access())))
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
        D::edit(self, self.access(), key, edit, guard)
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
