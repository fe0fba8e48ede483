//! What each thread has written back since its last fence, for media that look at distinct lines.
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

type Lines = Vec<(usize, Purpose)>;

thread_local! {
    static LISTS: RefCell<Vec<(u64, Lines)>> = const { RefCell::new(Vec::new()) };
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
        self.with(|lines| lines.push((at.addr() / LINE, purpose)));
    }

    /// The thread's fence: tells each distinct line noted before it, and whether it is the first of its block.
    pub(crate) fn fence(&self, mut line: impl FnMut(Purpose, bool)) {
        self.with(|lines| {
            lines.sort_by_key(|&(line, _)| line);
            lines.dedup_by_key(|&mut (line, _)| line);
            let mut last = None;
            for (at, purpose) in lines.drain(..) {
                let block = at / (BLOCK / LINE);
                line(purpose, last.replace(block) != Some(block));
            }
        });
    }

    fn with(&self, f: impl FnOnce(&mut Lines)) {
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
                    lists.push((self.0, Lines::new()));
                    lists.len() - 1
                });
            f(&mut lists[place].1);
        });
    }
}
