//! The root: the slot from which the whole tree hangs.

use super::layout::ROOT_TAG;
use art::damaged;
use heap::{Access, Error, Heap};
use pmem::{Erased, Fault, Flushed, GenerationLock, Link, Media, PSlot, PersistBatch, Tag, persistent};

persistent! {
    /// Where walks start.
    #[derive(Debug)]
    pub(super) struct Root [size: 16] {
        /// The lock on `top`.
        pub(super) lock: GenerationLock,
        /// A node, the only leaf, or null.
        pub(super) top: PSlot,
    }
}

/// The root's [`footprint`](heap::footprint).
pub(super) const SIZE: usize = size_of::<Root>();

impl Root {
    /// The root that a link leads to.
    #[inline(always)]
    pub(super) fn at<M: Media>(heap: &Access<M>, link: Link) -> Result<&Root, Fault> {
        let offset = link.offset().ok_or_else(|| damaged("root of a P-HOT", link))?;
        heap.at(offset)
    }

    /// Drafts the root of an empty index; returns it with the tag of its link.
    pub(super) fn draft<'e, 'h, M: Media>(
        heap: &'h Heap<M>,
        batch: &PersistBatch<'e, 'h, M>,
    ) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error> {
        let root = heap.draft(Root::empty(heap), 0, batch)?;
        Ok((root.flush(batch).erased(), ROOT_TAG))
    }

    /// The root of an empty index.
    pub(super) fn empty<M: Media>(heap: &Heap<M>) -> Root {
        Root {
            lock: GenerationLock::new(heap.generation()),
            top: PSlot::null(),
        }
    }
}
