//! Each thread's write-backs and stores since its last fence, for media that count distinct lines.
//!
//! A line written back twice before one fence reaches the memory once at best, and lines of one block of 256 bytes,
//! the unit of Optane's medium, are written together. Each such media keeps a [`Recent`]; the lists themselves are
//! thread-local, so noting a line touches no shared data.

use crate::{LINE, Purpose};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The unit in which Optane writes its medium, in bytes.
const BLOCK: usize = 256;

/// Maximum number of lists per thread. Beyond it the oldest list is dropped, on the assumption that its media is gone.
const KEPT: usize = 16;

/// What a thread did since its last fence.
#[derive(Debug, Default)]
struct List {
    /// Lines written back, and their purpose.
    lines: Vec<(usize, Purpose)>,
    /// Lines stored into, and number of bytes.
    stored: Vec<(usize, u64)>,
}

thread_local! {
    static LISTS: RefCell<Vec<(u64, List)>> = const { RefCell::new(Vec::new()) };
}

/// The key to one media's lists.
#[derive(Debug)]
pub(crate) struct Recent(u64);

impl Recent {
    pub(crate) fn new() -> Recent {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Recent(NEXT.fetch_add(1, Ordering::Relaxed))
    }

    /// Notes a write-back of the line that holds `at`.
    pub(crate) fn note(&self, at: *const u8, purpose: Purpose) {
        self.with(|list| list.lines.push((at.addr() / LINE, purpose)));
    }

    /// Notes a store into these bytes.
    pub(crate) fn note_stored(&self, start: *const u8, len: usize) {
        self.with(|list| {
            let (mut at, end) = (start.addr(), start.addr() + len);
            while at < end {
                let next = (at / LINE + 1) * LINE;
                list.stored.push((at / LINE, (next.min(end) - at) as u64));
                at = next;
            }
        });
    }

    /// Called before [`fence`](Recent::fence): passes the stored bytes to `bytes`, each with the purpose for which
    /// its line was first written back, or with the purpose of the fence if it was not.
    pub(crate) fn stored(&self, fence: Purpose, mut bytes: impl FnMut(Purpose, u64)) {
        self.with(|list| {
            // The sort is stable.
            list.lines.sort_by_key(|&(line, _)| line);
            for (line, count) in list.stored.drain(..) {
                let first = list.lines.partition_point(|&(other, _)| other < line);
                let noted = list.lines.get(first).filter(|(other, _)| *other == line);
                bytes(noted.map_or(fence, |&(_, purpose)| purpose), count);
            }
        });
    }

    /// Called at the thread's fence: calls `line` for each distinct line noted before it, with the purpose noted first,
    /// and whether the line is the first of its block.
    pub(crate) fn fence(&self, mut line: impl FnMut(Purpose, bool)) {
        self.with(|List { lines, .. }| {
            lines.sort_by_key(|&(line, _)| line);
            lines.dedup_by_key(|&mut (line, _)| line);
            let mut last = None;
            for (at, purpose) in lines.drain(..) {
                let block = at / (BLOCK / LINE);
                line(purpose, last.replace(block) != Some(block));
            }
        });
    }

    fn with(&self, f: impl FnOnce(&mut List)) {
        // An ending thread has lost its lists; its last writes are not counted.
        let _ = LISTS.try_with(|lists| {
            let mut lists = lists.borrow_mut();
            let place = lists
                .iter()
                .position(|&(media, _)| media == self.0)
                .unwrap_or_else(|| {
                    if lists.len() == KEPT {
                        lists.remove(0);
                    }
                    lists.push((self.0, List::default()));
                    lists.len() - 1
                });
            f(&mut lists[place].1);
        });
    }
}
