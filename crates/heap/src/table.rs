//! The page table: an entry for each page of a growing pool, found without a lock and never moved.
//!
//! Segment k holds 64 x 2^k entries and is made when it is first needed.

use crate::page::Page;
use std::sync::OnceLock;

const FIRST: u64 = 64;
const SEGMENTS: usize = 27;

#[derive(Debug, Default)]
pub(crate) struct Table {
    segments: [OnceLock<Box<[Page]>>; SEGMENTS],
}

impl Table {
    /// The entry of page `number`, which must exist in the pool.
    #[inline]
    pub(crate) fn page(&self, number: u32) -> &Page {
        let (segment, at) = place(number);
        let new = || (0..FIRST << segment).map(|_| Page::default()).collect();
        &self.segments[segment].get_or_init(new)[at]
    }

    /// The entry of page `number`, which may come from a damaged link; `None` if it does not exist yet. Creates none:
    /// segments of pages beyond any pool would take gigabytes.
    pub(crate) fn page_if_made(&self, number: u32) -> Option<&Page> {
        let (segment, at) = place(number);
        self.segments[segment].get().map(|pages| &pages[at])
    }
}

/// The segment of a page's entry, and the entry's place there.
#[inline]
fn place(number: u32) -> (usize, usize) {
    let index = u64::from(number) + FIRST;
    let segment = index.ilog2() - FIRST.ilog2();
    (segment as usize, (index - (FIRST << segment)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every page has an entry of its own.
    #[test]
    fn entries_are_distinct() {
        let table = Table::default();
        let at = |number| std::ptr::from_ref(table.page(number)).addr();
        let mut all: Vec<usize> = (0..1000).map(at).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 1000);
        assert_eq!(at(63), at(63));
        assert_eq!(place(u32::MAX).0, SEGMENTS - 1);
    }
}
