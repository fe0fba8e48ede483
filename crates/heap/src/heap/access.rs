//! Access to the objects: what an index reads through.
//!
//! The heap cannot tell whether a link is live: code that knows the structure read it a moment ago, from a slot,
//! under a guard. So an index makes one promise for all its reads, where it gets its [`Access`].

use crate::Heap;
use pmem::{Fault, Hardware, Media, Offset, Persistent};
use std::fmt;
use std::ops::Deref;

/// A heap whose objects may be read. Dereferences to the heap.
///
/// It witnesses the promise made at [`Heap::access`]; its holder passes it only to code for which the promise was
/// made.
#[repr(transparent)]
pub struct Access<M: Media = Hardware>(Heap<M>);

impl<M: Media> Clone for Access<M> {
    #[inline]
    fn clone(&self) -> Access<M> {
        Access(self.0.clone())
    }
}

impl<M: Media> fmt::Debug for Access<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<M: Media> Deref for Access<M> {
    type Target = Heap<M>;
    #[inline(always)]
    fn deref(&self) -> &Heap<M> {
        &self.0
    }
}

impl<M: Media> Heap<M> {
    /// Access to the heap's objects.
    ///
    /// # Safety
    ///
    /// All code that receives the access, or a clone, keeps these rules:
    ///
    /// * It reads an object only where a root or a slot of a reachable object has led it, and as the type drafted
    ///   there. (In a damaged pool a link may lead elsewhere: reads stay inside the pool, and return some valid
    ///   value.)
    /// * It has held a guard since before it read that link, and uses nothing of the object once the guard is gone.
    ///   It needs no guard while no thread can retire the object.
    /// * It keeps no reference to the plain bytes of an object that it holds a draft of.
    /// * It [retires](Heap::retire) what it alone has unlinked, once.
    #[inline(always)]
    pub unsafe fn access(&self) -> &Access<M> {
        // SAFETY: `Access` is a transparent wrapper of a heap.
        unsafe { &*std::ptr::from_ref(self).cast::<Access<M>>() }
    }
}

impl<M: Media> Access<M> {
    /// The object at `offset`.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if it would lie outside the pool or be misaligned.
    #[inline(always)]
    #[track_caller]
    pub fn at<T: Persistent>(&self, offset: Offset) -> Result<&T, Fault> {
        // SAFETY: the holder of the access reads live objects only, whose words alone change.
        unsafe { self.pool().at(offset) }
    }

    /// The `len` objects in a row from `offset` on.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if they would lie outside the pool or be misaligned.
    #[inline(always)]
    #[track_caller]
    pub fn slice<T: Persistent>(&self, offset: Offset, len: usize) -> Result<&[T], Fault> {
        // SAFETY: as for `at`.
        unsafe { self.pool().slice(offset, len) }
    }

    /// `len` bytes at `offset`, which do not change while they are reachable.
    ///
    /// # Errors
    ///
    /// A [`Fault`] if they would lie outside the pool.
    #[inline(always)]
    #[track_caller]
    pub fn bytes(&self, offset: Offset, len: usize) -> Result<&[u8], Fault> {
        // SAFETY: the holder of the access asks for plain bytes of live objects, which do not change.
        unsafe { self.pool().bytes(offset, len) }
    }
}
