//! The heap: drafts, retirement, and access by offset.
//!
//! I1 `allocated` is durable before anything in the page it covers is handed out; an allocation persists nothing
//!    else.
//! I2 A chunk is handed out to one thread only, until it is given back unpublished, or is retired and its epoch has
//!    ended.

pub(crate) mod access;
mod attach;
pub(crate) mod reserve;
pub(crate) mod stats;
mod trim;

use crate::alloc::arena::Arena;
use crate::alloc::cache::{Cache, pairs_up};
use crate::alloc::class::{SIZES, SMALL, footprint, small};
use crate::alloc::page::Claim;
use crate::alloc::thread_cache::{new_id, with_cache};
use crate::lock::lock;
use crate::reclaim::phase::{Recovery, StopOnDrop};
use crate::{Error, Guard};
use pmem::{
    Chunk, Draft, Hardware, LINE, Lender, Media, Offset, PersistBatch, Persistent, Pool, Purpose,
    persist_scope, prefetch,
};
use std::any::Any;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};

/// Epoch turns without effect after which the holders of guards are not waited for.
const TURNS: usize = 8;

/// Maximum number of lines of a chunk to prefetch.
const LINES_AHEAD: usize = 4;

/// The memory of a pool. Clones are handles of the same heap; dropping the last one stops recovery and closes the
/// pool. A forked child of the process that made the heap leaves recovery and pool alone when it drops its handles.
pub struct Heap<M: Media = Hardware> {
    /// Dropped before `inner`; `None` in the recovery's own threads.
    pub(crate) user: Option<Arc<StopOnDrop>>,
    pub(crate) inner: Arc<Inner<M>>,
}

impl<M: Media> Clone for Heap<M> {
    fn clone(&self) -> Heap<M> {
        Heap {
            user: self.user.clone(),
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<M: Media> std::fmt::Debug for Heap<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let pool = self.pool();
        f.debug_struct("Heap")
            .field("pool", &pool.path())
            .field("bytes", &pool.len())
            .finish_non_exhaustive()
    }
}

pub(crate) struct Inner<M: Media> {
    pub(crate) id: u64,
    pub(crate) pool: Pool<M>,
    pub(crate) arena: Arc<Arena>,
    pub(crate) recovery: Arc<Recovery>,
    /// Held while the root directory is read or changed.
    pub(crate) roots: Mutex<()>,
    /// The values [attached](Heap::attach) to persistent objects.
    pub(crate) attached: Mutex<HashMap<Offset, Weak<dyn Any + Send + Sync>>>,
    /// Held while pages are added at the end.
    pub(crate) extending: Mutex<()>,
    /// Free bytes when [`Heap::give_back_some`] last gave nothing back; 0 if it has given some since.
    pub(crate) nothing_given_at: AtomicU64,
}

impl<M: Media> Lender for Inner<M> {
    fn give_back(&self, offset: Offset, len: usize) {
        // It was never reachable, so no other thread, not even a tracer, can have seen it.
        if M::REUSES_AT_ONCE {
            self.arena.free_and_report((offset, len, Location::caller()));
        } else {
            self.arena.free(offset);
        }
    }
}

impl<M: Media> Heap<M> {
    /// Creates the heap of a pool. All earlier content of the pool counts as in use until [`recover`](Heap::recover)
    /// has found what is alive; new chunks come from new pages meanwhile. Takes no longer for a large pool than for a
    /// small one.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the pool's end of allocated pages is invalid.
    pub fn new(pool: Pool<M>) -> Result<Heap<M>, Error> {
        let allocated = pool.allocated().load(pool.media());
        let page_size = pool.page_size();
        let damaged = Error::Damaged {
            what: "the end of the allocated pages is invalid",
            offset: allocated,
        };
        let Ok(end) = u32::try_from(allocated / page_size) else {
            return Err(damaged);
        };
        if end == 0 || !allocated.is_multiple_of(page_size) || allocated > pool.len() {
            return Err(damaged);
        }
        if M::REUSES_AT_ONCE {
            crate::reclaim::grace_period::begin();
        }
        let arena = Arc::new(Arena::new(page_size, end, M::REUSES_AT_ONCE));
        let recovery = Arc::new(Recovery::new(end - 1));
        let inner = Arc::new(Inner {
            id: new_id(),
            pool,
            arena,
            recovery,
            roots: Mutex::new(()),
            attached: Mutex::default(),
            extending: Mutex::new(()),
            nothing_given_at: AtomicU64::new(0),
        });
        if let Some(reuse) = &inner.arena.reuse {
            // A deferred free that waits for its guards can outlive the heap.
            let heap = Arc::downgrade(&inner);
            reuse.on_freed(move |offset, len, site| {
                if let Some(heap) = heap.upgrade() {
                    let start = heap.pool.base().as_ptr().wrapping_add(offset.get() as usize);
                    heap.pool.media().freed(start, len, site);
                }
            });
        }
        Ok(Heap {
            user: Some(Arc::new(StopOnDrop::new(&inner.recovery))),
            inner,
        })
    }

    /// The pool.
    #[inline]
    pub fn pool(&self) -> &Pool<M> {
        &self.inner.pool
    }

    /// The media that the pool is written through.
    #[inline(always)]
    pub fn media(&self) -> &M {
        self.inner.pool.media()
    }

    /// The pool's generation.
    #[inline]
    pub fn generation(&self) -> u32 {
        self.inner.pool.generation()
    }

    /// Drafts `value` with `tail` bytes after it, whose initial content is undefined. Its length for
    /// [`retire`](Heap::retire) and [`Trace`](crate::Trace) is its [`footprint`].
    ///
    /// Persists nothing, unless it needs a new page: then one write-back and one fence.
    ///
    /// # Errors
    ///
    /// [`Error::Full`].
    #[inline]
    pub fn draft<'e, 'h, T: Persistent>(
        &'h self,
        value: T,
        tail: usize,
        batch: &PersistBatch<'e, '_, M>,
    ) -> Result<Draft<'e, 'h, T>, Error> {
        let offset = match footprint::<T>(tail) {
            Some(len) if len <= SMALL => self.take_small(len)?,
            len => self.inner.take_long(len.unwrap_or(usize::MAX))?,
        };
        Ok(Draft::new(
            self.chunk(offset, size_of::<T>() + tail)?,
            value,
            batch,
        ))
    }

    /// Drafts two objects, which share one line if both are of the same class, that class is at most half a line, and
    /// there is room for a pair.
    ///
    /// # Errors
    ///
    /// [`Error::Full`].
    #[inline]
    pub fn draft_pair<'e, 'h, A: Persistent, B: Persistent>(
        &'h self,
        a: A,
        a_tail: usize,
        b: B,
        b_tail: usize,
        batch: &PersistBatch<'e, '_, M>,
    ) -> Result<(Draft<'e, 'h, A>, Draft<'e, 'h, B>), Error> {
        if let (Some(a_len @ ..=64), Some(b_len @ ..=64)) = (footprint::<A>(a_tail), footprint::<B>(b_tail))
            && small(a_len) == small(b_len)
            && pairs_up(small(a_len))
            && let Some(first) = self.inner.take_pair(small(a_len))
        {
            let second = first + u64::from(SIZES[small(a_len)]);
            let first = self.chunk(first, size_of::<A>() + a_tail)?;
            let second = self.chunk(second, size_of::<B>() + b_tail)?;
            return Ok((Draft::new(first, a, batch), Draft::new(second, b, batch)));
        }
        Ok((self.draft(a, a_tail, batch)?, self.draft(b, b_tail, batch)?))
    }

    /// Takes the object of `len` bytes at `offset` out of use: once every guard that exists now is gone, its chunk is
    /// free (if it is of an earlier generation, after recovery; if it is retired while recovery traces, after the
    /// trace).
    ///
    /// ([`Removed::retire`](crate::Removed::retire) retires everything below a root, which may take longer than a
    /// guard should be held.)
    ///
    /// # Safety
    ///
    /// * `len` is the [`footprint`] of the draft of a published object at `offset`.
    /// * The caller, or the thread that it works for, has made the object unreachable: no root and no slot that a
    ///   reader or the trace can reach leads to it. From before that until this call, `guard` has been held, or
    ///   recovery is kept from sweeping ([`Removed`](crate::Removed)), or from tracing
    ///   ([`TracePause`](crate::TracePause)).
    /// * No thread uses the object from now on, except under a guard of its own from before this call.
    /// * The object is retired only once.
    #[inline]
    #[track_caller]
    pub unsafe fn retire(&self, guard: &Guard, offset: Offset, len: usize) {
        self.inner.arena.retire(guard, offset, len, Location::caller());
    }

    /// Declares that the program keeps the unreachable object at `offset` for another use: [`audit`](Heap::audit)
    /// does not count it as leaked. After a crash it is found unreachable.
    pub fn hold(&self, offset: Offset) {
        lock(&self.inner.arena.held).insert(offset.get());
    }

    /// Declares that the object at `offset`, held until now, is about to become reachable again, or to be retired.
    pub fn unhold(&self, offset: Offset) {
        lock(&self.inner.arena.held).remove(&offset.get());
    }

    /// Closes the heap and its pool, if this is the last handle; otherwise the last handle to be dropped does.
    ///
    /// # Errors
    ///
    /// [`Error::Pool`] if the medium fails. The pool then counts as not closed, as after a crash.
    pub fn close(self) -> Result<(), Error> {
        match self.into_pool() {
            Some(pool) => pool.close().map_err(|error| Error::Pool(Box::new(error))),
            None => Ok(()),
        }
    }

    /// Drops this handle. Returns the pool if it was the last one; otherwise the other handles keep it open.
    pub fn into_pool(self) -> Option<Pool<M>> {
        let Heap { user, inner } = self;
        drop(user);
        Arc::into_inner(inner).map(|inner| inner.pool)
    }

    #[inline(always)]
    fn take_small(&self, len: usize) -> Result<u64, Error> {
        let class = small(len);
        let inner = &*self.inner;
        let (taken, next) = with_cache(inner.id, &inner.arena, |cache| {
            cache.map_or((None, None), |cache| {
                (cache.take(class, SIZES[class]), cache.next(class, SIZES[class]))
            })
        });
        match (taken, next) {
            (Some(offset), Some(next)) => {
                inner.prefetch_chunk(next, SIZES[class]);
                Ok(offset)
            }
            (Some(offset), None) => {
                inner.claim_ahead(class);
                Ok(offset)
            }
            (None, _) => inner.take_slowly(class),
        }
    }

    /// The chunk just taken at `offset`.
    #[inline(always)]
    fn chunk(&self, offset: u64, len: usize) -> Result<Chunk<'_>, Error> {
        let inner = &*self.inner;
        let Some(place) = Offset::new(offset) else {
            return Err(beyond(offset));
        };
        let start = inner.pool.chunk_start(place, len)?;
        // SAFETY: the bytes are mapped (checked) and ours alone, since the bit of the chunk is set and no other
        // thread's claim had it; a class keeps the alignment of its objects.
        Ok(unsafe { Chunk::new(start, place, len, inner) })
    }
}

/// The heap hands out nothing outside its pages.
#[cold]
fn beyond(offset: u64) -> Error {
    Error::Damaged {
        what: "a page lies beyond the range of links",
        offset,
    }
}

impl<M: Media> Inner<M> {
    /// Prefetches a chunk that a coming draft will write, so that the draft's fence does not wait for memory.
    #[inline(always)]
    fn prefetch_chunk(&self, offset: u64, size: u32) {
        let start = self.pool.base().as_ptr().wrapping_add(offset as usize);
        for line in 0..(size as usize).div_ceil(LINE).min(LINES_AHEAD) {
            prefetch(start.wrapping_add(line * LINE));
        }
    }

    /// Claims chunks for a thread that has just taken its last one, if open pages have any, so that the next one can
    /// be prefetched.
    #[inline(never)]
    fn claim_ahead(&self, class: usize) {
        let Some(claim) = self.arena.claim(class, false) else {
            return;
        };
        let left = with_cache(self.id, &self.arena, |cache| match cache {
            Some(cache) => cache.fill(class, claim),
            None => Some(claim),
        });
        self.give_back_left(left);
        let size = self.arena.classes.size(class);
        self.prefetch_chunk(
            claim.start + u64::from(claim.bits.trailing_zeros()) * u64::from(size),
            size,
        );
    }

    /// Takes a chunk for a length above the small classes.
    fn take_long(&self, len: usize) -> Result<u64, Error> {
        let Some(class) = self.arena.classes.of(len) else {
            return self.take_large(len);
        };
        let size = self.arena.classes.size(class);
        let taken = with_cache(self.id, &self.arena, |cache| cache?.take(class, size));
        taken.map_or_else(|| self.take_slowly(class), Ok)
    }

    /// Takes a chunk of a class of which the thread has claimed none.
    #[cold]
    #[inline(never)]
    fn take_slowly(&self, class: usize) -> Result<u64, Error> {
        let claim = self.retry_when_full(|| self.claim(class, false))?;
        let size = self.arena.classes.size(class);
        let (taken, left) = with_cache(self.id, &self.arena, |cache| match cache {
            Some(cache) => {
                let left = cache.fill(class, claim);
                (cache.take(class, size).unwrap_or(claim.start), left)
            }
            None => {
                // The thread is ending: the rest of the claim goes back.
                let first = claim.bits.trailing_zeros();
                let bits = claim.bits & !(1 << first);
                let taken = claim.start + u64::from(first) * u64::from(size);
                (taken, Some(Claim { bits, ..claim }))
            }
        });
        self.give_back_left(left);
        if claim.bits.count_ones() == 1 && !M::REUSES_AT_ONCE {
            self.claim_ahead(class);
        }
        Ok(taken)
    }

    /// Takes two neighbouring chunks in one line; `None` if there are none and no page for them.
    fn take_pair(&self, class: usize) -> Option<u64> {
        let take = |cache: &Cache| {
            let taken = cache.take_pair(class);
            if let Some(next) = cache.next(class, SIZES[class]) {
                self.prefetch_chunk(next, SIZES[class]);
            }
            taken
        };
        if let Some(taken) = with_cache(self.id, &self.arena, |cache| take(cache?)) {
            return Some(taken);
        }
        // Not under the cache: the claim may persist a new end of pages, where logical threads take turns.
        let claim = self.claim(class, true).ok()?;
        let (taken, left) = with_cache(self.id, &self.arena, |cache| match cache {
            Some(cache) => {
                let left = cache.fill_pairs(class, claim);
                (take(cache), left)
            }
            None => (None, Some(claim)),
        });
        self.give_back_left(left);
        taken
    }

    /// Gives back the rest of a claim: what a cache had left when it was refilled, which is nothing unless logical
    /// threads share the cache; or a claim of a thread that is ending and has no cache.
    fn give_back_left(&self, left: Option<Claim>) {
        if let Some(claim) = left {
            self.arena.give_back(claim);
        }
    }

    /// Claims chunks of a class, in this order: from an open page, a free or new one, one with few free chunks, one set
    /// apart for this thread (not in pairs).
    fn claim(&self, class: usize, in_pairs: bool) -> Result<Claim, Error> {
        let size = self.arena.classes.size(class) as usize;
        self.ask_for_room(size)?;
        loop {
            if let Some(claim) = self.arena.claim(class, in_pairs) {
                return Ok(claim);
            }
            match self.take_pages(1, size) {
                Ok(page) => {
                    if let Some(claim) = self.arena.carve(page, class, in_pairs) {
                        return Ok(claim);
                    }
                }
                // If there is no nearly full page to open, another thread may have just opened it.
                Err(full) if !self.arena.open_nearly_full(class) => {
                    let claim = self.arena.claim(class, in_pairs);
                    let reserved = || (!in_pairs).then(|| self.claim_reserved(class)).flatten();
                    return claim.or_else(reserved).ok_or(full);
                }
                Err(_) => {}
            }
        }
    }

    /// Takes whole pages for an object of `len` bytes.
    #[cold]
    fn take_large(&self, len: usize) -> Result<u64, Error> {
        // More pages than possible: the pool will report why it cannot grow.
        let pages = u32::try_from(self.arena.pages_for(len)).unwrap_or(u32::MAX);
        let take = || {
            self.ask_for_room(len)?;
            self.take_pages(pages, len)
                .or_else(|full| self.take_reserved(pages).ok_or(full))
        };
        let first = self.retry_when_full(take)?;
        self.arena.fill_large(first, pages);
        Ok(self.arena.start_of(first))
    }

    /// Frees retired objects, as far as no guard protects them any more. Those of other heaps of this process that were
    /// retired before come first; it gives up after a few turns that free none of its own.
    pub(crate) fn reclaim_retired(&self) {
        let retired = || Arc::strong_count(&self.arena) - 1;
        let (mut least, mut idle) = (usize::MAX, 0);
        while retired() > 0 && idle < TURNS {
            crate::pin().flush();
            idle = if retired() < least { 0 } else { idle + 1 };
            least = least.min(retired());
        }
    }

    /// Retries before it reports that there is no room: once recovery has swept, if this thread may wait for that,
    /// and once retired objects can have been freed.
    fn retry_when_full<R>(&self, take: impl Fn() -> Result<R, Error>) -> Result<R, Error> {
        let taken = take();
        if !matches!(taken, Err(Error::Full { .. })) {
            return taken;
        }
        self.pool.media().comes_to("full: no pages");
        self.recovery.wait_for_room(self.pool.media());
        self.reclaim_retired();
        loop {
            let running = self.recovery.is_running();
            let taken = take();
            let ended_meanwhile = running && !self.recovery.is_running();
            if !ended_meanwhile || !matches!(taken, Err(Error::Full { .. })) {
                return taken;
            }
        }
    }

    /// Asks the media whether an allocation of these bytes may proceed. A thread with pages set apart always may.
    ///
    /// # Errors
    ///
    /// [`Error::Full`]
    fn ask_for_room(&self, bytes: usize) -> Result<(), Error> {
        if !M::REUSES_AT_ONCE || self.has_reservation() || self.pool.media().has_room() {
            return Ok(());
        }
        self.pool.media().comes_to("full: refused");
        // No pool is this large: the error says why it cannot grow.
        self.pool.grow(u64::MAX).map_err(|source| Error::Full {
            bytes,
            recovering: self.recovery.is_running(),
            source: Box::new(source),
        })
    }

    /// Takes contiguous pages: free ones, preferably with blocks, or new ones at the end. `bytes` is the size of the
    /// request.
    pub(crate) fn take_pages(&self, pages: u32, bytes: usize) -> Result<u32, Error> {
        if let Some(first) = self.take_free_pages(pages) {
            return Ok(first);
        }
        let _extending = pmem::lock_across(&self.extending, self.pool.media());
        if let Some(first) = self.take_free_pages(pages) {
            return Ok(first);
        }
        let (first, last) = lock(&self.arena.runs).take_last();
        let end = first.saturating_add(pages);
        let allocated = self.arena.start_of(end);
        let full = |source| Error::Full {
            bytes,
            recovering: self.recovery.is_running(),
            source: Box::new(source),
        };
        let backed = self.pool.grow(allocated);
        let backed = backed.and_then(|()| self.pool.back_again(self.arena.start_of(first)..allocated));
        if let Err(error) = backed {
            if last > 0 {
                lock(&self.arena.runs).put(first, last);
            }
            return Err(full(error));
        }
        let media = self.pool.media();
        media.site("heap: end of pages");
        persist_scope(media, Purpose::Alloc, |batch| {
            // SAFETY: the space beyond holds no object before this is durable (I1).
            unsafe { self.pool.set_allocated(allocated, &batch) };
            let _durable = batch.fence().durable();
        });
        lock(&self.arena.runs).end = end;
        Ok(first)
    }

    /// Takes contiguous free pages. Pages that were given back to the file system qualify if it has blocks for them.
    pub(crate) fn take_free_pages(&self, pages: u32) -> Option<u32> {
        let first = self.take_free_run(pages)?;
        let bytes = self.arena.start_of(first)..self.arena.start_of(first + pages);
        match self.pool.back_again(bytes) {
            Ok(()) => Some(first),
            Err(_) => {
                lock(&self.arena.runs).put(first, pages);
                None
            }
        }
    }

    /// Takes contiguous free pages, preferably with blocks; the others must be [backed
    /// again](pmem::Pool::back_again).
    pub(crate) fn take_free_run(&self, pages: u32) -> Option<u32> {
        let bytes = |first| self.arena.start_of(first)..self.arena.start_of(first + pages);
        let mut runs = lock(&self.arena.runs);
        runs.take(pages, |first| self.pool.is_backed(&bytes(first)))
            .or_else(|| runs.take(pages, |_| true))
    }
}
