//! When a merge runs, and in which thread: the background thread, or the writer that has filled the front; and how
//! writers that outrun it are throttled.
//!
//! I1 A failed merge does not undo acknowledged writes: writers go on, and the merge is retried later.
//! I2 Writers wait while the front has outrun a running merge, or recovery's trace keeps one from beginning; but only
//!    if they hold no guard, which recovery might wait for, and not soon after a failed merge (I1). But for these
//!    writers, the buffer trees are bounded.

use crate::DpTreeOptions;
use crate::log::lock;
use crate::tree::TreeState;
use pmem::{Media, Process};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval at which the worker tries to begin, while recovery traces or another thread has the right to merge.
const RETRY: Duration = Duration::from_millis(1);

/// After a failure, a merge is retried when the front has grown by the size that starts a merge, divided by this.
const RETRY_SHARE: usize = 8;

#[derive(Debug, Default)]
struct Wishes {
    wanted: bool,
    stop: bool,
    /// Whether a merge is running.
    merging: bool,
}

#[derive(Debug, Default)]
struct Signal {
    wishes: Mutex<Wishes>,
    changed: Condvar,
}

/// A thread, and where its tree is sent.
type Waiting<M> = (JoinHandle<()>, Sender<Arc<TreeState<M>>>);

/// The background thread of a tree that is not open yet. The thread waits for the tree, and ends if it gets none.
#[derive(Debug)]
pub(crate) struct Worker<M: Media> {
    signal: Arc<Signal>,
    thread: Option<Waiting<M>>,
}

impl<M: Media> Worker<M> {
    /// Starts the thread, if the options ask for one.
    pub(crate) fn start(options: &DpTreeOptions) -> Result<Worker<M>, heap::Error> {
        let signal = Arc::<Signal>::default();
        let thread = match options.workers {
            0 => None,
            _ => {
                let (sender, tree) = channel::<Arc<TreeState<M>>>();
                let signal = Arc::clone(&signal);
                let thread = std::thread::Builder::new().name("wollemi-dptree".into());
                let thread = thread.spawn(move || {
                    if let Ok(shared) = tree.recv() {
                        work(&shared, &signal);
                    }
                });
                Some((thread.map_err(heap::Error::Thread)?, sender))
            }
        };
        Ok(Worker { signal, thread })
    }
}

/// The state that handles of a DPTree share, and the thread that merges for them; both end with the last handle. In a
/// forked child, its drop only frees memory.
#[derive(Debug)]
pub(crate) struct Owner<M: Media> {
    pub(crate) shared: Arc<TreeState<M>>,
    signal: Arc<Signal>,
    thread: Option<JoinHandle<()>>,
    process: Process,
}

impl<M: Media> Owner<M> {
    /// Hands the tree to its thread, if there is one.
    pub(crate) fn new(shared: TreeState<M>, worker: Worker<M>) -> Owner<M> {
        let shared = Arc::new(shared);
        let thread = worker.thread.map(|(thread, sender)| {
            // The thread waits for it.
            let _ = sender.send(Arc::clone(&shared));
            thread
        });
        let owner = Owner {
            shared,
            signal: worker.signal,
            thread,
            process: Process::current(),
        };
        if owner.thread.is_some() && owner.shared.trees().middle.is_some() {
            owner.want();
        }
        owner
    }

    fn want(&self) {
        lock(&self.signal.wishes).wanted = true;
        self.signal.changed.notify_all();
    }

    /// Whether the background thread merges, or is about to.
    pub(crate) fn is_merging(&self) -> bool {
        let wishes = lock(&self.signal.wishes);
        wishes.wanted || wishes.merging
    }

    /// The front is full: has the background thread merge it, or, if there is none, merges it in this one. Waits if the
    /// front has outrun the merge (I2). Does nothing if the last merge has failed lately.
    #[cold]
    pub(crate) fn make_room(&self) {
        if self.failed_lately() {
            return;
        }
        if self.thread.is_some() {
            self.want();
            self.hold_back();
            return;
        }
        let mut turn = 0;
        while self.shared.trees().front.is_full() {
            if let Some(right) = self.shared.try_turn() {
                // The statistics have the reason of a failure; the write that came here is durable.
                let _ = self.shared.merge(&right, false);
                return;
            }
            // Another thread has the right to merge, or recovery traces.
            if !self.is_outrun() || heap::is_pinned() {
                return;
            }
            self.shared.heap.media().wait(turn);
            turn = turn.saturating_add(1);
        }
    }

    fn failed_lately(&self) -> bool {
        let failed = lock(&self.shared.progress.failed).as_ref().map(|(_, size)| *size);
        failed.is_some_and(|size| {
            let front = self.shared.trees().front;
            (size..size + front.threshold / RETRY_SHARE + 1).contains(&front.size())
        })
    }

    fn is_outrun(&self) -> bool {
        let front = self.shared.trees().front;
        front.size() >= front.threshold.saturating_mul(self.shared.options.backlog)
    }

    /// Waits while the front has outrun a merge that is running or due.
    fn hold_back(&self) {
        if !self.is_outrun() || heap::is_pinned() {
            return;
        }
        let mut wishes = lock(&self.signal.wishes);
        while (wishes.merging || wishes.wanted) && !wishes.stop && self.is_outrun() {
            let waited = self
                .signal
                .changed
                .wait_timeout(wishes, Duration::from_millis(10));
            wishes = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
    }
}

fn work<M: Media>(shared: &TreeState<M>, signal: &Signal) {
    let mut wishes = lock(&signal.wishes);
    loop {
        while !wishes.wanted && !wishes.stop {
            let waited = signal.changed.wait(wishes);
            wishes = waited.unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        if wishes.stop {
            return;
        }
        match shared.try_turn() {
            None => {
                let waited = signal.changed.wait_timeout(wishes, RETRY);
                wishes = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
            }
            Some(turn) => {
                (wishes.wanted, wishes.merging) = (false, true);
                drop(wishes);
                // A panic would leave writers waiting; the leftovers of a merge do not count.
                let merge = std::panic::AssertUnwindSafe(|| shared.merge(&turn, false));
                if std::panic::catch_unwind(merge).is_err() {
                    let size = shared.trees().front.size();
                    *lock(&shared.progress.failed) = Some(("a merge panicked".into(), size));
                }
                drop(turn);
                // The objects that this thread has retired must not wait for its next merge.
                heap::pin().flush();
                wishes = lock(&signal.wishes);
                wishes.merging = false;
                signal.changed.notify_all();
            }
        }
    }
}

impl<M: Media> Drop for Owner<M> {
    fn drop(&mut self) {
        if !self.process.is_current() {
            // A forked child has no such thread, and locks that the parent's threads held stay held there.
            std::mem::forget(self.thread.take());
            return;
        }
        lock(&self.signal.wishes).stop = true;
        self.signal.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // The thread catches its panics.
            let _ = thread.join();
        }
        let shared = &self.shared;
        shared.cache.clear(&shared.heap, &heap::pin());
        if let Some(root) = shared.root.offset() {
            // SAFETY: this is the owner's drop, and its thread has ended.
            unsafe { shared.heap.detach(root) };
        }
    }
}
