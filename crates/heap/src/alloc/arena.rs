//! The global layer of DCMM: pages, which of them have free chunks, and how chunks are freed.
//!
//! All of it is DRAM and knows neither the pool nor its media, so that a free that waits for its epoch can outlive
//! the heap.
//!
//! I1 Each page is in exactly one place: in the free runs; carved, and among its class's open or nearly full pages if
//!    and only if it has both free and live chunks; part of a large object; set apart for a thread (`reservation`); or
//!    not swept yet.
//! I2 A chunk's bit changes only under its page's lock; the list that a page is in changes under that list's lock
//!    (`relist`), after the bit.
//! I3 While a trace runs, nothing that was reachable since it began is freed (see
//!    [`quarantine`](crate::alloc::quarantine)).

use crate::alloc::cache::Cache;
use crate::alloc::class::Classes;
use crate::alloc::free_runs::FreeRuns;
use crate::alloc::page::{Chunks, Claim, Kind, State, Table};
use crate::alloc::quarantine::Quarantine;
use crate::alloc::reuse::Reuse;
use crate::lock::lock;
use crossbeam_utils::CachePadded;
use pmem::Offset;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes that a thread claims at a time; but at least one chunk, and at most 64.
const CLAIM_BYTES: u32 = 32 << 10;

/// A nearly full page is opened once one in this many of its chunks is free, so that a claim finds several in a word of
/// its bitmap, and nearly full pages need not be searched for each chunk.
const REOPEN_SHARE: u32 = 16;

/// Number of open pages to search for a pair, beside the one carved last for pairs, before a new page is taken: the
/// highest ones, which single chunks, taken from the lowest, leave alone.
const PAGES_FOR_PAIRS: usize = 4;

#[derive(Debug)]
pub(crate) struct Arena {
    pub(crate) classes: Classes,
    pub(crate) table: Table,
    pub(crate) runs: Mutex<FreeRuns>,
    free_pages: Arc<AtomicU64>,
    /// The caches of the threads that use the heap.
    pub(crate) caches: Mutex<Vec<Arc<Cache>>>,
    /// Frees of chunks that were free already; the audit reports them.
    pub(crate) freed_twice: AtomicU64,
    /// Objects that the program keeps though no root reaches them.
    pub(crate) held: Mutex<BTreeSet<u64>>,
    page_shift: u32,
    /// The end of the pages of earlier generations.
    old_end: u32,
    /// For each class, its pages with both free and live chunks.
    partial: Box<[CachePadded<Mutex<Partial>>]>,
    /// Retirements before recovery has found which objects are alive.
    pub(crate) quarantine: Quarantine,
    /// Under media that reuse memory at once: the state for that.
    pub(crate) reuse: Option<Reuse>,
}

/// The pages of a class with both free and live chunks.
#[derive(Debug, Default)]
struct Partial {
    /// Those to claim from, lowest first, until they are full.
    open: BTreeSet<u32>,
    /// Those with too few free chunks yet.
    nearly_full: BTreeSet<u32>,
    /// The page that was carved last for pairs. Where a lower page was free, it is not among the highest.
    for_pairs: Option<u32>,
}

impl Partial {
    fn remove(&mut self, page: u32) {
        if !self.open.remove(&page) {
            self.nearly_full.remove(&page);
        }
    }

    fn open(&mut self, page: u32) {
        self.nearly_full.remove(&page);
        self.open.insert(page);
    }
}

impl Arena {
    /// The arena of a pool whose first `end` pages are allocated. With `reuses_at_once`, chunks are claimed one at a
    /// time, the one freed last first.
    pub(crate) fn new(page_size: u64, end: u32, reuses_at_once: bool) -> Arena {
        let classes = Classes::new(page_size);
        let runs = FreeRuns::new(end);
        Arena {
            partial: (0..classes.count()).map(|_| CachePadded::default()).collect(),
            reuse: reuses_at_once.then(|| Reuse::new(classes.count())),
            classes,
            table: Table::default(),
            free_pages: runs.counter(),
            runs: Mutex::new(runs),
            caches: Mutex::default(),
            freed_twice: AtomicU64::new(0),
            held: Mutex::default(),
            page_shift: page_size.ilog2(),
            old_end: end,
            quarantine: Quarantine::new(end > 1),
        }
    }

    #[inline]
    pub(crate) fn page_size(&self) -> u64 {
        1 << self.page_shift
    }

    /// The pages of earlier generations.
    pub(crate) fn old_pages(&self) -> Range<u32> {
        1..self.old_end
    }

    /// The page that holds `offset`.
    #[inline]
    pub(crate) fn page_of(&self, offset: u64) -> u32 {
        (offset >> self.page_shift) as u32
    }

    /// The offset within its page.
    #[inline]
    pub(crate) fn within(&self, offset: u64) -> u32 {
        (offset & (self.page_size() - 1)) as u32
    }

    /// The start of a page.
    #[inline]
    pub(crate) fn start_of(&self, page: u32) -> u64 {
        u64::from(page) << self.page_shift
    }

    /// Bytes of the free pages.
    #[inline]
    pub(crate) fn free_bytes(&self) -> u64 {
        self.free_pages.load(Ordering::Relaxed) << self.page_shift
    }

    /// The number of pages that hold `bytes` bytes.
    pub(crate) fn pages_for(&self, bytes: usize) -> u64 {
        (bytes as u64).div_ceil(self.page_size())
    }

    /// Claims free chunks of a class from an open page, if there is one: from one word of its bitmap, `start` counted
    /// from the pool's base.
    pub(crate) fn claim(&self, class: usize, in_pairs: bool) -> Option<Claim> {
        if !in_pairs && let Some(claim) = self.claim_freed(class) {
            return Some(claim);
        }
        let Partial { open, for_pairs, .. } = &mut *lock(&self.partial[class]);
        let claim_in_page = |&page: &u32| {
            let mut state = self.table.page(page).lock();
            let Kind::Chunks(chunks) = &mut state.kind else {
                return None;
            };
            let claim = self.claim_in(chunks, in_pairs)?;
            Some((page, claim, chunks.is_full()))
        };
        let (page, claim, full) = if in_pairs {
            let carved = for_pairs.iter().filter(|page| open.contains(page));
            let highest = open.iter().rev().take(PAGES_FOR_PAIRS);
            carved.chain(highest).find_map(claim_in_page)?
        } else {
            open.iter().find_map(claim_in_page)?
        };
        if full {
            open.remove(&page);
        }
        Some(self.rebase(claim, page))
    }

    /// Claims the chunk of a class that was freed last, under media that reuse memory at once.
    fn claim_freed(&self, class: usize) -> Option<Claim> {
        let freed = &self.reuse.as_ref()?.freed[class];
        loop {
            let offset = lock(freed).pop()?;
            let number = self.page_of(offset);
            let mut state = self.table.page(number).lock();
            let swept = state.swept;
            // A chunk that was handed out since, or whose page now belongs to another class, is dropped.
            let claim = match &mut state.kind {
                Kind::Chunks(chunks) if swept && chunks.class() == class => chunks
                    .slot(self.within(offset))
                    .and_then(|slot| chunks.claim_slot(slot)),
                _ => None,
            };
            if let Some(claim) = claim {
                drop(state);
                self.relist(number, class);
                return Some(self.rebase(claim, number));
            }
        }
    }

    /// Opens the nearly full pages of a class, for lack of others; returns whether there were any.
    pub(crate) fn open_nearly_full(&self, class: usize) -> bool {
        let partial = &mut *lock(&self.partial[class]);
        let any = !partial.nearly_full.is_empty();
        partial.open.append(&mut partial.nearly_full);
        any
    }

    /// Claims free chunks of a page, if it belongs to the class and has any.
    pub(crate) fn claim_in_page(&self, page: u32, class: usize) -> Option<Claim> {
        let mut partial = lock(&self.partial[class]);
        let mut state = self.table.page(page).lock();
        let Kind::Chunks(chunks) = &mut state.kind else {
            return None;
        };
        if chunks.class() != class {
            return None;
        }
        let claim = self.claim_in(chunks, false)?;
        if chunks.is_full() {
            partial.remove(page);
        }
        Some(self.rebase(claim, page))
    }

    /// Like [`carve`](Arena::carve), for a page that is [set apart](crate::Heap::set_apart): no other thread claims
    /// from it.
    pub(crate) fn carve_reserved(&self, page: u32, class: usize) -> Option<Claim> {
        let mut chunks = Chunks::new(self.page_size(), class, self.classes.size(class));
        let claim = self.claim_in(&mut chunks, false);
        let mut state = self.table.page(page).lock();
        state.swept = true;
        state.reserved = true;
        state.kind = Kind::Chunks(chunks);
        claim.map(|claim| self.rebase(claim, page))
    }

    /// Opens a page that was carved apart to all threads.
    pub(crate) fn unreserve(&self, page: u32, class: usize) {
        self.table.page(page).lock().reserved = false;
        self.relist(page, class);
    }

    /// Carves a free page for the class, and claims its first chunks.
    pub(crate) fn carve(&self, page: u32, class: usize, in_pairs: bool) -> Option<Claim> {
        let mut chunks = Chunks::new(self.page_size(), class, self.classes.size(class));
        let claim = self.claim_in(&mut chunks, in_pairs);
        let full = chunks.is_full();
        let mut partial = lock(&self.partial[class]);
        let mut state = self.table.page(page).lock();
        state.swept = true;
        state.kind = Kind::Chunks(chunks);
        if in_pairs {
            partial.for_pairs = Some(page);
        }
        if !full {
            partial.open(page);
        }
        claim.map(|claim| self.rebase(claim, page))
    }

    fn claim_in(&self, chunks: &mut Chunks, in_pairs: bool) -> Option<Claim> {
        if in_pairs {
            chunks.claim_pairs()
        } else {
            let max = if self.reuse.is_some() { 1 } else { 64 };
            chunks.claim((CLAIM_BYTES / chunks.size()).clamp(1, max))
        }
    }

    fn rebase(&self, claim: Claim, page: u32) -> Claim {
        Claim {
            start: claim.start + self.start_of(page),
            ..claim
        }
    }

    /// Fills free pages with one object.
    pub(crate) fn fill_large(&self, first: u32, pages: u32) {
        for page in first..first + pages {
            let mut state = self.table.page(page).lock();
            state.swept = true;
            state.kind = if page == first {
                Kind::Large {
                    pages,
                    visited: false,
                }
            } else {
                Kind::Rest
            };
        }
    }

    /// Frees the object at `offset`. In a page not swept yet it loses its mark, if it has one.
    pub(crate) fn free(&self, offset: Offset) {
        let number = self.page_of(offset.get());
        let mut state = self.table.page(number).lock();
        let swept = state.swept;
        match &mut state.kind {
            Kind::Chunks(chunks) => {
                let slot = chunks.slot(self.within(offset.get()));
                let was_live = slot.is_some_and(|slot| chunks.clear(slot));
                self.note_free(was_live || !swept);
                let (class, free) = (chunks.class(), chunks.free());
                let moves = chunks.used() == 0 || free == 1 || free == reopen_threshold(chunks);
                drop(state);
                if let Some(reuse) = &self.reuse {
                    lock(&reuse.freed[class]).push(offset.get());
                }
                if swept && moves {
                    self.relist(number, class);
                }
            }
            Kind::Large { pages, .. } => {
                let pages = *pages;
                drop(state);
                self.free_large(number, pages);
            }
            Kind::Free | Kind::Rest => self.note_free(!swept),
        }
    }

    /// Counts a free of a chunk that was free already. In a damaged pool two links may lead to one object.
    fn note_free(&self, was_in_use: bool) {
        if !was_in_use {
            self.freed_twice.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Frees the pages of a large object. The sweep will put those that it has not reached yet among the free runs;
    /// the others are put there now.
    fn free_large(&self, first: u32, pages: u32) {
        let end = first + pages;
        let mut swept = first..first;
        for page in first..end {
            let mut state = self.table.page(page).lock();
            state.kind = Kind::Free;
            if state.swept {
                swept.end = page + 1;
                continue;
            }
            drop(state);
            self.put(std::mem::replace(&mut swept, page + 1..page + 1));
        }
        self.put(swept);
    }

    fn put(&self, pages: Range<u32>) {
        if !pages.is_empty() {
            lock(&self.runs).put(pages.start, pages.end - pages.start);
        }
    }

    /// Gives a claim back, or the rest of it.
    pub(crate) fn give_back(&self, claim: Claim) {
        let number = self.page_of(claim.start);
        let mut state = self.table.page(number).lock();
        if let Kind::Chunks(chunks) = &mut state.kind {
            chunks.give_back(Claim {
                start: u64::from(self.within(claim.start)),
                ..claim
            });
            let class = chunks.class();
            drop(state);
            self.relist(number, class);
        }
    }

    /// The slot, in a page with this state, of the object of `len` bytes (0: unknown length) at `offset`; 0 for a
    /// large object.
    pub(crate) fn slot_of(&self, state: &State, offset: Offset, len: u64) -> Result<u32, &'static str> {
        let within = self.within(offset.get());
        match &state.kind {
            Kind::Chunks(chunks) => {
                let slot = chunks.slot(within).ok_or("not the start of a chunk")?;
                if u64::from(chunks.size()) < len {
                    return Err("longer than its chunk");
                }
                if !chunks.is_live(slot) {
                    return Err("its chunk is free");
                }
                Ok(slot)
            }
            Kind::Large { pages, .. }
                if within == 0 && (len == 0 || len.div_ceil(self.page_size()) == u64::from(*pages)) =>
            {
                Ok(0)
            }
            Kind::Large { .. } => Err("not the start or length of the large object there"),
            Kind::Rest => Err("inside a large object"),
            Kind::Free => Err("its page is free"),
        }
    }

    /// Puts a page of the class into the list where its counts say it belongs. (If the page has left the class, the
    /// thread that changed it has done this. If it is set apart, it stays so: the caller may have freed a chunk from
    /// its former use.)
    pub(crate) fn relist(&self, number: u32, class: usize) {
        let mut partial = lock(&self.partial[class]);
        let mut state = self.table.page(number).lock();
        let Kind::Chunks(chunks) = &state.kind else {
            return;
        };
        if chunks.class() != class || !state.swept || state.reserved {
            return;
        }
        if chunks.used() == 0 {
            state.kind = Kind::Free;
            partial.remove(number);
            drop((state, partial));
            lock(&self.runs).put(number, 1);
        } else if chunks.is_full() {
            partial.remove(number);
        } else if chunks.free() >= reopen_threshold(chunks) {
            partial.open(number);
        } else if !partial.open.contains(&number) {
            partial.nearly_full.insert(number);
        }
    }
}

/// Number of free chunks at which a page is opened again.
fn reopen_threshold(chunks: &Chunks) -> u32 {
    (chunks.slots() / REOPEN_SHARE).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Heap;
    use crate::alloc::class::small;
    use pmem::{Hardware, PWord, Pool, PoolOptions, Purpose, persist_scope};
    use std::sync::TryLockError;
    use std::sync::mpsc::channel;

    /// An audit beside an ending thread finds no leak, though half of the thread's claims are given back.
    #[test]
    fn an_ending_thread_leaks_nothing() {
        let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("memory");
        let heap = Heap::new(pool).expect("a heap");
        let arena = &*heap.inner.arena;
        let first = small(64);
        let (claimed, has_claimed) = channel();
        let (end, may_end) = channel::<()>();
        std::thread::scope(|scope| {
            let heap = &heap;
            let ending = scope.spawn(move || {
                persist_scope(heap.media(), Purpose::Node, |batch| {
                    for tail in [50, 500] {
                        drop(heap.draft(PWord::new(1), tail, &batch).expect("room"));
                    }
                });
                claimed.send(()).expect("the other thread waits");
                may_end.recv().expect("told");
            });
            has_claimed.recv().expect("no panic");
            // The thread gives the first claim back to its page, and then waits for this lock.
            let partial = lock(&arena.partial[first]);
            end.send(()).expect("it waits");
            let gives_back = |page| match &arena.table.page(page).lock().kind {
                Kind::Chunks(chunks) => chunks.class() == first && chunks.used() == 0,
                _ => false,
            };
            while !(1..lock(&arena.runs).end).any(gives_back) {
                std::thread::yield_now();
            }
            if matches!(arena.caches.try_lock(), Err(TryLockError::WouldBlock)) {
                // The audit waits until the thread has given everything back.
                drop(partial);
            }
            let audit = heap.audit(&Vec::new(), 1).expect("an audit");
            assert!(audit.is_clean(), "{audit:?}");
            drop(ending);
        });
    }
}
