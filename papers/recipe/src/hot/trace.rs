//! The tracer: reports live objects to the heap (post-crash collection, audit).

use super::KIND;
use super::layout::{ROOT_TAG, Target, target};
use super::node::Node;
use super::root::{self, Root};
use art::{LeafRef, damaged};
use heap::{Access, Error, Trace};
use pmem::{Link, Media};

/// Traces the objects of a P-HOT.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracer;

// SAFETY: it reports the root's slot and all slots of nodes, which are all that readers follow.
unsafe impl<M: Media> Trace<M> for Tracer {
    fn kind(&self) -> u32 {
        KIND
    }

    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error> {
        match target(link) {
            Target::Leaf => Ok(LeafRef::at(heap, link)?.extent() as u64),
            Target::Node(shape) => {
                let node = Node::at(heap, link, shape)?;
                children.extend(node.links(heap.media()).filter(|link| !link.is_null()));
                Ok(shape.size() as u64)
            }
            _ if link.tag() == ROOT_TAG => {
                let top = Root::at(heap, link)?.top.load(heap.media());
                children.extend((!top.is_null()).then_some(top));
                Ok(root::SIZE as u64)
            }
            _ => Err(damaged("link of a slot", link).into()),
        }
    }
}
