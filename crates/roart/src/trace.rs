//! The tracer: reports live objects to the heap (post-crash collection, audit).
//!
//! A trace beside writers relies on this rule: an SMO never moves a live link out of an object that stays in use. It
//! builds a new object, swings one slot, and leaves the replaced object unchanged; so an object that was alive at the
//! restart and still is can be reached through whichever version a tracer reads.

use crate::array::ArrayRef;
use crate::inline::inline_size;
use crate::node::Node;
use art::{Kind, LeafRef, Tagged};
use heap::{Access, Error, Trace};
use pmem::{Link, Media};

/// Traces the objects of a ROART, whatever its variant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tracer;

// SAFETY: it reports every slot of nodes and arrays, which are all that readers follow.
unsafe impl<M: Media> Trace<M> for Tracer {
    fn kind(&self) -> u32 {
        crate::KIND
    }

    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error> {
        let media = heap.media();
        let len = match link.kind() {
            Kind::Leaf => LeafRef::at(heap, link)?.extent(),
            Kind::Array => {
                let array = ArrayRef::at(heap, link)?;
                children.extend(array.leaves(media));
                array.size()
            }
            Kind::Inline => inline_size(link)?,
            _ => {
                let node = Node::at(heap, link)?;
                let ends = node.header().ends.load(media);
                children.extend((!ends.is_null()).then_some(ends));
                children.extend(node.children(media));
                node.size()
            }
        };
        Ok(len as u64)
    }
}
