//! Pages kept for reuse (DPTree §2.1, the caching allocator with its two free lists).
//!
//! I1 Nothing leads to a page here, and its words from `first` on have the opposite of the sense for its next use.
//! I2 There are at most as many as the last log had pages, and a few: the cache follows the size of the buffer tree.
//!
//! The lists are in DRAM and the pages [held](heap::Heap::hold): after a crash they are found unreachable.

use super::lock;
use super::page::{First, PageHead};
use heap::{Access, Error, Guard};
use pmem::{Link, Media};
use std::sync::Mutex;

/// A page that can be reused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) link: Link,
    pub(crate) first: First,
}

/// Pages by the sense for their next use.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<[Vec<Ready>; 2]>);

impl Cache {
    /// Takes a page from the longer list, if there is one.
    pub(crate) fn take<M: Media>(&self, heap: &Access<M>) -> Option<Ready> {
        let mut lists = lock(&self.0);
        let longer = usize::from(lists[1].len() > lists[0].len());
        let ready = lists[longer].pop()?;
        if let Some(offset) = ready.link.offset() {
            heap.unhold(offset);
        }
        Some(ready)
    }

    /// Adds the pages of a merged log; then frees pages until there are at most as many as were added, and `spare`.
    pub(crate) fn put<M: Media>(&self, heap: &Access<M>, guard: &Guard, ready: Vec<Ready>, spare: usize) {
        let bound = ready.len() + spare;
        let mut lists = lock(&self.0);
        for page in ready {
            if let Some(offset) = page.link.offset() {
                heap.hold(offset);
            }
            lists[usize::from(page.first.sense)].push(page);
        }
        drop(lists);
        self.trim(heap, guard, bound);
    }

    /// Frees all pages.
    pub(crate) fn clear<M: Media>(&self, heap: &Access<M>, guard: &Guard) {
        self.trim(heap, guard, 0);
    }

    /// Frees the pages beyond the bound. (Does not hold the lock while it reads the pool.) A page whose head is
    /// damaged stays until the next recovery finds that nothing leads to it.
    fn trim<M: Media>(&self, heap: &Access<M>, guard: &Guard, bound: usize) {
        let mut surplus = Vec::new();
        let mut lists = lock(&self.0);
        while lists[0].len() + lists[1].len() > bound {
            let longer = usize::from(lists[1].len() > lists[0].len());
            surplus.extend(lists[longer].pop());
        }
        drop(lists);
        for page in surplus {
            if let Some(offset) = page.link.offset() {
                heap.unhold(offset);
            }
            let _ = retire(heap, guard, page.link);
        }
    }

    /// Number of pages.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).iter().map(Vec::len).sum()
    }
}

/// Retires a page to which nothing leads any more.
#[track_caller]
pub(crate) fn retire<M: Media>(heap: &Access<M>, guard: &Guard, link: Link) -> Result<(), Error> {
    if let Some(offset) = link.offset() {
        let extent = PageHead::at(heap, link)?.extent(heap.media())?;
        // SAFETY: nothing leads to the page. Its log was unlinked under the guard, or by a merge, which has paused the
        // trace since before that; or only the cache has known it since.
        unsafe { heap.retire(guard, offset, extent) };
    }
    Ok(())
}
