//! Giving free pages back to the file system.
//!
//! Free pages are given back whole, [`PIECE`] at a time: they are taken out of the free runs, lose their blocks, and
//! are put back. No lock is held while they lose their blocks, so other pages are available throughout. (Space beyond
//! the last page loses its blocks under the lock that adds pages.) The pool knows which pages have no blocks, and the
//! allocator has it back them before it hands them out (`take_free_pages`, `take_pages`, `set_apart`). A crash in
//! between needs no repair: nothing persistent leads to a free page, and an opening asks the file system which pages
//! have no blocks.

use crate::Heap;
use crate::lock::lock;
use pmem::{Media, pool};
use std::ops::Range;
use std::sync::atomic::Ordering;

/// Maximum number of bytes to give back in one file system call, but at least a page; these pages are not available
/// meanwhile.
const PIECE: u64 = 64 << 20;

/// Minimum length in bytes of a run that [`Heap::give_back_some`] gives back.
const LONG: u64 = 4 << 20;

/// Free bytes that [`Heap::give_back_some`] leaves with blocks, besides an eighth of the pool.
const SPARE: u64 = 64 << 20;

impl<M: Media> Heap<M> {
    /// Gives all free pages back to the file system, and the pool's space beyond its last page; returns the number of
    /// bytes. Complete only once recovery has ended and the free pages are known.
    ///
    /// # Errors
    ///
    /// If the file system fails.
    pub fn give_back_all(&self) -> Result<u64, pool::Error> {
        self.inner.reclaim_retired();
        Ok(self.give_back(1, u64::MAX)? + self.give_back_tail()?)
    }

    /// Gives back the pool's space beyond its last page, from its end downward. Threads that add pages take from the
    /// same bytes, so they wait while a piece loses its blocks: 4 MiB, or a page if that is more.
    fn give_back_tail(&self) -> Result<u64, pool::Error> {
        let inner = &*self.inner;
        let piece = LONG.max(inner.arena.page_size());
        let (mut end, mut given) = (inner.pool.len(), 0);
        loop {
            let _extending = pmem::lock_across(&inner.extending, self.media());
            let last = inner.arena.start_of(lock(&inner.arena.runs).end);
            let start = last.max(end.saturating_sub(piece));
            if start >= end {
                return Ok(given);
            }
            // SAFETY: these bytes belong to no page, and none is made of them while the lock is held.
            given += unsafe { inner.pool.give_back(start..end) }?;
            end = start;
        }
    }

    /// Free bytes with blocks beyond the amount that keeps them: 64 MiB and an eighth of the pool.
    #[inline]
    fn excess(&self) -> u64 {
        let inner = &*self.inner;
        let kept = SPARE + inner.pool.len() / 8;
        let free = inner.arena.free_bytes();
        if free <= kept {
            return 0;
        }
        free.saturating_sub(inner.pool.given_back()).saturating_sub(kept)
    }

    /// Whether there is so much free space that [`give_back_some`](Heap::give_back_some) would give some back, if it
    /// finds a run that is long enough. Costs two loads if little is free.
    #[inline]
    pub fn has_too_much(&self) -> bool {
        let in_vain = self.inner.nothing_given_at.load(Ordering::Relaxed);
        is_worthwhile(self.excess(), self.inner.arena.free_bytes(), in_vain)
            && self.inner.pool.can_give_back()
    }

    /// Gives back excess free pages, in runs of at least 4 MiB and no more than 64 MiB a call: up to 64 MiB and an
    /// eighth of the pool keep their blocks. For a caller that has just removed something.
    pub fn give_back_some(&self) {
        let pages = (LONG / self.inner.arena.page_size()).max(1);
        // A failure leaves everything as usable as before.
        let given = self
            .give_back(pages as u32, self.excess().min(PIECE))
            .unwrap_or(0);
        let searched = if given == 0 {
            self.inner.arena.free_bytes()
        } else {
            0
        };
        self.inner.nothing_given_at.store(searched, Ordering::Relaxed);
    }

    /// Gives back runs of at least `pages` pages, the longest first, until `max` bytes are reached; the last page may
    /// exceed them.
    fn give_back(&self, pages: u32, max: u64) -> Result<u64, pool::Error> {
        // SAFETY: the pages are free, and ours until they are put back.
        self.give_back_by(pages, max, |bytes| unsafe { self.inner.pool.give_back(bytes) })
    }

    /// Like [`give_back`](Heap::give_back); `punch` removes the blocks of pages that belong to this thread.
    fn give_back_by(
        &self,
        pages: u32,
        max: u64,
        punch: impl Fn(Range<u64>) -> Result<u64, pool::Error>,
    ) -> Result<u64, pool::Error> {
        let inner = &*self.inner;
        let arena = &*inner.arena;
        let bytes = |run: &Range<u32>| arena.start_of(run.start)..arena.start_of(run.end);
        let piece = (PIECE / arena.page_size()).max(1) as u32;
        let candidates: Vec<_> = lock(&arena.runs).long(pages).collect();
        let mut given = 0;
        for (start, len) in candidates {
            if inner.pool.is_given_back(&bytes(&(start..start + len))) {
                continue;
            }
            let mut first = start;
            while first < start + len {
                if given >= max {
                    return Ok(given);
                }
                let left = u32::try_from((max - given) / arena.page_size()).unwrap_or(u32::MAX);
                let end = (first + piece.min(left.max(1))).min(start + len);
                let run = first..end;
                first = end;
                if inner.pool.is_given_back(&bytes(&run)) {
                    continue;
                }
                // Skips pages that another thread has claimed meanwhile, and their neighbours.
                if !lock(&arena.runs).take_these(run.start, run.end - run.start) {
                    continue;
                }
                let done = punch(bytes(&run));
                lock(&arena.runs).put(run.start, run.end - run.start);
                given += done?;
            }
        }
        Ok(given)
    }
}

/// Whether a search for long runs may find one: there is enough to give back, and the number of free bytes differs by the
/// length of a long run from `in_vain`, that of the last search which found none.
#[inline]
fn is_worthwhile(excess: u64, free: u64, in_vain: u64) -> bool {
    excess >= LONG && free.abs_diff(in_vain) >= LONG
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmem::{Hardware, PWord, Pool, PoolOptions, Purpose, persist_scope};

    /// Pages without blocks do not count: the requested amount is given back, out of one free run.
    #[test]
    fn pages_behind_those_that_are_gone_go() {
        const PAGE: u64 = 64 << 10;
        let directory = tempfile::tempdir().expect("a directory");
        let options = PoolOptions {
            page_size: PAGE,
            ..PoolOptions::default()
        };
        let pool =
            Pool::create(directory.path().join("a.pool"), &options, Hardware::detect()).expect("a pool");
        let heap = Heap::new(pool).expect("a heap");
        persist_scope(heap.media(), Purpose::Node, |batch| {
            // Dropping it leaves its pages free.
            drop(heap.draft(PWord::new(1), 7 * PAGE as usize, &batch));
        });
        let inner = &heap.inner;
        let run = lock(&inner.arena.runs).long(8).next();
        let (start, _) = run.expect("a free run");
        let first = inner.arena.start_of(start)..inner.arena.start_of(start + 1);
        // SAFETY: the page is free, and only this test uses the heap.
        let done = unsafe { inner.pool.give_back(first) };
        if done.expect("no failure") == 0 {
            eprintln!("holes cannot be punched here: not tried");
            return;
        }
        let given = heap.give_back(1, 2 * PAGE).expect("no failure");
        assert_eq!((given, inner.pool.given_back()), (2 * PAGE, 3 * PAGE));
    }

    /// A search that has given nothing back is not repeated before there may be another long run.
    #[test]
    fn a_search_in_vain_is_not_repeated() {
        assert!(is_worthwhile(LONG, 20 * LONG, 0));
        assert!(!is_worthwhile(LONG, 20 * LONG, 20 * LONG));
        assert!(!is_worthwhile(LONG, 20 * LONG + 1, 20 * LONG));
        assert!(is_worthwhile(2 * LONG, 21 * LONG, 20 * LONG));
        assert!(is_worthwhile(LONG, 19 * LONG, 20 * LONG));
        assert!(!is_worthwhile(LONG - 1, 20 * LONG, 0));
        let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("memory");
        let heap = Heap::new(pool).expect("a heap");
        persist_scope(heap.media(), Purpose::Node, |batch| {
            // Dropping it leaves its pages free.
            drop(heap.draft(PWord::new(1), LONG as usize, &batch).expect("room"));
        });
        heap.give_back_some();
        let in_vain = heap.inner.nothing_given_at.load(Ordering::Relaxed);
        assert_eq!(in_vain, heap.inner.arena.free_bytes());
        assert!(in_vain > LONG);
    }

    /// While the file system punches a hole, which may take long, other threads take free pages and new ones.
    #[test]
    fn pages_are_taken_amid_a_punch() {
        const PAGE: u64 = 64 << 10;
        let options = PoolOptions {
            page_size: PAGE,
            ..PoolOptions::default()
        };
        let pool = Pool::anonymous(&options, Hardware::detect()).expect("memory");
        let heap = &Heap::new(pool).expect("a heap");
        let object = |pages: u64| {
            persist_scope(heap.media(), Purpose::Node, |batch| {
                let len = (pages * PAGE) as usize - size_of::<PWord>();
                // Dropping it leaves its pages free.
                drop(heap.draft(PWord::new(1), len, &batch).expect("room"));
            });
        };
        object(7);
        let (sender, receiver) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            let given = heap.give_back_by(1, 2 * PAGE, |bytes| {
                let sender = sender.clone();
                scope.spawn(move || {
                    // From the remaining pages, and from new ones.
                    object(5);
                    object(100);
                    // The receiver is gone if its wait timed out.
                    let _ = sender.send(());
                });
                // Upper bound on the wait; beyond it the test counts as hung.
                let answer = receiver.recv_timeout(std::time::Duration::from_secs(60));
                assert_eq!(answer, Ok(()), "another thread waits");
                Ok(bytes.end - bytes.start)
            });
            assert_eq!(given.expect("no failure"), 2 * PAGE);
        });
    }
}
