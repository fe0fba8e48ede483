//! WORT: the write optimal radix tree (WORT §3.2 to §3.4).
//!
//! Nodes have 16 children, one for each half-byte (`node`). Paths are compressed by an eight-byte header that states
//! the node's depth, so that a split changes it by one store (`header`). One writer at a time writes (`write`), and
//! recovers headers that a crash left behind (`recover`). Reads, scans, traces and checks are those of all radix
//! indexes (`art`): without locks, and whether headers are right or not.

mod node;
mod write;

use crate::root::Root;
use art::{
    Child, Children, Design, Digit, Grown, HalfByte, Kind, NodeSite, Radix, Spot, Tagged, child_tag, damaged,
};
use heap::{Access, Error, Guard};
use index::{Action, Edit};
use node::{Header, LEAF, NODE, Node};
use pmem::{Fault, Hardware, Link, Media, PersistBatch};
use std::ops::Range;

/// A WORT in a heap, under a root of its own.
pub type Wort<M = Hardware> = Radix<WriteOptimal, M>;

/// WORT as a design of radix indexes.
#[derive(Clone, Copy, Debug)]
pub struct WriteOptimal;

// SAFETY: the only writer holds its caller's guard, and retires what it has unlinked; nodes report every child that
// counts.
unsafe impl Design for WriteOptimal {
    const KIND: u32 = 3;

    type Digit = HalfByte;

    type Node<'g> = &'g Node;

    type Root = Root;

    fn edit<M: Media>(
        index: &Wort<M>,
        heap: &Access<M>,
        key: &[u8],
        edit: &mut dyn Edit,
        guard: &Guard,
    ) -> Result<Action, Error> {
        write::Writer::edit(index, heap, key, edit, guard)
    }
}

impl Grown for WriteOptimal {
    fn draft_node<'e, 'h, M: Media>(
        heap: &'h Access<M>,
        batch: &PersistBatch<'e, 'h, M>,
        spot: Spot<'_>,
        children: &mut Children<'e, 'h>,
    ) -> Result<Child<'e, 'h>, Error> {
        let mut draft = heap.draft(Node::new(Header::of(spot.key, spot.depth, spot.level)), 0, batch)?;
        if let Some(child) = children.ends.take() {
            child.attach(&mut draft, |node| node.slot_mut(None), 0);
        }
        for (digit, child) in children.list.drain(..) {
            // Links contain no digit.
            let child = match child {
                Child::Reachable(link) => Child::Reachable(link.with_tag(child_tag(link.kind(), 0, 0))),
                new => new,
            };
            child.attach(&mut draft, |node| node.slot_mut(Some(digit)), 0);
        }
        Ok(Child::New(draft.flush(batch).erased(), Kind::N16, 0))
    }
}

impl<'g> art::Node<'g> for &'g Node {
    #[inline(always)]
    fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<Self, Fault> {
        Node::at(heap, link)
    }

    #[inline(always)]
    fn level<M: Media>(&self, heap: &'g Access<M>, link: Link, depth: usize) -> Result<usize, Fault> {
        let level = self.header(heap.media()).level();
        if level < depth {
            return Err(damaged("node's level", link));
        }
        Ok(level)
    }

    #[inline(always)]
    fn child<M: Media>(&self, heap: &'g Access<M>, digit: u8) -> Link {
        self.slot(Some(digit)).load(heap.media())
    }

    #[inline(always)]
    fn ends<M: Media>(&self, heap: &'g Access<M>) -> Link {
        self.ends.load(heap.media())
    }

    #[inline(always)]
    fn children<M: Media>(&self, heap: &'g Access<M>, digits: Range<usize>, mut each: impl FnMut(u8, Link)) {
        for digit in digits.start..digits.end.min(16) {
            let link = self.children[digit].load(heap.media());
            if !link.is_null() {
                each(digit as u8, link);
            }
        }
    }

    fn size(&self) -> usize {
        size_of::<Node>()
    }

    /// A depth that is not the one at which the node is reached is no fault: the next writer recovers the header.
    fn fault<M: Media>(&self, heap: &'g Access<M>, site: NodeSite<'_>) -> Option<&'static str> {
        let media = heap.media();
        let header = self.header(media);
        if !header.is_clean() {
            return Some("the header has unused bits set");
        }
        let string = |i| site.key.and_then(|key| HalfByte::at(key, i));
        if !(header.depth()..)
            .zip(header.prefix())
            .all(|(i, digit)| string(i) == Some(digit))
        {
            return Some("the node's prefix does not match the keys below");
        }
        let links = || {
            self.slots()
                .map(|slot| slot.load(media))
                .filter(|link| !link.is_null())
        };
        if links().count() < 2 {
            return Some("a node with fewer than two children");
        }
        let tagged = links().all(|link| [NODE, LEAF].contains(&link.tag()));
        (!tagged).then_some("a link has unused bits set")
    }

    #[inline(always)]
    fn prefetch<M: Media>(heap: &Access<M>, link: Link, digit: u8) {
        let start = art::address(heap, link);
        art::prefetch(start);
        art::prefetch(start.wrapping_add(16 + usize::from(digit) * size_of::<u64>()));
    }
}
