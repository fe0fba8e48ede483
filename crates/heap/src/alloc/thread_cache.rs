//! The thread-local layer of DCMM: chunks that a thread has claimed and not used yet.
//!
//! A thread claims up to 64 free chunks of a class at a time, all of one word of a page's bitmap, and hands them out
//! lowest first. The chunks that a thread has left when it ends go back to their pages.
//!
//! I1 Only its own thread changes a cache; statistics may read its claims.
//! I2 A cache belongs to its thread until the thread ends. Then it leaves the heap's list of caches, and its claims
//!    go back to their pages, under one lock on the list.

use crate::alloc::arena::Arena;
use crate::alloc::cache::Cache;
use crate::lock::lock;
use pmem::Process;
use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};

/// A number that identifies a heap to its threads; never used twice.
pub(crate) fn new_id() -> u64 {
    static LAST_ID: AtomicU64 = AtomicU64::new(0);
    LAST_ID.fetch_add(1, Relaxed) + 1
}

struct ThreadCache {
    id: u64,
    cache: Arc<Cache>,
    arena: Weak<Arena>,
    process: Process,
}

/// The caches of one thread.
struct Caches(RefCell<Vec<ThreadCache>>);

impl Drop for Caches {
    fn drop(&mut self) {
        LAST.set((0, ptr::null()));
        // In a forked child the list's lock may be held by a thread that does not exist there.
        self.0.get_mut().retain(|entry| entry.process.is_current());
        for entry in self.0.get_mut().drain(..) {
            if let Some(arena) = entry.arena.upgrade() {
                // An audit finds a chunk claimed in the list or free in its page, never neither.
                let mut caches = lock(&arena.caches);
                caches.retain(|cache| !Arc::ptr_eq(cache, &entry.cache));
                for claim in entry.cache.claims() {
                    arena.give_back(claim);
                }
            }
        }
    }
}

thread_local! {
    /// The heap that the thread used last, and its cache for it.
    static LAST: Cell<(u64, *const Cache)> = const { Cell::new((0, ptr::null())) };
    static CACHES: Caches = const { Caches(RefCell::new(Vec::new())) };
}

/// Runs `f` with this thread's cache of the heap `id`, or with `None` if the thread is about to end.
#[inline(always)]
pub(crate) fn with_cache<R>(id: u64, arena: &Arc<Arena>, f: impl FnOnce(Option<&Cache>) -> R) -> R {
    let (last, mut cache) = LAST.get();
    if last != id {
        cache = find_cache(id, arena);
    }
    // SAFETY: a non-null pointer is to a cache that this thread's `CACHES` keeps until the thread ends, when it is
    // taken out of `LAST` first, or until the heap `id` is gone, and the caller is using that heap.
    f(unsafe { cache.as_ref() })
}

/// The thread's cache of the heap, created if it has none; null if the thread is about to end.
#[cold]
#[inline(never)]
fn find_cache(id: u64, arena: &Arc<Arena>) -> *const Cache {
    let found = CACHES.try_with(|caches| {
        let mut caches = caches.0.borrow_mut();
        let known = caches.iter().find(|entry| entry.id == id);
        let cache = match known {
            Some(entry) => Arc::as_ptr(&entry.cache),
            None => {
                caches.retain(|entry| entry.arena.strong_count() > 0);
                let cache = Arc::new(Cache::new());
                lock(&arena.caches).push(Arc::clone(&cache));
                let place = Arc::as_ptr(&cache);
                caches.push(ThreadCache {
                    id,
                    cache,
                    arena: Arc::downgrade(arena),
                    process: Process::current(),
                });
                place
            }
        };
        LAST.set((id, cache));
        cache
    });
    found.unwrap_or(ptr::null())
}
