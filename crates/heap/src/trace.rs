//! Tracing: finding all that the roots lead to, with many threads and with writers at work.
//!
//! Each thread works on a stack of its own, taking a batch of links at a time and prefetching what they lead to, so
//! that the misses of a batch overlap. A thread with work to spare gives half of it to those that have none.
//!
//! I1 A link is followed once for each slot that holds it; the visitor says whether the object is new, and only then
//!    are its children followed.
//! I2 The trace ends when no thread has work, or with the first error, or when it is stopped.

use crate::page::lock;
use crate::{Access, Error, Heap};
use pmem::{LINE, Link, Media, Offset, prefetch};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// How objects of one kind of root lead to each other.
///
/// Tracing goes on while others write, without a guard: until it has ended, the heap reuses nothing that was reachable
/// since it began. That what is alive is found all the same rests on a rule for the index: **a structure modification
/// never moves a live reference out of an object that stays in use; it builds a new object, swings one slot to it, and
/// leaves the slots of the object it replaces as they were.** So whichever of the two a tracer comes to, both lead to
/// everything that was there before. A split in place may move references to a sibling that a slot of the node leads
/// to, if that slot is published before they leave, and loaded by the tracer after them (`docs/design.md`, "Why the
/// trace is right beside writers").
///
/// # Safety
///
/// * [`trace`](Trace::trace) adds every link of the object by which a reader of that kind of root goes on, and returns
///   the object's length: what it leaves out is freed.
/// * It keeps to the rules of [`Heap::access`]; the heap sees to it that nothing that the trace comes to is reused.
pub unsafe trait Trace<M: Media>: Send + Sync {
    /// The kind of root that it knows.
    fn kind(&self) -> u32;

    /// Adds the links in the object that `link` leads to, and returns its length: the
    /// [`footprint`](crate::footprint) of its draft. Null links are skipped.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] where the object makes no sense; nothing is then swept.
    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error>;
}

/// A tracer for each kind of root.
pub type Tracers<M> = Vec<Arc<dyn Trace<M>>>;

/// No more threads than this trace or sweep: what memory can deliver is long exhausted.
pub(crate) const MAX_THREADS: usize = 256;

/// Links whose objects are prefetched together.
const BATCH: usize = 32;

/// A stack longer than this has work to spare.
const SPARE: usize = 2 * BATCH;

/// Lines of each object that are prefetched.
const LINES_AHEAD: usize = 2;

/// The visitor of each object: gets its place and its length, and returns whether it is new.
pub(crate) type Visit<'v> = dyn Fn(Offset, u64) -> Result<bool, Error> + Sync + 'v;

/// A link to follow, and which of the tracers knows what is there.
type Work = (usize, Link);

/// One trace.
pub(crate) struct Tracing<'t, M: Media> {
    pub(crate) heap: &'t Heap<M>,
    pub(crate) tracers: &'t Tracers<M>,
    pub(crate) threads: usize,
    pub(crate) stop: &'t AtomicBool,
    /// Objects met.
    pub(crate) traced: &'t AtomicU64,
}

/// Work that no thread has on its own stack.
#[derive(Default)]
struct SpareWork {
    common: Mutex<Common>,
    more: Condvar,
    /// Threads that wait for work: a hint.
    hungry: AtomicUsize,
}

#[derive(Default)]
struct Common {
    work: Vec<Work>,
    /// Threads with a stack of their own.
    working: usize,
    /// No more work will come.
    ended: bool,
    error: Option<Error>,
}

impl SpareWork {
    /// Fills the empty stack of a thread, which has been `working` until now or not; `false` if there is no work any
    /// more.
    fn fill(&self, stack: &mut Vec<Work>, working: bool) -> bool {
        let mut common = lock(&self.common);
        common.working -= usize::from(working);
        loop {
            if common.ended {
                return false;
            }
            if !common.work.is_empty() {
                common.working += 1;
                let share = common.work.len().div_ceil(2).max(BATCH).min(common.work.len());
                let from = common.work.len() - share;
                stack.extend(common.work.drain(from..));
                return true;
            }
            if common.working == 0 {
                common.ended = true;
                self.more.notify_all();
                return false;
            }
            self.hungry.fetch_add(1, Relaxed);
            common = self.more.wait(common).unwrap_or_else(PoisonError::into_inner);
            self.hungry.fetch_sub(1, Relaxed);
        }
    }

    /// Gives part of a long stack to threads that have none.
    fn share(&self, stack: &mut Vec<Work>) {
        if stack.len() > SPARE && self.hungry.load(Relaxed) > 0 {
            // The lower half: links nearer to the roots, with more behind them.
            let given = stack.drain(..stack.len() / 2);
            lock(&self.common).work.extend(given);
            self.more.notify_all();
        }
    }

    /// Ends the trace for all threads.
    fn end(&self, error: Option<Error>) {
        let mut common = lock(&self.common);
        common.ended = true;
        common.error = common.error.take().or(error);
        self.more.notify_all();
    }
}

/// Ends the trace if a tracer panics, so that no thread waits for the one that did.
struct EndOnPanic<'s>(&'s SpareWork);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(None);
        }
    }
}

impl<M: Media> Tracing<'_, M> {
    /// Calls `visit` for each object reached, with its length, and follows its links if `visit` says that it is new.
    /// Returns `false` if it was stopped.
    ///
    /// # Errors
    ///
    /// The first of the tracers and the visitor, and a root of a kind that none of the tracers knows.
    pub(crate) fn run(&self, visit: &Visit<'_>) -> Result<bool, Error> {
        let mut work = Vec::new();
        for (name, root) in self.heap.roots()? {
            let tracer = self.tracers.iter().position(|tracer| tracer.kind() == root.kind);
            let tracer = tracer.ok_or_else(|| Error::UnknownKind {
                root: name.into(),
                kind: root.kind,
            })?;
            work.push((tracer, root.link));
        }
        let shared = SpareWork {
            common: Mutex::new(Common {
                work,
                ..Common::default()
            }),
            ..SpareWork::default()
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                // With fewer threads than asked for it only takes longer.
                let _ = std::thread::Builder::new()
                    .name("wollemi-trace".into())
                    .spawn_scoped(scope, || self.work(&shared, visit));
            }
            self.work(&shared, visit);
        });
        let common = shared.common.into_inner().unwrap_or_else(PoisonError::into_inner);
        match common.error {
            Some(error) => Err(error),
            None => Ok(!self.stop.load(Relaxed)),
        }
    }

    fn work(&self, shared: &SpareWork, visit: &Visit<'_>) {
        let _ender = EndOnPanic(shared);
        let mut stack = Vec::new();
        let mut children = Vec::new();
        let mut working = false;
        while !stack.is_empty() || shared.fill(&mut stack, working) {
            working = true;
            let batch = stack.split_off(stack.len().saturating_sub(BATCH));
            for &(_, link) in &batch {
                self.prefetch_object(link);
            }
            let mut met = 0;
            for (tracer, link) in batch {
                match self.follow(tracer, link, &mut children, visit) {
                    Ok(false) => {}
                    Ok(true) => {
                        met += 1;
                        let children = children.iter().filter(|child| !child.is_null());
                        stack.extend(children.map(|&child| (tracer, child)));
                    }
                    Err(error) => return shared.end(Some(error)),
                }
            }
            self.traced.fetch_add(met, Relaxed);
            if self.stop.load(Relaxed) {
                return shared.end(None);
            }
            shared.share(&mut stack);
        }
    }

    /// Visits one object and collects its links; `false` if it is not new.
    fn follow(
        &self,
        tracer: usize,
        link: Link,
        children: &mut Vec<Link>,
        visit: &Visit<'_>,
    ) -> Result<bool, Error> {
        children.clear();
        let Some(offset) = link.offset() else {
            return Ok(false);
        };
        // SAFETY: tracers keep the rules (their trait's promise). Recovery sets aside what is retired while it traces,
        // and an audit holds a guard.
        let access = unsafe { self.heap.access() };
        let len = self.tracers[tracer].trace(access, link, children)?;
        visit(offset, len)
    }

    /// Prefetches the first lines of what a link leads to.
    fn prefetch_object(&self, link: Link) {
        for line in 0..LINES_AHEAD {
            let at = link
                .offset()
                .and_then(|at| Offset::new(at.get() + (line * LINE) as u64));
            if let Some(start) = at.and_then(|at| self.heap.pool().chunk_start(at, 1).ok()) {
                prefetch(start.as_ptr());
            }
        }
    }
}
