//! Objects on their way to durability: drafted, flushed, persisted. None of them is reachable yet.
//!
//! I1 The chunk belongs to its token alone. Dropping the token gives the chunk back; publishing, placing or adopting
//!    the object releases it, and so does [`Persisted::into_link`].
//! I2 A flushed object is not written any more before it is published.

use super::{Brand, Fenced, PersistBatch};
use crate::{Link, Media, Offset, PSlot, Persistent, Tag};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;

/// The allocator that lent the chunk of a draft.
pub trait Lender: Send + Sync {
    /// Takes back the chunk of `len` bytes at `offset`, which was never reachable.
    fn give_back(&self, offset: Offset, len: usize);
}

/// A chunk that no root reaches; dropping it gives it back.
#[derive(Debug)]
pub struct Chunk<'h> {
    start: NonNull<u8>,
    offset: Offset,
    len: usize,
    lender: LenderRef<'h>,
}

struct LenderRef<'h>(&'h dyn Lender);

impl std::fmt::Debug for LenderRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Lender")
    }
}

impl<'h> Chunk<'h> {
    /// The chunk of `len` bytes at `offset`, mapped at `start`.
    ///
    /// # Safety
    ///
    /// `start` is valid for reads and writes of `len` initialized bytes (at least one) for `'h`, aligned to 16 bytes,
    /// and no other code uses these bytes until the chunk is dropped or published.
    pub unsafe fn new(start: NonNull<u8>, offset: Offset, len: usize, lender: &'h dyn Lender) -> Chunk<'h> {
        Chunk {
            start,
            offset,
            len,
            lender: LenderRef(lender),
        }
    }

    fn release(self) -> Offset {
        let offset = self.offset;
        std::mem::forget(self);
        offset
    }
}

impl Drop for Chunk<'_> {
    fn drop(&mut self) {
        self.lender.0.give_back(self.offset, self.len);
    }
}

/// A private, writable object that no root reaches. Dereferences to the object; the bytes after it are its tail.
#[derive(Debug)]
pub struct Draft<'e, 'h, T: Persistent> {
    chunk: Chunk<'h>,
    brand: Brand<'e>,
    object: PhantomData<T>,
}

impl<'e, 'h, T: Persistent> Draft<'e, 'h, T> {
    /// Puts `object` at the start of `chunk`.
    ///
    /// # Panics
    ///
    /// If the chunk is smaller than the object or not aligned for it, which would be an error of the allocator.
    #[inline]
    pub fn new<M: Media>(chunk: Chunk<'h>, object: T, batch: &PersistBatch<'e, '_, M>) -> Draft<'e, 'h, T> {
        // Makes the compiler check a struct with parameters (`persistent!`).
        let _checked = const { T::WORDS_ONLY };
        assert!(chunk.len >= size_of::<T>() && chunk.start.cast::<T>().is_aligned());
        batch.media().drafting(chunk.start.as_ptr(), chunk.len);
        // SAFETY: the chunk is ours alone, aligned and large enough for a `T` (checked above).
        unsafe { chunk.start.cast::<T>().write(object) };
        Draft {
            chunk,
            brand: PhantomData,
            object: PhantomData,
        }
    }

    /// The object's future place.
    #[inline]
    pub fn offset(&self) -> Offset {
        self.chunk.offset
    }

    /// The bytes after the object.
    #[inline]
    pub fn tail_mut(&mut self) -> &mut [u8] {
        let len = self.chunk.len - size_of::<T>();
        // SAFETY: `new` checked that the object fits into the chunk.
        let tail = unsafe { self.chunk.start.add(size_of::<T>()) };
        // SAFETY: the rest of the chunk is initialized and ours alone.
        unsafe { std::slice::from_raw_parts_mut(tail.as_ptr(), len) }
    }

    /// Sets a slot of the object to a link to an object that is reachable already.
    #[inline]
    pub fn link(&mut self, slot: impl FnOnce(&mut T) -> &mut PSlot, link: Link) {
        *slot(self).0.get_mut() = link.bits();
    }

    /// Sets a slot of the object to an object that is still a draft of the same batch, for lists that are written from
    /// the first object to the last. The slot does not own it: before anything leads to this object, the caller
    /// flushes the other one and has it [adopted](Draft::adopt) or publishes it, too.
    #[inline]
    pub fn link_ahead<C: Persistent>(
        &mut self,
        slot: impl FnOnce(&mut T) -> &mut PSlot,
        to: &Draft<'e, 'h, C>,
        tag: Tag,
    ) {
        *slot(self).0.get_mut() = to.chunk.offset.get() | tag.get();
    }

    /// Sets a slot of the object to an object flushed in the same batch; the two become reachable together. (If the
    /// draft is dropped, the chunks of its children are lost until the recovery after the next opening, so adopt when
    /// nothing can fail any more.)
    #[inline]
    pub fn adopt<C: Persistent>(
        &mut self,
        slot: impl FnOnce(&mut T) -> &mut PSlot,
        child: Flushed<'e, 'h, C>,
        tag: Tag,
    ) {
        *slot(self).0.get_mut() = child.chunk.release().get() | tag.get();
    }

    /// Like [`adopt`](Draft::adopt), for an object that is already durable.
    #[inline]
    pub fn adopt_persisted<C: Persistent>(
        &mut self,
        slot: impl FnOnce(&mut T) -> &mut PSlot,
        child: Persisted<'h, C>,
        tag: Tag,
    ) {
        *slot(self).0.get_mut() = child.chunk.release().get() | tag.get();
    }

    /// Like [`link`](Draft::link), for the slot in the eight bytes at `at` of the tail.
    #[inline]
    pub fn link_in_tail(&mut self, at: usize, link: Link) {
        self.tail_mut()[at..at + size_of::<PSlot>()].copy_from_slice(&link.bits().to_ne_bytes());
    }

    /// Like [`adopt`](Draft::adopt), for the slot in the eight bytes at `at` of the tail.
    #[inline]
    pub fn adopt_in_tail<C: Persistent>(&mut self, at: usize, child: Flushed<'e, 'h, C>, tag: Tag) {
        self.link_in_tail(at, Link::NULL.with_offset(child.chunk.offset).with_tag(tag));
        let _ = child.chunk.release();
    }

    /// Finishes the object: its lines join the batch.
    #[inline]
    #[track_caller]
    pub fn flush<'m, M: Media>(self, batch: &PersistBatch<'e, 'm, M>) -> Flushed<'e, 'h, T>
    where
        'h: 'm,
    {
        let start = self.chunk.start.as_ptr();
        batch.media().drafted(start, self.chunk.len);
        // SAFETY: a chunk's bytes are mapped for `'h`.
        unsafe { batch.join_bytes(start, self.chunk.len) };
        Flushed {
            chunk: self.chunk,
            brand: PhantomData,
            object: PhantomData,
        }
    }

    /// Like [`flush`](Draft::flush), for an object of which only parts were written, given as ranges of bytes from
    /// its start: their lines join the batch. The content of the other lines after a crash is undefined.
    ///
    /// # Panics
    ///
    /// If a part lies outside of the object's chunk.
    #[inline]
    #[track_caller]
    pub fn flush_parts<'m, M: Media>(
        self,
        parts: impl IntoIterator<Item = Range<usize>>,
        batch: &PersistBatch<'e, 'm, M>,
    ) -> Flushed<'e, 'h, T>
    where
        'h: 'm,
    {
        for part in parts {
            let len = self.chunk.len;
            assert!(
                part.start < len && part.end <= len,
                "the part lies outside its object"
            );
            let start = self.chunk.start.as_ptr().wrapping_add(part.start);
            batch.media().drafted(start, part.len());
            // SAFETY: the part, or its line if it is empty, lies in the chunk (checked), whose bytes are mapped for
            // `'h`.
            unsafe { batch.join_bytes(start, part.len()) };
        }
        Flushed {
            chunk: self.chunk,
            brand: PhantomData,
            object: PhantomData,
        }
    }
}

impl<T: Persistent> Deref for Draft<'_, '_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `new` put a `T` there, and the chunk is ours alone.
        unsafe { self.chunk.start.cast::<T>().as_ref() }
    }
}

impl<T: Persistent> DerefMut for Draft<'_, '_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: `new` put a `T` there, and the chunk is ours alone.
        unsafe { self.chunk.start.cast::<T>().as_mut() }
    }
}

/// Written back with the batch, not yet fenced.
#[derive(Debug)]
#[must_use]
pub struct Flushed<'e, 'h, T: Persistent> {
    chunk: Chunk<'h>,
    brand: Brand<'e>,
    object: PhantomData<T>,
}

/// An object whose type does not matter any more.
#[derive(Debug)]
#[repr(C)]
pub struct Erased([PSlot; 0]);

// SAFETY: it has no bytes.
unsafe impl Persistent for Erased {}

impl<'e, 'h, T: Persistent> Flushed<'e, 'h, T> {
    /// The same object with its type erased, so that objects of several types can be handled alike.
    #[inline]
    pub fn erased(self) -> Flushed<'e, 'h, Erased> {
        Flushed {
            chunk: self.chunk,
            brand: PhantomData,
            object: PhantomData,
        }
    }

    /// Releases the object from its token, since something leads to it from now on: dropping no longer gives it back.
    #[inline]
    pub(super) fn release(self) -> Offset {
        self.chunk.release()
    }

    /// The fence has completed: the object is durable once something durable reaches it.
    #[inline]
    pub fn persisted(self, _fenced: &Fenced<'e>) -> Persisted<'h, T> {
        Persisted {
            chunk: self.chunk,
            object: PhantomData,
        }
    }
}

/// An object that is durable if something durable reaches it.
#[derive(Debug)]
#[must_use]
pub struct Persisted<'h, T: Persistent> {
    chunk: Chunk<'h>,
    object: PhantomData<T>,
}

impl<T: Persistent> Persisted<'_, T> {
    /// The object's place.
    #[inline]
    pub fn offset(&self) -> Offset {
        self.chunk.offset
    }

    /// A link to the object, for reading it and its children before it is published.
    #[inline]
    pub fn link(&self, tag: Tag) -> Link {
        Link::NULL.with_offset(self.chunk.offset).with_tag(tag)
    }

    /// A link to the object, which the caller owns from now on: it stores the link in a [dormant slot](PSlot::store)
    /// or a log, or retires the object.
    #[inline]
    pub fn into_link(self, tag: Tag) -> Link {
        Link::NULL.with_offset(self.release()).with_tag(tag)
    }

    /// Releases the object from its token, since something reaches it from now on: dropping no longer gives it back.
    #[inline]
    pub(super) fn release(self) -> Offset {
        self.chunk.release()
    }
}
