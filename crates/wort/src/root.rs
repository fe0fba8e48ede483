//! The root object of a tree: the writers' lock, and the slot of the topmost node or leaf.
//!
//! One thread at a time writes into a tree (the paper's "global tree locking", WORT §5.4). Readers take no lock and
//! wait for nobody: every change becomes visible by one store, and what it replaces stays readable while a guard of
//! that time is held.
//!
//! I1 The lock's word carries the generation in which it was taken, so a lock held at a crash is free after it.
//! I2 The root object stays where it is as long as the tree lives.

use heap::{Error, Heap};
use pmem::{Fault, GenerationLock, Link, Locked, Media, PSlot, Persistent, Purpose, Tag, persist_scope};

/// What a root of the heap leads to.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Root {
    lock: GenerationLock,
    /// What all keys hang from: null, a leaf, or a node.
    pub(crate) top: PSlot,
}

const _: () = assert!(size_of::<Root>() == 16);

// SAFETY: `repr(C)` of two words, no padding.
unsafe impl Persistent for Root {}

/// The tag of a link to a root object. No link in a slot has it.
pub(crate) const TAG: Tag = Tag::new(0);

/// Makes the root object of an empty tree. 1 write-back, 1 fence, beside the heap's root directory.
pub(crate) fn create<M: Media>(heap: &Heap<M>, name: &[u8], kind: u32) -> Result<Link, Error> {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let root = Root {
            lock: GenerationLock::new(heap.generation()),
            top: PSlot::null(),
        };
        let root = heap.draft(root, 0, &batch)?.flush(&batch);
        let fenced = batch.fence();
        heap.create_root(name, kind, root.persisted(&fenced), TAG)
    })
}

/// The root object under `name`; `None` if there is no such root.
pub(crate) fn open<M: Media>(heap: &Heap<M>, name: &[u8], kind: u32) -> Result<Option<Link>, Error> {
    let Some(root) = heap.root(name)? else {
        return Ok(None);
    };
    if root.kind != kind || root.link.tag() != TAG {
        return Err(Error::Damaged {
            what: "root of a tree of this kind",
            offset: root.link.offset().map_or(0, pmem::Offset::get),
        });
    }
    Root::at(heap, root.link)?;
    Ok(Some(root.link))
}

impl Root {
    /// The root object at `link`.
    #[inline]
    pub(crate) fn at<M: Media>(heap: &Heap<M>, link: Link) -> Result<&Root, Fault> {
        let offset = link.offset().ok_or(Fault {
            what: "null root",
            offset: 0,
        })?;
        heap.pool().at(offset)
    }

    /// Makes the caller the only writer, waiting for the one there is.
    pub(crate) fn lock<'g, M: Media>(&'g self, heap: &'g Heap<M>) -> Result<Locked<'g, M>, Fault> {
        let locked = self.lock.lock(heap.media(), heap.generation());
        let mut locked = locked.map_err(|pmem::Obsolete| Fault {
            what: "lock of a tree, which is never obsolete,",
            offset: 0,
        })?;
        if locked.is_stale() {
            // Nothing here is rebuilt after a crash: marks that it has left are settled by the writers that meet them.
            locked.repaired();
        }
        Ok(locked)
    }
}
