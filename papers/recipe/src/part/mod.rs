//! P-ART: the adaptive radix tree with ROWEX, converted (RECIPE §6.4).
//!
//! A child is appended to an inner node of 4, 16, 48 or 256 entries; the first three kinds do not reuse emptied entries
//! (`node`, `append`, `build`). Reads take no lock (`view`, and `art`). Writes lock the node, then its parent
//! (`locate`, `lock`, `write`); a full or nearly empty node is replaced by a copy (`resize`, `remove`).
//!
//! The nodes' prefixes compress paths. Making one shorter or longer takes two stores that other threads can see
//! (`split`): first the pointer that leads past the node, or to a new node above it, then the node's prefix. A crash
//! between them leaves a prefix that does not fit. Readers tolerate it, and the next writer that meets it
//! distinguishes it from a change in progress, and completes it: RECIPE's Condition #3 (`repair`). All other writes
//! satisfy Condition #1: one store commits them.
//!
//! | operation | condition | the store that commits it | durable before it |
//! |---|---|---|---|
//! | read, scan | non-blocking | none: it skips prefixes, and compares whole keys at leaves | |
//! | insert into an N4 | #1 | the counter, with the key byte | leaf; the pointer, in the counter's line |
//! | insert into an N16 | #1 | the counter | leaf, pointer; the key byte, in the counter's line |
//! | insert into an N48 | #1 | the entry of the child index | leaf, pointer |
//! | insert into an N256, or of a key that ends at a node | #1 | the pointer | leaf |
//! | insert into a full node; node that shrinks | #1 | the parent's pointer | the copy, with a new leaf if any |
//! | two keys diverge below a node ("leaf split") | #1 | the pointer that led to the old leaf | leaf, N4 |
//! | update of an eight-byte value | #1 | the value, in its leaf | nothing: its mark is in its line |
//! | other update | #1 | the pointer to a new leaf | the new leaf |
//! | remove | #1 | null in the leaf's pointer, or in that of an ancestor without another key | nothing |
//! | remove that leaves a leaf alone in a node | #1 | the parent's pointer, past the node | nothing |
//! | prefix split | #3 | (1) the parent's pointer; then (2) the prefix of the node below | leaf, N4 |
//! | prefix merge | #3 | (1) the parent's pointer, past the node; then (2) the prefix of the node below | nothing |
//!
//! Each of these stores is written back and fenced after it, so (1) is durable before (2). Until then it has a mark,
//! and a thread that meets the mark persists the word (link-and-persist).

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
