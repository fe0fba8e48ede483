//! Pages that wait to serve again (DPTree §2.1, the caching allocator with its two free lists).
//!
//! I1 A page here is reached by nothing, and its words from `first` on have the other sense than it will serve with.
//! I2 There are no more of them than the last log had pages, and a few: the cache follows the size of the buffer tree.
//!
//! The lists are in DRAM and the pages [held](Heap::hold): after a crash they are found unreachable.

use super::lock;
use super::page::{First, PageHead};
use heap::{Access, Error, Guard};
use pmem::{Link, Media};
use std::sync::Mutex;

/// A page that can serve.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ready {
    pub(crate) link: Link,
    pub(crate) first: First,
}

/// Pages by the sense they will serve with.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<[Vec<Ready>; 2]>);

impl Cache {
    /// A page, if there is one: of the longer list.
    pub(crate) fn take<M: Media>(&self, heap: &Access<M>) -> Option<Ready> {
        let mut lists = lock(&self.0);
        let longer = usize::from(lists[1].len() > lists[0].len());
        let ready = lists[longer].pop()?;
        if let Some(offset) = ready.link.offset() {
            heap.unhold(offset);
        }
        Some(ready)
    }

    /// Puts in what a merged log had, and lets go of what is more than that and `spare`.
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

    /// Lets go of all.
    pub(crate) fn clear<M: Media>(&self, heap: &Access<M>, guard: &Guard) {
        self.trim(heap, guard, 0);
    }

    /// Lets go of what is more than the bound. (The lock is not held where the pool is read.) A page whose head is
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

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        lock(&self.0).iter().map(Vec::len).sum()
    }
}

/// Takes a page that nothing leads to any more out of use.
#[track_caller]
pub(crate) fn retire<M: Media>(heap: &Access<M>, guard: &Guard, link: Link) -> Result<(), Error> {
    if let Some(offset) = link.offset() {
        let extent = PageHead::at(heap, link)?.extent(heap.media())?;
        // SAFETY: nothing leads to the page: the log that held it was unlinked under the guard, or the cache alone has
        // known it since.
        unsafe { heap.retire(guard, offset, extent) };
    }
    Ok(())
}
