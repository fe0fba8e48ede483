//! Directories, which lead to tables.
//!
//! ```text
//!   0  lock    GenerationLock: of the slots
//!   8  0
//!  64  slots   16 links, each to a table, to another directory, or null; the root has one
//! ```
//!
//! I1 A slot changes under the directory's lock, by one store.
//! I2 A directory below the root whose slots are all null is unlinked by the thread that emptied the last one. If a
//!    crash comes before that, it stays until the next write below it; one that inserts nothing unlinks it.

use super::{damaged, tag};
use heap::{Access, Error, Heap};
use pmem::{
    Draft, Erased, Fault, Flushed, GenerationLock, Link, Locked, Media, Obsolete, Offset, PSlot, PWord,
    PersistBatch, Tag, VWord, persistent,
};

/// Number of slots of a directory below the root.
pub(super) const FANOUT: usize = 16;

/// Maximum number of directories on the way to a table, not counting the root. They consume all bits of a hash but
/// eight; below them a table of the largest size grows no more.
pub(super) const DEEPEST: usize = 14;

persistent! {
    /// The fixed part of a directory, and of a table.
    #[derive(Debug)]
    pub(super) struct Head [size: 64, align: 64] {
        pub(super) lock: GenerationLock,
        pub(super) shape: PWord,
        pub(super) hint: VWord,
        unused: [PWord; 5],
    }
}

pub(super) const HEAD: usize = size_of::<Head>();

impl Head {
    /// For a draft.
    pub(super) fn new(shape: u64, hint: u64) -> Head {
        Head {
            lock: GenerationLock::new(0),
            shape: PWord::new(shape),
            hint: VWord::new(hint),
            unused: Default::default(),
        }
    }
}

/// A reference to a directory.
#[derive(Clone, Copy, Debug)]
pub(super) struct DirectoryRef<'g> {
    pub(super) head: &'g Head,
    pub(super) slots: &'g [PSlot],
    pub(super) offset: Offset,
}

/// Bytes of a directory.
pub(super) const fn extent(slots: usize) -> usize {
    (HEAD + slots * size_of::<PSlot>()).next_multiple_of(align_of::<Head>())
}

impl<'g> DirectoryRef<'g> {
    /// The directory at `link`; the root has one slot.
    #[inline]
    pub(super) fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<DirectoryRef<'g>, Fault> {
        let slots = match link.tag() {
            tag::ROOT => 1,
            _ => FANOUT,
        };
        let fault = || damaged("directory of a P-CLHT", link);
        let offset = link.offset().ok_or_else(fault)?;
        let first = Offset::new(offset.get() + HEAD as u64).ok_or_else(fault)?;
        Ok(DirectoryRef {
            head: heap.at(offset)?,
            slots: heap.slice(first, slots)?,
            offset,
        })
    }

    /// Takes the lock; its first holder in a generation settles the marks that a crash has left.
    pub(super) fn lock<M: Media>(&self, heap: &'g Access<M>) -> Result<Locked<'g, M>, Obsolete> {
        let mut locked = self.head.lock.lock(heap.media(), heap.generation())?;
        if locked.is_stale() {
            self.slots.iter().for_each(|slot| _ = slot.settle(heap.media()));
            locked.repaired();
        }
        Ok(locked)
    }

    /// Whether all its slots are null.
    pub(super) fn is_empty<M: Media>(&self, media: &M) -> bool {
        self.slots.iter().all(|slot| slot.load(media).is_null())
    }
}

/// The slot of the root.
#[inline(always)]
pub(super) fn first<M: Media>(heap: &Access<M>, root: Link) -> Result<&PSlot, Fault> {
    Ok(&slots::<M, 1>(heap, root)?[0])
}

/// A slot of the directory at `link`, which is not the root.
#[inline(always)]
pub(super) fn slot<M: Media>(heap: &Access<M>, link: Link, at: usize) -> Result<&PSlot, Fault> {
    Ok(&slots::<M, FANOUT>(heap, link)?[at % FANOUT])
}

#[inline(always)]
fn slots<M: Media, const N: usize>(heap: &Access<M>, link: Link) -> Result<&[PSlot; N], Fault> {
    let slots = || {
        let first = Offset::new(link.offset()?.get() + HEAD as u64)?;
        Some(heap.slice::<PSlot>(first, N).map(|slots| slots.first_chunk()))
    };
    let fault = || damaged("directory of a P-CLHT", link);
    slots().ok_or_else(fault)??.ok_or_else(fault)
}

/// Drafts a directory whose slots hold these links; the root has the one slot.
pub(super) fn draft<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    links: &[Link],
    batch: &PersistBatch<'e, 'h, M>,
) -> Result<Draft<'e, 'h, Head>, Error> {
    let mut draft = heap.draft(Head::new(0, 0), size_of_val(links), batch)?;
    let (tail, _) = draft.tail_mut().as_chunks_mut::<8>();
    for (bytes, link) in tail.iter_mut().zip(links) {
        *bytes = link.bits().to_le_bytes();
    }
    Ok(draft)
}

/// Drafts the root of an empty index.
pub(super) fn draft_root<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error> {
    let root = draft(heap, &[Link::NULL], batch)?.flush(batch);
    Ok((root.erased(), tag::ROOT))
}
