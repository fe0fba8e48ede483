//! Marking and sweeping the pages of earlier generations (ROART §3.4.2, Fig. 13).
//!
//! The marks are the pages' own bitmaps, so when the trace has ended the sweep has nothing to compute: it hands the
//! page to the allocator.
//!
//! I1 A page's class is that of the first object marked in it; an object of another class there means damage.
//! I2 A page is swept once, after the very last mark.
//! I3 An object of this generation already counts as used in its page. Whether the trace has met it is recorded
//!    separately ([`Chunks::visit`]), so that its links are followed once. While the trace runs, no object that it has
//!    met is reused, so a record always concerns the same object.

use crate::Error;
use crate::alloc::arena::Arena;
use crate::alloc::page::{Chunks, Kind};
use crate::lock::lock;
use pmem::Offset;

impl Arena {
    /// Marks an object of `len` bytes that is live, or was retired during recovery; returns `false` if it was marked
    /// before.
    pub(crate) fn mark(&self, offset: Offset, len: u64) -> Result<bool, Error> {
        let number = self.page_of(offset.get());
        let damaged = |what| {
            Err(Error::Damaged {
                what,
                offset: offset.get(),
            })
        };
        if number >= self.old_pages().end {
            return self.mark_new(offset, number, len).or_else(damaged);
        }
        if number == 0 {
            return damaged("an object lies in the root directory");
        }
        let Some(class) = usize::try_from(len).ok().and_then(|len| self.classes.of(len)) else {
            return self.mark_large(offset, number, len);
        };
        let mut state = self.table.page(number).lock();
        if state.swept {
            return damaged("an object is met after the sweep");
        }
        if matches!(state.kind, Kind::Free) {
            let size = self.classes.size(class);
            state.kind = Kind::Chunks(Chunks::new(self.page_size(), class, size));
        }
        match &mut state.kind {
            Kind::Chunks(chunks) if chunks.class() == class => match chunks.slot(self.within(offset.get())) {
                Some(slot) => Ok(chunks.set(slot)),
                None => damaged("an object does not start at a chunk"),
            },
            _ => damaged("an object does not fit the others of its page"),
        }
    }

    /// Records that the trace met an object in a page handed out in this generation; returns `false` if it was met
    /// before.
    fn mark_new(&self, offset: Offset, number: u32, len: u64) -> Result<bool, &'static str> {
        // The zeros of a page that the file has but that nothing was stored into would pass for an empty object.
        const NEVER: &str = "an object lies in a page that was never handed out";
        let mut state = self.table.page_if_made(number).ok_or(NEVER)?.lock();
        if !state.swept {
            return Err(NEVER);
        }
        let slot = self.slot_of(&state, offset, len)?;
        match &mut state.kind {
            Kind::Chunks(chunks) => Ok(chunks.visit(slot)),
            Kind::Large { visited, .. } => Ok(!std::mem::replace(visited, true)),
            Kind::Free | Kind::Rest => Err(NEVER),
        }
    }

    fn mark_large(&self, offset: Offset, first: u32, len: u64) -> Result<bool, Error> {
        let damaged = |what| {
            Err(Error::Damaged {
                what,
                offset: offset.get(),
            })
        };
        let all = len.div_ceil(self.page_size());
        let end = u64::from(first).saturating_add(all);
        if self.within(offset.get()) != 0 || end > u64::from(self.old_pages().end) {
            return damaged("a large object does not fill whole pages of the pool");
        }
        let pages = all as u32;
        let mut state = self.table.page(first).lock();
        match state.kind {
            Kind::Large { pages: marked, .. } if marked == pages => return Ok(false),
            Kind::Free if !state.swept => state.kind = Kind::Large { pages, visited: true },
            _ => return damaged("a large object overlaps others"),
        }
        drop(state);
        for page in first + 1..first + pages {
            let mut state = self.table.page(page).lock();
            if state.swept || !matches!(state.kind, Kind::Free) {
                return damaged("a large object overlaps others");
            }
            state.kind = Kind::Rest;
        }
        Ok(true)
    }

    /// Sweeps a page: its unmarked chunks are free from now on.
    pub(crate) fn sweep(&self, number: u32) {
        let mut state = self.table.page(number).lock();
        state.swept = true;
        match &state.kind {
            Kind::Free => {
                drop(state);
                lock(&self.runs).put(number, 1);
            }
            Kind::Chunks(chunks) => {
                let class = chunks.class();
                drop(state);
                self.relist(number, class);
            }
            Kind::Large { .. } | Kind::Rest => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A damaged link that leads far beyond the pool is refused, and takes no memory.
    #[test]
    fn a_link_beyond_all_pools_is_refused() {
        let arena = Arena::new(1 << 16, 5, false);
        for offset in [1 << 30, 1 << 40, (1 << 48) - 64] {
            let offset = Offset::new(offset).unwrap();
            let refused = arena.mark(offset, 64).unwrap_err();
            assert!(refused.to_string().contains("never handed out"), "{refused}");
        }
        let last = arena.page_of((1 << 48) - 64);
        assert!(arena.table.page_if_made(last).is_none());
    }

    /// Whichever of its pages the sweep has reached when a large object is freed, each of them becomes free once.
    #[test]
    fn a_large_object_may_be_freed_amid_the_sweep() {
        const PAGES: u32 = 4;
        let last = 1 + PAGES;
        for order in [[1, 2, 3, 4], [4, 3, 2, 1], [3, 1, 4, 2]] {
            for swept_before in 0..=order.len() {
                let arena = Arena::new(1 << 16, last, false);
                let object = Offset::new(arena.start_of(1)).unwrap();
                assert!(arena.mark(object, u64::from(PAGES) << 16).unwrap());
                for &page in &order[..swept_before] {
                    arena.sweep(page);
                }
                arena.free(object);
                for &page in &order[swept_before..] {
                    arena.sweep(page);
                }
                let mut runs = lock(&arena.runs);
                let why = format!("sweep {order:?}, freed after {swept_before}");
                assert_eq!(runs.free(), u64::from(PAGES), "{why}");
                assert_eq!(runs.take(PAGES, |_| true), Some(1), "{why}");
                assert_eq!(runs.take(1, |_| true), None, "{why}");
            }
        }
    }
}
