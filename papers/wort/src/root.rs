//! The root object of a tree: the writers' lock, and the slot of the topmost node or leaf.
//!
//! One thread at a time writes into a tree (the paper's "global tree locking", WORT §5.4). Readers take no lock and
//! never wait: every change becomes visible by one store, and replaced objects stay readable while a guard from
//! before the change is held.
//!
//! I1 The lock's word carries the generation in which it was taken, so a lock held at a crash is free after
//!    it.
//! I2 The root object stays where it is as long as the tree lives.

use art::{Children, damaged};
use heap::{Access, Error, Heap};
use pmem::{
    Erased, Fault, Flushed, GenerationLock, Link, Locked, Media, Obsolete, PSlot, PersistBatch, Tag,
    persistent,
};

persistent! {
    /// The object that a root of the heap leads to.
    #[derive(Debug)]
    pub struct Root [size: 16] {
        lock: GenerationLock,
        /// The top of the tree: null, a leaf, or a node.
        pub(crate) top: PSlot,
    }
}

/// The tag of a link to a root object: no link in a slot has it.
const TAG: Tag = Tag::new(0);

impl art::RootNode for Root {
    const OBJECT: Option<usize> = Some(size_of::<Root>());

    fn draft<'e, 'h, M: Media>(
        heap: &'h Heap<M>,
        batch: &PersistBatch<'e, 'h, M>,
        children: &mut Children<'e, 'h>,
    ) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error> {
        let root = Root {
            lock: GenerationLock::new(heap.generation()),
            top: PSlot::null(),
        };
        let mut draft = heap.draft(root, 0, batch)?;
        if let Some(top) = children.ends.take() {
            top.attach(&mut draft, |root| &mut root.top, 0);
        }
        Ok((draft.flush(batch).erased(), TAG))
    }

    #[inline(always)]
    fn top<M: Media>(heap: &Access<M>, root: Link) -> Result<Link, Fault> {
        Ok(Root::at(heap, root)?.top.load(heap.media()))
    }

    fn check<M: Media>(heap: &Access<M>, root: Link) -> Result<(), Fault> {
        Root::at(heap, root).map(drop)
    }
}

impl Root {
    /// The root object at `link`.
    #[inline]
    pub(crate) fn at<M: Media>(heap: &Access<M>, link: Link) -> Result<&Root, Fault> {
        match link.offset() {
            Some(offset) if link.tag() == TAG => heap.at(offset),
            _ => Err(damaged("root object of a tree", link)),
        }
    }

    /// Makes the caller the only writer, waiting for the present one.
    pub(crate) fn lock<'g, M: Media>(&'g self, heap: &'g Access<M>) -> Result<Locked<'g, M>, Fault> {
        let locked = self.lock.lock(heap.media(), heap.generation());
        // A tree never becomes obsolete.
        let mut locked = locked.map_err(|Obsolete| damaged("lock of a tree", Link::NULL))?;
        if locked.is_stale() {
            // Nothing is rebuilt here after a crash: writers settle the marks that they meet.
            locked.repaired();
        }
        Ok(locked)
    }
}
