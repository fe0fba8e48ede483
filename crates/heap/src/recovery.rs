//! Recovery in the background: instant restart and post-crash garbage collection (ROART §3.4.2).
//!
//! All allocator metadata is volatile, so every opening, clean or not, rebuilds it, while the indexes are in use:
//!
//! 1. *Trace.* From the roots, mark every chunk of earlier generations that is alive. New chunks come from new pages
//!    meanwhile, and retired objects, old or new, are [kept](crate::aside): nothing that was reachable since the
//!    trace began is reused, so tracers need no guard and no write barrier. ([`Trace`](crate::Trace) states what
//!    indexes promise.)
//! 2. *Settle.* From the trace's end on, retired objects are marked and then freed as usual. Recovery waits until the
//!    guards from the trace's last moment are gone, and the [removals](crate::Removed) that began before it have
//!    retired everything. So an object unlinked before the trace ended is marked by now, if anything is still going
//!    to free it; one unlinked later was reachable when the trace ended, and is marked.
//! 3. *Sweep.* Page by page, unmarked chunks become free.
//!
//! I1 Recovery persists nothing: a crash in the middle is just another crash.
//! I2 If the trace meets anything that it does not understand, nothing is swept: objects that are not known to be
//!    dead stay. Operations go on in new pages.
//! I3 Recovery waits for pauses before it traces, and for guards and removals afterwards. A thread that holds one of
//!    these must not wait for recovery. So an allocation in a full pool waits only if its thread holds no guard, and
//!    never while there are pauses (the allocating thread may hold one, or a thread with a guard may wait for its
//!    holder). No removal waits for anything. Recovery never holds a guard for long.
//! I4 Dropping the heap's last handle ends any wait of recovery.

use crate::page::lock;
use crate::trace::{MAX_THREADS, Tracers, Tracing};
use crate::{Error, Heap, MayBeFull};
use pmem::{Media, Process};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pages per batch of a sweeping thread.
const SWEEP_BATCH: u32 = 64;

/// Turns that recovery stays awake while it waits for guards.
const AWAKE: u32 = 8;

/// The same where threads take turns: the holder of a guard runs meanwhile, and sleeping helps only against other
/// threads of the process.
const AWAKE_IN_TURNS: u32 = 20_000;

/// The stage of recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Not started.
    Idle,
    /// Running.
    Running,
    /// The objects in use are known, and all else is free.
    Done,
    /// Failed, with the reason. All earlier content of the pool is left alone, dead or not.
    Failed(String),
}

/// The progress of recovery.
#[derive(Clone, Debug)]
pub struct Progress {
    /// The state.
    pub state: State,
    /// Objects met by the trace.
    pub traced: u64,
    /// Pages swept.
    pub pages_swept: u32,
    /// Pages to sweep in all.
    pub pages_to_sweep: u32,
    /// Time taken so far, or in all once it has ended.
    pub elapsed: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Idle,
    /// Waits for pauses to end; no new one begins.
    Pausing,
    Tracing,
    Settling,
    Sweeping,
    Done,
    Failed(String),
}

impl Phase {
    fn is_running(&self) -> bool {
        matches!(
            self,
            Phase::Pausing | Phase::Tracing | Phase::Settling | Phase::Sweeping
        )
    }

    /// Whether no pause may begin.
    fn keeps_pauses_out(&self) -> bool {
        matches!(self, Phase::Pausing | Phase::Tracing)
    }

    /// Whether the trace has not ended, or may yet begin.
    fn is_before_trace_end(&self) -> bool {
        matches!(self, Phase::Idle | Phase::Pausing | Phase::Tracing)
    }
}

#[derive(Debug)]
struct Course {
    phase: Phase,
    started: Option<Instant>,
    taken: Duration,
    thread: Option<JoinHandle<()>>,
    /// Number of threads that it was started with; 0 before the start.
    threads: usize,
    /// Holders of a [`TracePause`].
    pauses: usize,
    /// Running removals that began before the trace's end.
    removals: usize,
}

#[derive(Debug)]
pub(crate) struct Recovery {
    course: Mutex<Course>,
    changed: Condvar,
    stop: AtomicBool,
    traced: AtomicU64,
    swept: AtomicU32,
    to_sweep: u32,
}

/// Keeps recovery from tracing while it lives: see [`Heap::pause_trace`].
#[derive(Debug)]
#[must_use]
pub struct TracePause(Arc<Recovery>);

impl Drop for TracePause {
    fn drop(&mut self) {
        lock(&self.0.course).pauses -= 1;
        self.0.changed.notify_all();
    }
}

/// Keeps recovery from sweeping while it lives, if the trace had not ended when it was made: objects that its holder
/// unlinks meanwhile may be retired under later guards.
#[derive(Debug)]
pub(crate) struct Removal(Option<Arc<Recovery>>);

impl Removal {
    pub(crate) fn begin(recovery: &Arc<Recovery>) -> Removal {
        let mut course = lock(&recovery.course);
        let counts = course.phase.is_before_trace_end();
        course.removals += usize::from(counts);
        Removal(counts.then(|| Arc::clone(recovery)))
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        if let Some(recovery) = &self.0 {
            lock(&recovery.course).removals -= 1;
            recovery.changed.notify_all();
        }
    }
}

/// Stops recovery when the last handle of its heap is dropped, and waits until it has stopped. In a forked child,
/// which has no such thread, it does nothing.
#[derive(Debug)]
pub(crate) struct StopOnDrop {
    recovery: Arc<Recovery>,
    process: Process,
}

impl StopOnDrop {
    pub(crate) fn new(recovery: &Arc<Recovery>) -> StopOnDrop {
        StopOnDrop {
            recovery: Arc::clone(recovery),
            process: Process::current(),
        }
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        let recovery = &self.recovery;
        if !self.process.is_current() {
            // Never dropped, since the thread's handle is in it.
            std::mem::forget(Arc::clone(recovery));
            return;
        }
        recovery.stop.store(true, SeqCst);
        // A waiting thread has checked `stop` under this lock, and so either sees it or is woken.
        let thread = lock(&recovery.course).thread.take();
        recovery.changed.notify_all();
        if let Some(thread) = thread
            && thread.thread().id() != std::thread::current().id()
        {
            // The thread catches its panics.
            let _ = thread.join();
        }
    }
}

impl Recovery {
    pub(crate) fn new(to_sweep: u32) -> Recovery {
        Recovery {
            course: Mutex::new(Course {
                phase: if to_sweep == 0 { Phase::Done } else { Phase::Idle },
                started: None,
                taken: Duration::ZERO,
                thread: None,
                threads: 0,
                pauses: 0,
                removals: 0,
            }),
            changed: Condvar::new(),
            stop: AtomicBool::new(false),
            traced: AtomicU64::new(0),
            swept: AtomicU32::new(0),
            to_sweep,
        }
    }

    fn enter(&self, phase: Phase) {
        let mut course = lock(&self.course);
        course.phase = phase;
        course.taken = course.started.map_or(Duration::ZERO, |started| started.elapsed());
        self.changed.notify_all();
    }

    /// Whether recovery is running.
    pub(crate) fn is_running(&self) -> bool {
        lock(&self.course).phase.is_running()
    }

    /// Waits for the end of recovery, for a caller that holds neither a guard nor a pause.
    pub(crate) fn wait_ended<M: Media>(&self, media: &M) {
        drop(self.wait_while(media, |course| course.phase.is_running()));
    }

    /// Waits for the end of recovery, for an allocation, whose caller may hold anything: returns at once if the
    /// thread holds a guard, and while there are pauses (I3).
    pub(crate) fn wait_for_room<M: Media>(&self, media: &M) {
        if crate::is_pinned() {
            return;
        }
        drop(self.wait_while(media, |course| course.phase.is_running() && course.pauses == 0));
    }

    /// Waits while `keeps_waiting` holds; returns `false` if recovery was stopped.
    fn wait_unless_stopped<M: Media>(&self, media: &M, keeps_waiting: impl Fn(&Course) -> bool) -> bool {
        let goes_on = |course: &Course| keeps_waiting(course) && !self.stop.load(SeqCst);
        let course = self.wait_while(media, goes_on);
        !keeps_waiting(&course)
    }

    /// Waits while `keeps_waiting` holds. Where threads take turns, the others run meanwhile.
    fn wait_while<M: Media>(
        &self,
        media: &M,
        keeps_waiting: impl Fn(&Course) -> bool,
    ) -> MutexGuard<'_, Course> {
        let mut course = lock(&self.course);
        while keeps_waiting(&course) {
            course = if M::TAKES_TURNS {
                drop(course);
                media.wait(0);
                lock(&self.course)
            } else {
                let woken = self.changed.wait(course);
                woken.unwrap_or_else(PoisonError::into_inner)
            };
        }
        course
    }

    /// Waits until all guards that exist now are gone; returns `false` if recovery was stopped.
    fn wait_for_guards<M: Media>(&self, media: &M) -> bool {
        let gone = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&gone);
        let guard = crate::pin();
        if M::REUSES_AT_ONCE {
            guard.defer_exactly(move || tell.store(true, SeqCst));
        } else {
            guard.defer(move || tell.store(true, SeqCst));
        }
        guard.flush();
        drop(guard);
        // A few flushes suffice if no other thread holds a guard.
        let mut turn = 0;
        while !gone.load(SeqCst) {
            if self.stop.load(SeqCst) {
                return false;
            }
            crate::pin().flush();
            // Always turn 0, which does not assume that another of the media's threads runs: the holder of the guard
            // need not be one of them.
            media.wait(0);
            turn += 1;
            if turn > if M::TAKES_TURNS { AWAKE_IN_TURNS } else { AWAKE } {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        true
    }
}

impl<M: Media> Heap<M> {
    /// Starts recovery in the background with this many threads (1 to 256), and returns at once. Each kind of root
    /// needs its tracer; if there is a root of another kind, nothing is swept. A second call does nothing.
    ///
    /// # Errors
    ///
    /// [`Error::Thread`].
    pub fn recover(&self, tracers: Tracers<M>, threads: usize) -> Result<(), Error> {
        let mut course = lock(&self.inner.recovery.course);
        if course.phase != Phase::Idle {
            return Ok(());
        }
        let heap = Heap {
            user: None,
            inner: Arc::clone(&self.inner),
        };
        let threads = threads.clamp(1, MAX_THREADS);
        let thread = std::thread::Builder::new()
            .name("wollemi-recover".into())
            .spawn(move || heap.recover_here(&tracers, threads))
            .map_err(Error::Thread)?;
        course.phase = Phase::Pausing;
        course.threads = threads;
        course.started = Some(Instant::now());
        course.thread = Some(thread);
        Ok(())
    }

    /// Recovers in the calling thread and returns how that ended. The caller must hold no guard. If recovery was
    /// started before, only waits for its end.
    pub fn recover_now(&self, tracers: &Tracers<M>) -> State {
        let mut course = lock(&self.inner.recovery.course);
        if course.phase != Phase::Idle {
            drop(course);
            return self.wait_recovered();
        }
        course.phase = Phase::Pausing;
        course.started = Some(Instant::now());
        drop(course);
        self.recover_here(tracers, 1);
        self.recovery().state
    }

    /// The number of threads that [`recover`](Heap::recover) was started with; 0 if it was not, or the pool is new.
    /// An index that is opened afterwards and has recovery work of its own may use as many.
    pub fn recovery_threads(&self) -> usize {
        lock(&self.inner.recovery.course).threads
    }

    /// The progress of recovery.
    pub fn recovery(&self) -> Progress {
        let recovery = &*self.inner.recovery;
        let course = lock(&recovery.course);
        let (state, running) = match &course.phase {
            Phase::Idle => (State::Idle, None),
            Phase::Pausing | Phase::Tracing | Phase::Settling | Phase::Sweeping => {
                (State::Running, course.started)
            }
            Phase::Done => (State::Done, None),
            Phase::Failed(why) => (State::Failed(why.clone()), None),
        };
        Progress {
            state,
            traced: recovery.traced.load(Relaxed),
            pages_swept: recovery.swept.load(Relaxed),
            pages_to_sweep: recovery.to_sweep,
            elapsed: running.map_or(course.taken, |started| started.elapsed()),
        }
    }

    /// Waits until recovery has ended, and returns how. Returns at once if it was not started. Hold no guard meanwhile:
    /// recovery waits for it.
    pub fn wait_recovered(&self) -> State {
        self.inner.recovery.wait_ended(self.media());
        self.recovery().state
    }

    /// For structure modifications too large to keep the rule of [`Trace`](crate::Trace): keeps recovery from tracing
    /// until the pause is dropped. If it is tracing now, or about to, waits until the trace has ended. (Recovery
    /// traces once, after an opening; it waits for pauses before it begins.) The holder of a pause may allocate: if
    /// the pool is full and recovery waits for pauses, the allocation fails. Otherwise it must not wait for recovery,
    /// nor for another pause.
    pub fn pause_trace(&self) -> TracePause {
        let recovery = &self.inner.recovery;
        recovery
            .wait_while(self.media(), |course| course.phase.keeps_pauses_out())
            .pauses += 1;
        TracePause(Arc::clone(recovery))
    }

    /// Like [`pause_trace`](Heap::pause_trace), but returns `None` at once if recovery is tracing.
    pub fn try_pause_trace(&self) -> Option<TracePause> {
        let recovery = &self.inner.recovery;
        let mut course = lock(&recovery.course);
        if course.phase.keeps_pauses_out() {
            return None;
        }
        course.pauses += 1;
        Some(TracePause(Arc::clone(recovery)))
    }

    /// For a caller whose allocation found the pool full: waits until recovery has ended, if it is running; frees
    /// retired objects that no guard protects any more; and returns `true`: the allocation is worth a retry. Returns
    /// `false` at once to a thread that holds a guard. The caller holds no [pause](Heap::pause_trace) either.
    pub fn wait_for_room(&self) -> bool {
        if crate::is_pinned() {
            return false;
        }
        self.inner.recovery.wait_ended(self.media());
        crate::flush_retired();
        true
    }

    /// Runs an operation that may find the pool full; if it does, [waits for room](Heap::wait_for_room) and runs it
    /// once more. The closure takes its guards itself, so that none is held during the wait.
    #[inline]
    pub fn with_room<T, E: MayBeFull>(&self, mut run: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        match run() {
            Err(error) if error.is_full() && self.wait_for_room() => run(),
            done => done,
        }
    }

    fn recover_here(&self, tracers: &Tracers<M>, threads: usize) {
        let ended = catch_unwind(AssertUnwindSafe(|| self.trace_and_sweep(tracers, threads)));
        let phase = match ended {
            Ok(Ok(true)) => Phase::Done,
            Ok(Ok(false)) => Phase::Failed("stopped".into()),
            Ok(Err(error)) => Phase::Failed(error.to_string()),
            Err(_) => Phase::Failed("a tracer panicked".into()),
        };
        if phase != Phase::Done {
            self.inner.space.nothing_is_swept();
        }
        self.inner.recovery.enter(phase);
    }

    /// Runs all of recovery; returns `false` if it was stopped.
    fn trace_and_sweep(&self, tracers: &Tracers<M>, threads: usize) -> Result<bool, Error> {
        let (space, recovery, media) = (&self.inner.space, &*self.inner.recovery, self.media());
        // This phase keeps new pauses from beginning.
        if !recovery.wait_unless_stopped(media, |course| course.pauses > 0) {
            return Ok(false);
        }
        recovery.enter(Phase::Tracing);
        space.trace_begins();
        let tracing = Tracing {
            heap: self,
            tracers,
            threads,
            stop: &recovery.stop,
            traced: &recovery.traced,
        };
        if !tracing.run(&|offset, len| space.mark(offset, len))? {
            return Ok(false);
        }
        // Removals that begin from here on do not count.
        recovery.enter(Phase::Settling);
        if space.trace_ended()? {
            media.comes_to("recovery: retired while it traced");
        }
        if lock(&recovery.course).removals > 0 {
            media.comes_to("recovery: waits for a removal");
        }
        let settled = recovery.wait_unless_stopped(media, |course| course.removals > 0)
            && recovery.wait_for_guards(media);
        if !settled {
            return Ok(false);
        }
        recovery.enter(Phase::Sweeping);
        space.sweep_begins()?;
        let next = &AtomicU32::new(space.old_pages().start);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // With fewer threads than requested, the sweep only takes longer.
                let _ = std::thread::Builder::new().spawn_scoped(scope, move || self.sweep_here(next));
            }
            self.sweep_here(next);
        });
        Ok(recovery.swept.load(Relaxed) == recovery.to_sweep)
    }

    fn sweep_here(&self, next: &AtomicU32) {
        let (space, recovery) = (&*self.inner.space, &*self.inner.recovery);
        let end = space.old_pages().end;
        while !recovery.stop.load(Relaxed) {
            let start = next.fetch_add(SWEEP_BATCH, Relaxed);
            if start >= end {
                return;
            }
            for page in start..end.min(start + SWEEP_BATCH) {
                space.sweep(page);
                recovery.swept.fetch_add(1, Relaxed);
            }
        }
    }
}
