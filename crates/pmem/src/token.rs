//! Tokens: publishing what is not durable does not compile.
//!
//! ```text
//! Draft<'e, T> --flush(&Batch<'e>)--> Flushed<'e, T> --persisted(&Fenced<'e>)--> Persisted<T>
//! Batch<'e>    --fence()-----------> Fenced<'e>         one fence for the whole batch; stays on its thread
//! PSlot        --publish(Persisted<T>)--> Published --commit()--> Durable
//! ```
//!
//! `'e` is an invariant brand that [`persist_scope`] makes anew for each batch, so that no token of one batch
//! passes for another's. A draft may link to what was flushed in its own batch and to what is reachable already.
//! A draft, flushed or persisted object that is dropped unpublished gives its chunk back.
//!
//! Not proved by these types: the order of two publications, readers that act on links not yet durable (the
//! publication policy's affair), and what recovery assumes.

use crate::{LINE, Link, Media, Offset, Persistent, Purpose, Tag};
use std::cell::{Cell, RefCell};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

type Brand<'e> = PhantomData<Cell<&'e mut ()>>;
type NotSend = PhantomData<*const ()>;

/// Who lent the chunk of a draft, and takes it back.
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
    /// The chunk of `len` bytes at `offset`, which is at `start` in this mapping.
    ///
    /// # Safety
    ///
    /// `start` is valid for reads and writes of `len` initialized bytes for `'h`, aligned to 16 bytes, and nobody
    /// else uses these bytes until the chunk is dropped or published.
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

/// Runs `f` with a fresh batch.
#[inline]
pub fn persist_scope<M: Media, R>(
    media: &M,
    purpose: Purpose,
    f: impl for<'e> FnOnce(Batch<'e, '_, M>) -> R,
) -> R {
    f(Batch {
        media,
        purpose,
        lines: RefCell::new(Lines::default()),
        brand: PhantomData,
        not_send: PhantomData,
    })
}

/// Write-backs of this thread that are not fenced yet. Each line joins once and is written back by the fence at
/// the latest.
#[derive(Debug)]
pub struct Batch<'e, 'm, M: Media> {
    media: &'m M,
    purpose: Purpose,
    lines: RefCell<Lines>,
    brand: Brand<'e>,
    not_send: NotSend,
}

const HELD: usize = 8;

/// The lines held back so that none is written back twice.
#[derive(Debug, Default)]
struct Lines {
    held: [usize; HELD],
    count: usize,
}

impl<'e, 'm, M: Media> Batch<'e, 'm, M> {
    /// The media written to.
    #[inline]
    pub fn media(&self) -> &'m M {
        self.media
    }

    /// Joins the lines of `len` bytes from `start` to the batch. Lines past what can be held back for merging are
    /// written back at once.
    #[inline]
    #[track_caller]
    pub(crate) fn join(&self, start: *const u8, len: usize) {
        let first = start.addr() / LINE;
        let last = (start.addr() + len.max(1) - 1) / LINE;
        let mut lines = self.lines.borrow_mut();
        for line in first..=last {
            let count = lines.count;
            if lines.held[..count].contains(&line) {
                continue;
            }
            if count < HELD {
                lines.held[count] = line;
                lines.count += 1;
            } else {
                self.media.write_back(start.with_addr(line * LINE), self.purpose);
            }
        }
    }

    /// Writes back what is held back and fences. The batch is spent.
    #[inline]
    #[track_caller]
    pub fn fence(self) -> Fenced<'e> {
        let lines = self.lines.into_inner();
        for &line in &lines.held[..lines.count] {
            self.media
                .write_back(std::ptr::without_provenance(line * LINE), self.purpose);
        }
        self.media.fence(self.purpose);
        Fenced {
            brand: PhantomData,
            not_send: PhantomData,
        }
    }
}

/// Witness that the batch's fence has retired.
#[derive(Debug)]
pub struct Fenced<'e> {
    brand: Brand<'e>,
    not_send: NotSend,
}

impl Fenced<'_> {
    /// Proof for a change that was made in place, by [`PWord::store`](crate::PWord::store) into this batch.
    #[inline]
    pub fn durable(self) -> Durable {
        Durable(())
    }
}

/// Private, writable, not reachable from any root. Dereferences to the object; the bytes after it are its tail.
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
    /// If the chunk is smaller than the object: the allocator is asked for the object's own size.
    #[inline]
    pub fn new<M: Media>(chunk: Chunk<'h>, object: T, _batch: &Batch<'e, '_, M>) -> Draft<'e, 'h, T> {
        assert!(chunk.len >= size_of::<T>() && chunk.start.cast::<T>().is_aligned());
        // SAFETY: the chunk is ours alone, aligned and large enough for a `T` (checked above).
        unsafe { chunk.start.cast::<T>().write(object) };
        Draft {
            chunk,
            brand: PhantomData,
            object: PhantomData,
        }
    }

    /// Where the object will be found.
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

    /// Sets a slot of the object to something that is reachable already.
    #[inline]
    pub fn link(&mut self, slot: impl FnOnce(&mut T) -> &mut PSlot, link: Link) {
        *slot(self).0.get_mut() = link.bits();
    }

    /// Sets a slot of the object to an object flushed in the same batch, which now shares this draft's fate: they
    /// become reachable together. (If the draft is dropped, its children wait for the next post-crash collection,
    /// so adopt when nothing can fail any more.)
    #[inline]
    pub fn adopt<C: Persistent>(
        &mut self,
        slot: impl FnOnce(&mut T) -> &mut PSlot,
        child: Flushed<'e, 'h, C>,
        tag: Tag,
    ) {
        *slot(self).0.get_mut() = child.chunk.release().get() | tag.get();
    }

    /// Like [`adopt`](Draft::adopt), for an object that is durable already.
    #[inline]
    pub fn adopt_persisted<C: Persistent>(
        &mut self,
        slot: impl FnOnce(&mut T) -> &mut PSlot,
        child: Persisted<'h, C>,
        tag: Tag,
    ) {
        *slot(self).0.get_mut() = child.chunk.release().get() | tag.get();
    }

    /// Ends the writing: the object's lines join the batch.
    #[inline]
    #[track_caller]
    pub fn flush<M: Media>(self, batch: &Batch<'e, '_, M>) -> Flushed<'e, 'h, T> {
        let start = self.chunk.start.as_ptr();
        batch.media.drafted(start, self.chunk.len);
        batch.join(start, self.chunk.len);
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
    /// The same object, its type forgotten, so that objects of several types can be handled alike.
    #[inline]
    pub fn erased(self) -> Flushed<'e, 'h, Erased> {
        Flushed {
            chunk: self.chunk,
            brand: PhantomData,
            object: PhantomData,
        }
    }

    /// The fence has retired: durable, once something reaches it.
    #[inline]
    pub fn persisted(self, _fenced: &Fenced<'e>) -> Persisted<'h, T> {
        Persisted {
            chunk: self.chunk,
            object: PhantomData,
        }
    }
}

/// Durable, if something durable reaches it.
#[derive(Debug)]
#[must_use]
pub struct Persisted<'h, T: Persistent> {
    chunk: Chunk<'h>,
    object: PhantomData<T>,
}

/// How a publication keeps others from acting on it before it is durable (ROART §2.3.1).
pub trait Publication: Send + Sync + 'static {
    /// Whether what is stored shows a mark until it is durable.
    const MARKS: bool;
    /// Stores `word`.
    #[track_caller]
    fn store<M: Media>(media: &M, slot: &PSlot, word: u64);
    /// Makes the stored `word` durable.
    #[track_caller]
    fn commit<M: Media>(media: &M, slot: &PSlot, word: u64);
}

/// A mark in the slot until the store is durable; whoever meets the mark persists the slot itself.
#[derive(Clone, Copy, Debug)]
pub struct LinkAndPersist;

impl Publication for LinkAndPersist {
    const MARKS: bool = true;

    #[inline]
    fn store<M: Media>(media: &M, slot: &PSlot, word: u64) {
        media.store(&slot.0, word | Link::MARK);
    }

    #[inline]
    fn commit<M: Media>(media: &M, slot: &PSlot, word: u64) {
        media.write_back((&raw const slot.0).cast(), Purpose::Node);
        media.fence(Purpose::Node);
        // The slot's writer holds the lock on it, so only a reader's help, which stores the same, can have
        // come between.
        media.store(&slot.0, word);
    }
}

/// A store past the cache, which others see only when it is durable (ROART §3.4.1).
#[derive(Clone, Copy, Debug)]
pub struct NonTemporal;

impl Publication for NonTemporal {
    const MARKS: bool = false;

    #[inline]
    fn store<M: Media>(media: &M, slot: &PSlot, word: u64) {
        media.store_nt(&slot.0, word);
    }

    #[inline]
    fn commit<M: Media>(media: &M, _slot: &PSlot, _word: u64) {
        media.fence(Purpose::Node);
    }
}

/// A persistent word that holds a link and by which objects become reachable.
///
/// One thread at a time publishes into a slot (its object's lock); anybody may load it.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct PSlot(pub(crate) std::sync::atomic::AtomicU64);

// SAFETY: one atomic word; any bits are valid.
unsafe impl Persistent for PSlot {}

impl PSlot {
    /// An empty slot, for a draft.
    #[inline]
    pub const fn null() -> PSlot {
        PSlot(std::sync::atomic::AtomicU64::new(0))
    }

    /// The link (acquire); what is returned is durable in this slot, by the reader's own help if need be.
    #[inline(always)]
    #[track_caller]
    pub fn load<M: Media>(&self, media: &M) -> Link {
        let word = media.load(&self.0);
        if word & Link::MARK != 0 {
            return self.settle(media, word);
        }
        Link::from_word(word)
    }

    /// Like [`load`](PSlot::load), without making anything durable: for hints and prefetching.
    #[inline(always)]
    #[track_caller]
    pub fn peek<M: Media>(&self, media: &M) -> Link {
        Link::from_word(media.load(&self.0))
    }

    #[cold]
    #[inline(never)]
    #[track_caller]
    fn settle<M: Media>(&self, media: &M, word: u64) -> Link {
        media.write_back((&raw const self.0).cast(), Purpose::Node);
        media.fence(Purpose::Node);
        // If another word stands there by now, the one that was read has been replaced, and was durable or not
        // a moment before: the reader's result is ordered before the replacement.
        let _ = media.compare_exchange(&self.0, word, word & !Link::MARK);
        Link::from_word(word)
    }

    /// Stores a link to `object` (the commit point's store).
    #[inline]
    #[track_caller]
    pub fn publish<'a, P: Publication, M: Media, T: Persistent>(
        &'a self,
        media: &'a M,
        object: Persisted<'_, T>,
        tag: Tag,
    ) -> Published<'a, P, M> {
        let offset = object.chunk.release();
        self.put(media, offset.get() | tag.get())
    }

    /// Stores a link to an object that is reachable already, or null.
    #[inline]
    #[track_caller]
    pub fn publish_link<'a, P: Publication, M: Media>(
        &'a self,
        media: &'a M,
        link: Link,
    ) -> Published<'a, P, M> {
        self.put(media, link.bits())
    }

    /// Publishes `object` only if the slot still holds `current`; otherwise the object is handed back.
    #[track_caller]
    pub fn publish_if<'a, 'h, M: Media, T: Persistent>(
        &'a self,
        media: &'a M,
        current: Link,
        object: Persisted<'h, T>,
        tag: Tag,
    ) -> Result<Published<'a, LinkAndPersist, M>, Persisted<'h, T>> {
        let word = object.chunk.offset.get() | tag.get();
        match media.compare_exchange(&self.0, current.bits(), word | Link::MARK) {
            Ok(_) => {
                let _ = object.chunk.release();
                Ok(Published {
                    slot: self,
                    word,
                    media,
                    policy: PhantomData,
                })
            }
            Err(_) => Err(object),
        }
    }

    #[inline]
    #[track_caller]
    fn put<'a, P: Publication, M: Media>(&'a self, media: &'a M, word: u64) -> Published<'a, P, M> {
        P::store(media, self, word);
        Published {
            slot: self,
            word,
            media,
            policy: PhantomData,
        }
    }
}

/// Stored, not yet durable.
#[derive(Debug)]
#[must_use = "the link itself is not durable until committed"]
pub struct Published<'a, P: Publication, M: Media> {
    slot: &'a PSlot,
    word: u64,
    media: &'a M,
    policy: PhantomData<P>,
}

impl<P: Publication, M: Media> Published<'_, P, M> {
    /// Persists the slot: one write-back (or the non-temporal store made already) and one fence.
    #[inline]
    #[track_caller]
    pub fn commit(self) -> Durable {
        P::commit(self.media, self.slot, self.word);
        Durable(())
    }
}

/// Proof that a write operation made its change durable.
#[derive(Debug)]
#[must_use]
pub struct Durable(());
