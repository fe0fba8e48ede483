//! Pages reserved for a thread, in its cache. [`reserve`](crate::heap::reserve) fills and uses them.

use std::ops::Range;

/// The pages set apart for a thread.
#[derive(Debug, Default)]
pub(crate) struct Reservation {
    /// Pages to be used one by one.
    pub(crate) singles: Vec<Range<u32>>,
    /// Contiguous pages, for objects larger than a page's largest class.
    pub(crate) runs: Vec<Range<u32>>,
    /// Pages that are carved already, and their classes.
    pub(crate) carved: Vec<(u32, usize)>,
}

impl Reservation {
    pub(crate) fn is_any(&self) -> bool {
        !(self.singles.is_empty() && self.runs.is_empty() && self.carved.is_empty())
    }

    /// Sets contiguous pages apart: runs of these lengths, and single pages.
    pub(crate) fn split(&mut self, mut pages: Range<u32>, runs: &[u64]) {
        for &run in runs {
            let end = pages.start + run as u32;
            self.runs.push(pages.start..end);
            pages.start = end;
        }
        self.singles.push(pages);
    }

    /// Takes contiguous pages from the shortest run that has enough.
    pub(crate) fn take(&mut self, pages: u32) -> Option<u32> {
        let single = self
            .singles
            .iter_mut()
            .find(|run| pages == 1 && run.start < run.end);
        let long_enough = self.runs.iter_mut().filter(|run| run.end - run.start >= pages);
        let run = single.or(long_enough.min_by_key(|run| run.end - run.start))?;
        run.start += pages;
        Some(run.start - pages)
    }
}
