//! Each thread's write-backs and stores since its last fence, for media that look at distinct lines.
//!
//! A line written back twice before one fence reaches the memory once at best, and lines of one block of 256 bytes,
//! the unit of Optane's medium, are written together. Each media that wants to know keeps a [`Recent`]; the lists
//! themselves belong to the threads, so noting a line touches nothing shared.

use crate::{LINE, Purpose};
use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

/// The unit in which Optane writes its medium, in bytes.
const BLOCK: usize = 256;

/// Lists that a thread keeps at most; older ones belong to media that are gone.
const KEPT: usize = 16;

/// Since a thread's last fence.
#[derive(Debug, Default)]
struct List {
    /// Lines written back, and what for.
    lines: Vec<(usize, Purpose)>,
    /// Lines stored into, and bytes.
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

    /// The line that holds `at` is on its way.
    pub(crate) fn note(&self, at: *const u8, purpose: Purpose) {
        self.with(|list| list.lines.push((at.addr() / LINE, purpose)));
    }

    /// These bytes have been stored.
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

    /// Before [`fence`](Recent::fence): tells of all bytes stored what their line was first noted for, or, if it was
    /// not, what the fence is for.
    pub(crate) fn stored(&self, fence: Purpose, mut bytes: impl FnMut(Purpose, u64)) {
        self.with(|list| {
            // It keeps the order of equals.
            list.lines.sort_by_key(|&(line, _)| line);
            for (line, count) in list.stored.drain(..) {
                let first = list.lines.partition_point(|&(other, _)| other < line);
                let noted = list.lines.get(first).filter(|(other, _)| *other == line);
                bytes(noted.map_or(fence, |&(_, purpose)| purpose), count);
            }
        });
    }

    /// The thread's fence: tells each distinct line noted before it, and whether it is the first of its block.
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
        // A thread that is ending has lost its lists, and what it writes now is not looked at.
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
