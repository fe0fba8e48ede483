//! The tracer: reports live objects to the heap (post-crash collection, audit).
//!
//! The nodes of a level are a list, from the one that begins the layer along the siblings, and each separator's node
//! is in it. So a node is reported by its left sibling, and the first of a level by the first of the level above;
//! separators are not followed, and each object is reported once.
//!
//! A split moves links out of a node that stays in use, into one that its `next` leads to. So the entries are loaded
//! before `next`: a tracer that misses a moved link finds the sibling (`docs/design.md`, the second rule).

use super::link::{Target, target};
use super::node::{LINK, NodeRef, SIZE, kind};
use super::order::ENTRIES;
use super::{KIND, Root, root_at};
use art::{LeafRef, damaged};
use heap::{Access, Error, Trace};
use pmem::{Link, Media};

/// Traces the objects of a P-Masstree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tracer;

// SAFETY: it reports the entries that count and the sibling, which readers follow, in this order.
unsafe impl<M: Media> Trace<M> for Tracer {
    fn kind(&self) -> u32 {
        KIND
    }

    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error> {
        let media = heap.media();
        match target(link) {
            Some(Target::Root) => {
                children.push(root_at(heap, link)?.top.load(media));
                Ok(size_of::<Root>() as u64)
            }
            Some(Target::Leaf(_)) => Ok(LeafRef::at(heap, link)?.extent() as u64),
            Some(Target::Node(level)) => {
                let node = NodeRef::at(heap, link)?;
                let begins = node.low(media) == 0;
                let mut links = [(0, Link::NULL); ENTRIES];
                node.look(media, |order| {
                    links = [(0, Link::NULL); ENTRIES];
                    let kinds = node.node.kinds.peek(media);
                    let is_link = |entry: &usize| level > 0 || kind(kinds, *entry) == LINK;
                    let told = if level == 0 { ENTRIES } else { usize::from(begins) };
                    for (link, entry) in links.iter_mut().zip(order.entries().filter(is_link).take(told)) {
                        let entry = &node.node.entries[entry];
                        *link = (entry.slice.peek(media), entry.word.slot().load(media));
                    }
                });
                // Loaded last.
                let sibling = node.sibling(heap)?;
                // Entries that a half-done split has left belong to the sibling, and are reported there.
                let high = sibling.map(|sibling| sibling.low(media));
                let own = links
                    .iter()
                    .filter(|(slice, _)| high.is_none_or(|high| *slice < high));
                children.extend(own.map(|(_, link)| *link).filter(|link| !link.is_null()));
                children.extend(sibling.map(|sibling| sibling.link));
                Ok(SIZE as u64)
            }
            None => Err(damaged("link of a P-Masstree", link).into()),
        }
    }
}
