//! Pages set apart for one thread, so that its allocations do not fail meanwhile, whatever others take.
//!
//! The thread uses them only where an allocation would fail otherwise. They are kept in its cache.
//!
//! I1 A page set apart is in no free run; a carved one is not among any class's open pages until it is given back.

use crate::alloc::page::Claim;
use crate::alloc::reservation::Reservation;
use crate::alloc::thread_cache::with_cache;
use crate::heap::Inner;
use crate::lock::lock;
use crate::{Error, Heap};
use pmem::{Hardware, Media};
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops::Range;

/// Pages set apart for the thread that holds this; dropping it gives back the unused ones. See [`Heap::set_apart`].
#[must_use = "the pages are given back when it is dropped"]
pub struct SetApart<'h, M: Media = Hardware> {
    heap: &'h Heap<M>,
    /// They are in this thread's cache.
    _this_thread: PhantomData<*const ()>,
}

impl<M: Media> std::fmt::Debug for SetApart<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SetApart").finish_non_exhaustive()
    }
}

impl<M: Media> Drop for SetApart<'_, M> {
    fn drop(&mut self) {
        let inner = &*self.heap.inner;
        inner.return_reservation(inner.exchange_reservation(Reservation::default()));
    }
}

impl<M: Media> Heap<M> {
    /// Sets pages apart for this thread, until the returned value is dropped: `pages` pages, each for objects of any
    /// one size class, and enough for objects of the given lengths or slightly shorter ones. For a caller that must
    /// not find the pool full half-way. Other threads get none of these pages; this thread uses other free space
    /// first.
    ///
    /// A thread holds one of these values at a time: another call would give back the pages of the first. An ending
    /// thread has no cache to keep them in: the call succeeds, but the thread gets none.
    ///
    /// Usually costs as much as allocating one object of all these pages together. Grows the pool if no free run is as
    /// long as all of them; if the pool cannot grow that far, gathers shorter runs and grows the pool for the rest.
    ///
    /// # Errors
    ///
    /// [`Error::Full`].
    pub fn set_apart(
        &self,
        pages: u32,
        objects: impl IntoIterator<Item = usize>,
    ) -> Result<SetApart<'_, M>, Error> {
        let inner = &*self.inner;
        let (mut classes, mut runs) = (BTreeMap::new(), Vec::new());
        for len in objects {
            match inner.arena.classes.of(len) {
                Some(class) => *classes.entry(class).or_insert(0u64) += 1,
                None => runs.push(inner.arena.pages_for(len)),
            }
        }
        let mut singles = u64::from(pages);
        for (class, count) in classes {
            let in_a_page = inner.arena.page_size() / u64::from(inner.arena.classes.size(class));
            // Slightly shorter objects may be of the class below, which then wastes a part of a page as well.
            singles += count.div_ceil(in_a_page) + 1;
        }
        let reservation = inner.gather(singles, &runs)?;
        inner.return_reservation(inner.exchange_reservation(reservation));
        Ok(SetApart {
            heap: self,
            _this_thread: PhantomData,
        })
    }
}

impl<M: Media> Heap<M> {
    /// Runs optional work that should rather fail for lack of space than use the pages [set apart](Heap::set_apart)
    /// for this thread: it gets none of them.
    pub fn sparing_apart<R>(&self, run: impl FnOnce() -> R) -> R {
        let inner = &*self.inner;
        if !inner.has_reservation() {
            return run();
        }
        let _hidden = Hidden(inner, inner.exchange_reservation(Reservation::default()));
        run()
    }
}

/// Hides the pages set apart for this thread from its allocations until this is dropped.
struct Hidden<'i, M: Media>(&'i Inner<M>, Reservation);

impl<M: Media> Drop for Hidden<'_, M> {
    fn drop(&mut self) {
        let Hidden(inner, reservation) = self;
        inner.return_reservation(inner.exchange_reservation(std::mem::take(reservation)));
    }
}

impl<M: Media> Inner<M> {
    /// Takes this many single pages and these runs out of the free ones: all in one piece, or else the free ones
    /// piece by piece and the rest in one piece, so that a pool grows for everything missing or not at all. Only then
    /// do pages that were given back to the file system get blocks again.
    fn gather(&self, singles: u64, runs: &[u64]) -> Result<Reservation, Error> {
        // More pages than possible: the pool will report why it cannot grow.
        let take = |pages: u64| {
            let bytes = usize::try_from(pages.saturating_mul(self.arena.page_size()));
            let pages = u32::try_from(pages).unwrap_or(u32::MAX);
            let first = self.take_pages(pages, bytes.unwrap_or(usize::MAX))?;
            Ok::<_, Error>(first..first + pages)
        };
        let all = runs.iter().fold(singles, |all, &run| all.saturating_add(run));
        let mut reservation = Reservation::default();
        if let Ok(pages) = take(all) {
            reservation.split(pages, runs);
            return Ok(reservation);
        }
        let free = |pages: u64| {
            let pages = u32::try_from(pages).ok()?;
            let first = self.take_free_run(pages)?;
            Some(first..first + pages)
        };
        let mut missing = Vec::new();
        for &run in runs {
            match free(run) {
                Some(pages) => reservation.runs.push(pages),
                None => missing.push(run),
            }
        }
        let mut gathered = 0;
        while gathered < singles
            && let Some(page) = free(1)
        {
            reservation.singles.push(page);
            gathered += 1;
        }
        let rest = missing
            .iter()
            .fold(singles - gathered, |all, run| all.saturating_add(*run));
        let free: Vec<_> = reservation
            .runs
            .iter()
            .chain(&reservation.singles)
            .cloned()
            .collect();
        let taken = match rest {
            0 => Ok(()),
            rest => take(rest).map(|pages| reservation.split(pages, &missing)),
        };
        match taken.and_then(|()| self.back_again(free)) {
            Ok(()) => Ok(reservation),
            Err(full) => {
                self.return_reservation(reservation);
                Err(full)
            }
        }
    }

    /// Backs pages that were free and now belong to this thread. If the file system lacks room for all of them, those
    /// that got blocks in this call lose them again.
    fn back_again(&self, free: Vec<Range<u32>>) -> Result<(), Error> {
        let mut backed = Vec::new();
        for pages in free {
            let bytes = self.arena.start_of(pages.start)..self.arena.start_of(pages.end);
            let had_none = self.pool.is_given_back(&bytes);
            if let Err(source) = self.pool.back_again(bytes.clone()) {
                for bytes in backed {
                    // SAFETY: this thread has taken these pages and stored nothing there. A failure is harmless: they
                    // are backed again before they are handed out.
                    let _ = unsafe { self.pool.give_back(bytes) };
                }
                return Err(Error::Full {
                    bytes: (bytes.end - bytes.start) as usize,
                    recovering: self.recovery.is_running(),
                    source: Box::new(source),
                });
            }
            if had_none {
                backed.push(bytes);
            }
        }
        Ok(())
    }

    /// Whether pages are set apart for this thread.
    pub(crate) fn has_reservation(&self) -> bool {
        with_cache(self.id, &self.arena, |cache| {
            cache.is_some_and(|cache| lock(&cache.reservation).is_any())
        })
    }

    /// Claims chunks of a class in a page that is set apart for this thread.
    pub(crate) fn claim_reserved(&self, class: usize) -> Option<Claim> {
        with_cache(self.id, &self.arena, |cache| {
            let reservation = &mut *lock(&cache?.reservation);
            let mut carved = reservation.carved.iter().filter(|(_, of)| *of == class);
            if let Some(claim) = carved.find_map(|&(page, _)| self.arena.claim_in_page(page, class)) {
                return Some(claim);
            }
            let page = reservation.take(1)?;
            reservation.carved.push((page, class));
            self.arena.carve_reserved(page, class)
        })
    }

    /// Takes contiguous pages that are set apart for this thread.
    pub(crate) fn take_reserved(&self, pages: u32) -> Option<u32> {
        with_cache(self.id, &self.arena, |cache| {
            lock(&cache?.reservation).take(pages)
        })
    }

    /// Replaces the pages set apart for this thread, and returns the previous ones; returns `reservation` itself if the
    /// thread is ending.
    fn exchange_reservation(&self, reservation: Reservation) -> Reservation {
        with_cache(self.id, &self.arena, |cache| match cache {
            Some(cache) => std::mem::replace(&mut *lock(&cache.reservation), reservation),
            None => reservation,
        })
    }

    /// Gives back the unused pages.
    fn return_reservation(&self, reservation: Reservation) {
        for (page, class) in reservation.carved {
            self.arena.unreserve(page, class);
        }
        let mut free = lock(&self.arena.runs);
        for run in reservation.singles.into_iter().chain(reservation.runs) {
            if run.start < run.end {
                free.put(run.start, run.end - run.start);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pmem::{Offset, PWord, Pool, PoolOptions, Purpose, Tag, persist_scope};
    use std::os::unix::fs::MetadataExt;

    const PAGE: u64 = 64 << 10;

    /// Creates a heap of `pages` pages.
    fn heap_of(pages: u64) -> Heap<Hardware> {
        let options = PoolOptions {
            page_size: PAGE,
            max_size: (pages + 1) * PAGE,
            ..PoolOptions::default()
        };
        let pool = Pool::anonymous(&options, Hardware::detect()).expect("memory");
        Heap::new(pool).expect("a new pool")
    }

    /// Allocates up to `max` objects of `len` bytes, until there is no room; returns how many.
    fn fill(heap: &Heap<Hardware>, len: usize, max: usize) -> usize {
        let one = || {
            persist_scope(heap.media(), Purpose::Node, |batch| {
                let draft = heap.draft(PWord::new(1), len - size_of::<PWord>(), &batch)?;
                let persisted = draft.flush(&batch).persisted(&batch.fence());
                Ok::<_, Error>(persisted.into_link(Tag::default()))
            })
        };
        (0..max).take_while(|_| one().is_ok()).count()
    }

    /// Another thread that fills the pool gets nothing of the pages set apart; the thread that they are set apart for
    /// gets all of them, for several classes and for whole pages; and the unused ones can be reused.
    #[test]
    fn what_is_set_apart_is_there() {
        const ALL: usize = usize::MAX;
        let heap = heap_of(16);
        drop(heap.set_apart(9, [100_000]).expect("room"));
        // Three pages for any class, one for the class of 20,000 bytes and one for the class below, and two for the
        // large object: 7 of 16.
        let reservation = heap.set_apart(3, [100_000, 20_000]).expect("room");
        assert!(heap.set_apart(10, []).is_err(), "there are 9 pages");
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(fill(&heap, 60_000, ALL), 9));
        });
        assert_eq!(fill(&heap, 100_000, ALL), 1);
        assert_eq!(fill(&heap, 20_000, 1), 1);
        assert_eq!(fill(&heap, 1024, ALL), 4 * 64);
        assert_eq!(fill(&heap, 60_000, ALL), 0);
        drop(reservation);
        assert_eq!(fill(&heap, 20_000, ALL), 2);
    }

    /// A thread frees a chunk, and puts its page into a list only after the page has become free and was set apart:
    /// the page stays apart.
    #[test]
    fn a_carved_page_stays_apart() {
        let heap = heap_of(4);
        let arena = &heap.inner.arena;
        let class = arena.classes.of(1024).expect("a class");
        let reservation = heap.set_apart(4, []).expect("room");
        assert_eq!(fill(&heap, 1024, 1), 1);
        arena.relist(1, class);
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(fill(&heap, 1024, 1), 0));
        });
        assert_eq!(fill(&heap, 1024, 63), 63);
        drop(reservation);
        // The carved page is full; all threads now allocate from the other three.
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(fill(&heap, 1024, 1), 1));
        });
    }

    /// If no free run has all the pages, shorter runs are gathered; if they do not suffice, all are given back.
    #[test]
    fn pages_are_gathered() {
        let heap = heap_of(16);
        assert_eq!(fill(&heap, 60_000, 16), 16);
        for page in [1, 2, 4, 6, 7, 8, 10] {
            heap.inner.arena.free(Offset::new(page * PAGE).expect("not null"));
        }
        assert!(heap.set_apart(5, [180_000, 180_000]).is_err());
        assert!(heap.set_apart(8, []).is_err());
        let reservation = heap.set_apart(2, [100_000, 180_000]).expect("room");
        assert_eq!(fill(&heap, 180_000, 2), 1);
        assert_eq!(fill(&heap, 60_000, 3), 3);
        drop(reservation);
        assert_eq!(fill(&heap, 60_000, 2), 1);
    }

    /// Free pages and new ones together may suffice. If they do not, the pool does not grow.
    #[test]
    fn pools_grow_for_all_that_is_missing_or_not_at_all() {
        let heap = heap_of(16);
        let end = || lock(&heap.inner.arena.runs).end;
        assert_eq!(fill(&heap, 60_000, 6), 6);
        for page in [2, 4] {
            heap.inner.arena.free(Offset::new(page * PAGE).expect("not null"));
        }
        let before = end();
        assert!(heap.set_apart(13, []).is_err());
        assert!(heap.set_apart(10, [180_000]).is_err());
        assert_eq!(end(), before);
        let reservation = heap.set_apart(9, [180_000]).expect("room");
        assert_eq!(end(), 17);
        assert_eq!(fill(&heap, 180_000, 2), 1);
        assert_eq!(fill(&heap, 60_000, 16), 9);
        drop(reservation);
    }

    /// Free pages that were given back to the file system get blocks again only if they are really set apart.
    #[test]
    fn a_refusal_leaves_the_file_as_it_was() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.pool");
        let options = PoolOptions {
            page_size: PAGE,
            max_size: 17 * PAGE,
            ..PoolOptions::default()
        };
        let pool = Pool::create(&path, &options, Hardware::detect()).expect("a pool");
        let heap = Heap::new(pool).expect("a new pool");
        assert_eq!(fill(&heap, 60_000, 16), 16);
        for page in [2, 4, 6, 8, 9] {
            heap.inner.arena.free(Offset::new(page * PAGE).expect("not null"));
        }
        if heap.give_back_all().expect("no failure") == 0 {
            eprintln!("holes cannot be punched here: not tried");
            return;
        }
        let held = || {
            let blocks = std::fs::metadata(&path).expect("the file").blocks();
            (heap.pool().given_back(), blocks)
        };
        let before = held();
        assert!(heap.set_apart(6, []).is_err());
        assert!(heap.set_apart(2, [100_000, 100_000]).is_err());
        assert_eq!(held(), before);
        let reservation = heap.set_apart(3, [100_000]).expect("room");
        assert_eq!(heap.pool().given_back(), 0);
        assert_eq!(fill(&heap, 100_000, 2), 1);
        assert_eq!(fill(&heap, 60_000, 4), 3);
        drop(reservation);
    }

    /// Optional work uses none of the pages set apart; they are all there afterwards.
    #[test]
    fn what_spares_it_gets_none_of_it() {
        let heap = heap_of(4);
        let reservation = heap.set_apart(2, []).expect("room");
        let before = heap.sparing_apart(|| fill(&heap, 1024, usize::MAX));
        assert!(before > 0, "two pages are free");
        assert_eq!(heap.sparing_apart(|| fill(&heap, 1024, 1)), 0);
        assert_eq!(fill(&heap, 1024, usize::MAX), before);
        drop(reservation);
        assert_eq!(fill(&heap, 1024, 1), 0);
    }
}
