//! Traces a radix index for the heap (post-crash collection, audit).

use crate::{Design, Digit, Kind, LeafRef, Node, RootNode, Tagged};
use heap::{Access, Error, Trace};
use pmem::{Link, Media};
use std::marker::PhantomData;

/// Traces the objects of a radix index of this design.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracer<D>(PhantomData<D>);

impl<D: Design> Tracer<D> {
    pub(crate) fn new() -> Self {
        Tracer(PhantomData)
    }
}

// SAFETY: it reports the slots that the design's readers follow (the promise of the design).
unsafe impl<D: Design, M: Media> Trace<M> for Tracer<D> {
    fn kind(&self) -> u32 {
        D::KIND
    }

    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error> {
        if link.kind() == Kind::Leaf {
            return Ok(LeafRef::at(heap, link)?.extent() as u64);
        }
        if link.kind() == Kind::Null
            && let Some(size) = D::Root::OBJECT
        {
            let top = D::Root::top(heap, link)?;
            children.extend((!top.is_null()).then_some(top));
            return Ok(size as u64);
        }
        let node = D::Node::at(heap, link)?;
        let ends = node.ends(heap);
        children.extend((!ends.is_null()).then_some(ends));
        node.children(heap, 0..D::Digit::RADIX, |_, child| children.push(child));
        Ok(node.size() as u64)
    }
}
