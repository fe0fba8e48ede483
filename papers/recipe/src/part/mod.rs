//! P-ART: the adaptive radix tree with ROWEX, converted (RECIPE §6.4).
//!
//! A child is appended to an inner node of 4, 16, 48 or 256 entries; the first three kinds do not reuse emptied entries
//! (`node`, `append`, `build`). Reads take no lock (`view`, and `art`). Writes lock the node, then its parent
//! (`locate`, `lock`, `write`); a full or nearly empty node is replaced by a copy (`resize`, `remove`).
//!
//! The nodes' prefixes compress paths. Making one shorter or longer takes two stores that other threads can see
//! (`split`): first the pointer that leads past the node, or to a new node above it, then the node's prefix. A crash
//! between them leaves a prefix that does not fit. Readers tolerate it, and the next writer that meets it
//! distinguishes it from a change in progress, and completes it: RECIPE's Condition #3 (`repair`).

mod append;
mod build;
mod locate;
mod lock;
mod node;
mod prefix;
mod remove;
mod repair;
mod resize;
mod split;
mod view;
mod write;

use art::{Byte, Children, Design, Kind, Radix, RootNode, child_tag, damaged};
use heap::{Access, Error, Heap};
use index::{Action, Edit, Guard};
use node::{N256, Node};
use pmem::{Erased, Fault, Flushed, Hardware, Link, Media, PersistBatch, Tag};

/// P-ART as a design of radix indexes.
#[derive(Clone, Copy, Debug)]
pub struct AppendOnly;

/// A P-ART in a heap, under a root of its own.
pub type Part<M = Hardware> = Radix<AppendOnly, M>;

// SAFETY: writers hold their caller's guard, and retire what they have unlinked under their locks; nodes report every
// child that counts.
unsafe impl Design for AppendOnly {
    const KIND: u32 = 2;

    type Digit = Byte;

    type Node<'g> = Node<'g>;

    type Root = N256;

    fn edit<M: Media>(
        index: &Part<M>,
        heap: &Access<M>,
        key: &[u8],
        edit: &mut dyn Edit,
        guard: &Guard,
    ) -> Result<Action, Error> {
        let writer = Writer {
            index,
            heap,
            guard,
            key,
        };
        writer.edit(edit)
    }
}

/// The root is a node that branches on the first byte.
impl RootNode for N256 {
    const OBJECT: Option<usize> = None;

    fn draft<'e, 'h, M: Media>(
        heap: &'h Heap<M>,
        batch: &PersistBatch<'e, 'h, M>,
        children: &mut Children<'e, 'h>,
    ) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error> {
        Ok((build::draft_root(heap, batch, children)?, ROOT))
    }

    #[inline(always)]
    fn top<M: Media>(_: &Access<M>, root: Link) -> Result<Link, Fault> {
        Ok(root)
    }

    fn check<M: Media>(heap: &Access<M>, root: Link) -> Result<(), Fault> {
        if root.tag() == ROOT && Node::at(heap, root)?.level(heap.media()) == 0 {
            Ok(())
        } else {
            Err(damaged("root of a P-ART", root))
        }
    }
}

/// The tag of a link to a root.
const ROOT: Tag = child_tag(Kind::N256, 0, 0);

/// One write.
#[derive(Clone, Copy)]
struct Writer<'a, M: Media> {
    index: &'a Part<M>,
    heap: &'a Access<M>,
    guard: &'a Guard,
    key: &'a [u8],
}

impl<'a, M: Media> Writer<'a, M> {
    fn media(&self) -> &'a M {
        self.heap.media()
    }

    /// Frees an object's chunk once no reader can hold it.
    #[track_caller]
    fn retire(&self, link: Link, len: usize) {
        art::retire(self.heap, self.guard, link, len);
    }
}
