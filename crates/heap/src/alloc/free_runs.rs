//! Runs of free pages (DCMM's `free_page_list`).
//!
//! I1 Runs neither overlap nor touch: neighbours are one run.
//! I2 All of them lie below `end`, the end of the last page ever handed out.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

#[derive(Debug)]
pub(crate) struct FreeRuns {
    /// Length of the run that starts at a page.
    by_start: BTreeMap<u32, u32>,
    /// (length, start).
    by_len: BTreeSet<(u32, u32)>,
    /// `allocated` in pages.
    pub(crate) end: u32,
    /// Number of free pages, for readers without the lock.
    free: Arc<AtomicU64>,
}

impl FreeRuns {
    pub(crate) fn new(end: u32) -> FreeRuns {
        FreeRuns {
            by_start: BTreeMap::new(),
            by_len: BTreeSet::new(),
            end,
            free: Arc::default(),
        }
    }

    /// The number of free pages, for readers without the lock.
    pub(crate) fn counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.free)
    }

    /// Takes `pages` pages from the beginning of the shortest run that is long enough and suits; of equally long
    /// ones, the lowest.
    pub(crate) fn take(&mut self, pages: u32, suits: impl Fn(u32) -> bool) -> Option<u32> {
        let mut long_enough = self.by_len.range((pages, 0)..);
        let &(len, start) = long_enough.find(|&&(_, start)| suits(start))?;
        self.remove(start, len);
        if len > pages {
            self.insert(start + pages, len - pages);
        }
        Some(start)
    }

    /// Takes the run that ends at the end of the allocated pages: returns its start and its length, which may be 0. The
    /// caller lengthens the run by new pages and moves [`end`](FreeRuns::end) behind them, or puts the run back.
    pub(crate) fn take_last(&mut self) -> (u32, u32) {
        match self.by_start.last_key_value() {
            Some((&start, &len)) if start + len == self.end => {
                self.remove(start, len);
                (start, len)
            }
            _ => (self.end, 0),
        }
    }

    /// The runs of at least this many pages, longest first.
    pub(crate) fn long(&self, pages: u32) -> impl Iterator<Item = (u32, u32)> {
        let long = self.by_len.range((pages, 0)..).rev();
        long.map(|&(len, start)| (start, len))
    }

    /// Takes these pages, if all are free.
    pub(crate) fn take_these(&mut self, start: u32, pages: u32) -> bool {
        let Some((&first, &len)) = self.by_start.range(..=start).next_back() else {
            return false;
        };
        if first + len < start + pages {
            return false;
        }
        self.remove(first, len);
        for (start, pages) in [
            (first, start - first),
            (start + pages, first + len - start - pages),
        ] {
            if pages > 0 {
                self.insert(start, pages);
            }
        }
        true
    }

    /// Puts back `pages` pages, which must not be free yet.
    pub(crate) fn put(&mut self, mut start: u32, mut pages: u32) {
        debug_assert!(start + pages <= self.end);
        if let Some((&before, &len)) = self.by_start.range(..start).next_back() {
            debug_assert!(before + len <= start, "page {start} freed twice");
            if before + len == start {
                self.remove(before, len);
                start = before;
                pages += len;
            }
        }
        if let Some(&len) = self.by_start.get(&(start + pages)) {
            self.remove(start + pages, len);
            pages += len;
        }
        self.insert(start, pages);
    }

    /// The number of free pages.
    pub(crate) fn free(&self) -> u64 {
        self.free.load(Relaxed)
    }

    /// The number of runs, and the length of the longest.
    pub(crate) fn shape(&self) -> (usize, u32) {
        (self.by_start.len(), self.by_len.last().map_or(0, |&(len, _)| len))
    }

    fn insert(&mut self, start: u32, len: u32) {
        self.by_start.insert(start, len);
        self.by_len.insert((len, start));
        self.free.fetch_add(u64::from(len), Relaxed);
    }

    fn remove(&mut self, start: u32, len: u32) {
        self.by_start.remove(&start);
        self.by_len.remove(&(len, start));
        self.free.fetch_sub(u64::from(len), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the order of frees, neighbours become one run.
    #[test]
    fn runs_coalesce() {
        let mut runs = FreeRuns::new(100);
        for start in (1..100).step_by(2) {
            runs.put(start, 1);
        }
        assert_eq!(runs.shape(), (50, 1));
        assert_eq!(runs.take(2, |_| true), None);
        for start in (2..100).step_by(2).rev() {
            runs.put(start, 1);
        }
        assert_eq!(runs.shape(), (1, 99));
        assert_eq!(runs.take(99, |_| true), Some(1));
        assert_eq!(runs.free(), 0);
    }

    /// Taking uses the best fit, and the run at the end can be lengthened.
    #[test]
    fn shortest_run_serves_and_last_run_is_found() {
        let mut runs = FreeRuns::new(50);
        runs.put(10, 5);
        runs.put(20, 3);
        runs.put(45, 5);
        assert_eq!(runs.take(3, |_| true), Some(20));
        assert_eq!(runs.take(4, |start| start != 45), Some(10));
        assert_eq!(runs.take_last(), (45, 5));
        assert_eq!(runs.free(), 1);
        runs.end = 60;
        assert_eq!(runs.take_last(), (60, 0));
    }

    /// Pages are taken from the middle of a run, if they are free.
    #[test]
    fn pages_amid_a_run_are_taken() {
        let mut runs = FreeRuns::new(50);
        runs.put(10, 10);
        assert!(runs.take_these(13, 4));
        assert!(!runs.take_these(12, 2) && !runs.take_these(17, 4) && !runs.take_these(9, 1));
        assert_eq!(runs.long(1).collect::<Vec<_>>(), [(17, 3), (10, 3)]);
        runs.put(13, 4);
        assert_eq!(runs.shape(), (1, 10));
    }
}
