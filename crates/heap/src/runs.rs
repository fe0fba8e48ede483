//! Runs of free pages (DCMM's `free_page_list`).
//!
//! I1 Runs neither overlap nor touch: neighbours are one run.
//! I2 All of them lie below `end`, the end of the last page ever handed out.

use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug)]
pub(crate) struct Runs {
    /// Length of the run that starts at a page.
    by_start: BTreeMap<u32, u32>,
    /// (length, start).
    by_len: BTreeSet<(u32, u32)>,
    /// What `allocated` says, in pages.
    pub(crate) end: u32,
}

impl Runs {
    pub(crate) fn new(end: u32) -> Runs {
        Runs {
            by_start: BTreeMap::new(),
            by_len: BTreeSet::new(),
            end,
        }
    }

    /// Takes `pages` pages out of the shortest run that has them; of equals, the lowest.
    pub(crate) fn take(&mut self, pages: u32) -> Option<u32> {
        let &(len, start) = self.by_len.range((pages, 0)..).next()?;
        self.remove(start, len);
        if len > pages {
            self.insert(start + pages, len - pages);
        }
        Some(start)
    }

    /// Takes the run that ends where the allocated pages end: its start and its length, which may be 0. Whoever then
    /// allocates more moves the end.
    pub(crate) fn take_last(&mut self) -> (u32, u32) {
        match self.by_start.last_key_value() {
            Some((&start, &len)) if start + len == self.end => {
                self.remove(start, len);
                (start, len)
            }
            _ => (self.end, 0),
        }
    }

    /// Puts `pages` pages back, which must not be free yet.
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

    /// How many pages are free.
    pub(crate) fn free(&self) -> u64 {
        self.by_start.values().map(|&len| u64::from(len)).sum()
    }

    /// How many runs there are, and the longest.
    pub(crate) fn shape(&self) -> (usize, u32) {
        (self.by_start.len(), self.by_len.last().map_or(0, |&(len, _)| len))
    }

    fn insert(&mut self, start: u32, len: u32) {
        self.by_start.insert(start, len);
        self.by_len.insert((len, start));
    }

    fn remove(&mut self, start: u32, len: u32) {
        self.by_start.remove(&start);
        self.by_len.remove(&(len, start));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the order of frees, neighbours become one run.
    #[test]
    fn runs_coalesce() {
        let mut runs = Runs::new(100);
        for start in (1..100).step_by(2) {
            runs.put(start, 1);
        }
        assert_eq!(runs.shape(), (50, 1));
        assert_eq!(runs.take(2), None);
        for start in (2..100).step_by(2).rev() {
            runs.put(start, 1);
        }
        assert_eq!(runs.shape(), (1, 99));
        assert_eq!(runs.take(99), Some(1));
        assert_eq!(runs.free(), 0);
    }

    /// Taking fits best, and the run at the end can be lengthened.
    #[test]
    fn shortest_run_serves_and_last_run_is_found() {
        let mut runs = Runs::new(50);
        runs.put(10, 5);
        runs.put(20, 3);
        runs.put(45, 5);
        assert_eq!(runs.take(3), Some(20));
        assert_eq!(runs.take(4), Some(10));
        assert_eq!(runs.take_last(), (45, 5));
        assert_eq!(runs.free(), 1);
        runs.end = 60;
        assert_eq!(runs.take_last(), (60, 0));
    }
}
