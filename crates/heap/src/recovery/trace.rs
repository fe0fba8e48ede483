//! Tracing: finds everything that the roots lead to, with many threads and beside writers.
//!
//! Each thread works on a stack of its own, taking a batch of links at a time and prefetching their objects, so that
//! the misses of a batch overlap. A thread with work to spare gives half of it to idle ones.
//!
//! I1 A link is followed once for each slot that holds it; the visitor decides whether the object is new, and only
//!    then are its children followed.
//! I2 The trace ends when no thread has work, at the first error or panic of a tracer, or when it is stopped.

use crate::lock::lock;
use crate::roots::entry::Root;
use crate::{Access, Error, Heap};
use pmem::{LINE, Link, Media, Offset, prefetch};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Traces the objects of one kind of root.
///
/// Tracing runs beside writers, without a guard: until it has ended, the heap reuses nothing that was reachable since
/// it began. It finds all live objects even so, by a rule for the index: **a structure modification never moves a
/// live reference out of an object that stays in use; it builds a new object, swings one slot to it, and leaves the
/// slots of the object it replaces as they were.** So whichever of the two a tracer reaches, both lead to everything
/// that was there before. A split in place may move references to a sibling that a slot of the node leads to, if that
/// slot is published before they leave, and loaded by the tracer after them (`docs/design.md`, "Why the trace is
/// right beside writers").
///
/// # Safety
///
/// * [`trace`](Trace::trace) adds every link of the object that a reader of that kind of root follows, and returns
///   the object's length: an object whose link it omits is freed.
/// * It keeps the rules of [`Heap::access`]; the heap ensures that no object that the trace reaches is reused.
pub unsafe trait Trace<M: Media>: Send + Sync {
    /// The kind of root that this tracer traces.
    fn kind(&self) -> u32;

    /// Adds the links in the object that `link` leads to, and returns its length: the
    /// [`footprint`](crate::footprint) of its draft. Null links are skipped.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] if the object is invalid; then nothing is swept.
    fn trace(&self, heap: &Access<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error>;
}

/// A tracer for each kind of root.
pub type Tracers<M> = Vec<Arc<dyn Trace<M>>>;

/// Maximum number of threads that trace or sweep: memory bandwidth is exhausted long before.
pub(crate) const MAX_THREADS: usize = 256;

/// Links whose objects are prefetched together.
const BATCH: usize = 32;

/// Stack length above which a thread has work to spare.
const SPARE: usize = 2 * BATCH;

/// Lines to prefetch of each object.
const LINES_AHEAD: usize = 2;

/// The visitor of each object: receives its place and length, and returns whether it is new.
pub(crate) type Visit<'v> = dyn Fn(Offset, u64) -> Result<bool, Error> + Sync + 'v;

/// A link to follow, and the index of its tracer.
type Work = (usize, Link);

/// One trace.
pub(crate) struct Tracing<'t, M: Media> {
    pub(crate) heap: &'t Heap<M>,
    pub(crate) tracers: &'t Tracers<M>,
    pub(crate) threads: usize,
    pub(crate) stop: &'t AtomicBool,
    /// Number of objects met.
    pub(crate) traced: &'t AtomicU64,
}

/// Work that is on no thread's own stack.
#[derive(Default)]
struct SpareWork {
    common: Mutex<Common>,
    more: Condvar,
    /// Number of threads that wait for work: a hint.
    idle: AtomicUsize,
}

#[derive(Default)]
struct Common {
    work: Vec<Work>,
    /// Number of threads with work on their own stacks.
    working: usize,
    /// No more work will come.
    ended: bool,
    error: Option<Error>,
}

impl SpareWork {
    /// Fills the empty stack of a thread; `working` is whether it had work until now. Returns `false` if there is no
    /// work any more.
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
            self.idle.fetch_add(1, Relaxed);
            common = self.more.wait(common).unwrap_or_else(PoisonError::into_inner);
            self.idle.fetch_sub(1, Relaxed);
        }
    }

    /// Shares part of a long stack with idle threads.
    fn share(&self, stack: &mut Vec<Work>) {
        if stack.len() > SPARE && self.idle.load(Relaxed) > 0 {
            // The lower half: links nearer to the roots, with more objects behind them.
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

/// Ends the trace if a tracer panics, so that no thread waits for the panicking one.
struct EndOnPanic<'s>(&'s SpareWork);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end(None);
        }
    }
}

impl<M: Media> Tracing<'_, M> {
    /// Calls `visit` for each object that these roots, with their names, lead to, with its length, and follows its
    /// links if `visit` returns that it is new. Returns `false` if the trace was stopped.
    ///
    /// # Errors
    ///
    /// The first error of the tracers and the visitor; and a root of a kind for which there is no tracer.
    pub(crate) fn run(&self, roots: Vec<(Vec<u8>, Root)>, visit: &Visit<'_>) -> Result<bool, Error> {
        let mut work = Vec::new();
        for (name, root) in roots {
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
                // With fewer threads than requested, the trace only takes longer.
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
            let mut visited = 0;
            for (tracer, link) in batch {
                match self.follow(tracer, link, &mut children, visit) {
                    Ok(false) => {}
                    Ok(true) => {
                        visited += 1;
                        let children = children.iter().filter(|child| !child.is_null());
                        stack.extend(children.map(|&child| (tracer, child)));
                    }
                    Err(error) => return shared.end(Some(error)),
                }
            }
            self.traced.fetch_add(visited, Relaxed);
            if self.stop.load(Relaxed) {
                return shared.end(None);
            }
            shared.share(&mut stack);
        }
    }

    /// Visits one object and collects its links; returns `false` if it is not new.
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
        // SAFETY: tracers keep the rules (their trait's promise). Recovery keeps objects retired while it traces, and
        // an audit holds a guard.
        let access = unsafe { self.heap.access() };
        let len = self.tracers[tracer].trace(access, link, children)?;
        visit(offset, len)
    }

    /// Prefetches the first lines of a link's object.
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
