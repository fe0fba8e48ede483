//! The page table: an entry for each page of a pool that grows, found without a lock and never moved.
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
    /// The entry of page `number`.
    #[inline]
    pub(crate) fn page(&self, number: u32) -> &Page {
        let index = u64::from(number) + FIRST;
        let segment = (index.ilog2() - FIRST.ilog2()) as usize;
        let len = FIRST << segment;
        let pages = self.segments[segment].get_or_init(|| (0..len).map(|_| Page::default()).collect());
        &pages[(index - len) as usize]
    }
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
        assert_eq!(
            ((u64::from(u32::MAX) + FIRST).ilog2() - FIRST.ilog2()) as usize,
            SEGMENTS - 1
        );
    }
}
