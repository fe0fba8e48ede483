//! Recovery in the background: instant restart and post-crash garbage collection (ROART §3.4.2).
//!
//! All allocator metadata is volatile, so every opening, clean or not, rebuilds it, while the indexes are in use:
//!
//! 1. *Trace.* From the roots, mark every chunk of earlier generations that is alive. New chunks come from new pages
//!    meanwhile, and retired objects, old or new, are [kept](crate::alloc::quarantine): nothing that was reachable
//!    since the trace began is reused, so tracers need no guard and no write barrier. ([`Trace`](crate::Trace) states
//!    what indexes promise.)
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

use crate::lock::lock;
use crate::reclaim::phase::{Phase, Progress, RecoveryStage, TracePause};
use crate::recovery::trace::{MAX_THREADS, Tracers, Tracing};
use crate::{Error, Heap, MayBeFull};
use pmem::Media;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

/// Pages per batch of a sweeping thread.
const SWEEP_BATCH: u32 = 64;

impl<M: Media> Heap<M> {
    /// Starts recovery in the background with this many threads (1 to 256), and returns at once. Each kind of root
    /// needs its tracer; if there is a root of another kind, nothing is swept. Does nothing in a new pool, or if
    /// recovery was started before.
    ///
    /// # Errors
    ///
    /// [`Error::Thread`].
    pub fn recover(&self, tracers: Tracers<M>, threads: usize) -> Result<(), Error> {
        let mut state = lock(&self.inner.recovery.state);
        if state.phase != Phase::Idle {
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
        state.phase = Phase::Pausing;
        state.threads = threads;
        state.started = Some(Instant::now());
        state.thread = Some(thread);
        Ok(())
    }

    /// Recovers in the calling thread and returns how that ended. The caller must hold no guard. If recovery was
    /// started before, or the pool is new, only waits for its end.
    pub fn recover_now(&self, tracers: &Tracers<M>) -> RecoveryStage {
        let mut state = lock(&self.inner.recovery.state);
        if state.phase != Phase::Idle {
            drop(state);
            return self.wait_recovered();
        }
        state.phase = Phase::Pausing;
        state.started = Some(Instant::now());
        drop(state);
        self.recover_here(tracers, 1);
        self.recovery().state
    }

    /// The number of threads that [`recover`](Heap::recover) was started with; 0 if it was not, or the pool is new.
    /// An index that is opened afterwards and has recovery work of its own may use as many.
    pub fn recovery_threads(&self) -> usize {
        lock(&self.inner.recovery.state).threads
    }

    /// The progress of recovery.
    pub fn recovery(&self) -> Progress {
        let recovery = &*self.inner.recovery;
        let state = lock(&recovery.state);
        let (stage, running) = match &state.phase {
            Phase::Idle => (RecoveryStage::Idle, None),
            Phase::Pausing | Phase::Tracing | Phase::Settling | Phase::Sweeping => {
                (RecoveryStage::Running, state.started)
            }
            Phase::Done => (RecoveryStage::Done, None),
            Phase::Failed(why) => (RecoveryStage::Failed(why.clone()), None),
        };
        Progress {
            state: stage,
            traced: recovery.traced.load(Relaxed),
            pages_swept: recovery.swept.load(Relaxed),
            pages_to_sweep: recovery.to_sweep,
            elapsed: running.map_or(state.taken, |started| started.elapsed()),
        }
    }

    /// Waits until recovery has ended, and returns how. Returns at once if it was not started. Hold no guard meanwhile:
    /// recovery waits for it.
    pub fn wait_recovered(&self) -> RecoveryStage {
        self.inner.recovery.wait_ended(self.media());
        self.recovery().state
    }

    /// For structure modifications too large to keep the rule of [`Trace`](crate::Trace): keeps recovery from tracing
    /// until the pause is dropped. If recovery is tracing now, or waits for other pauses to end, this waits until the
    /// trace has ended. (Recovery traces once, after an opening; it waits for pauses before it begins.)
    ///
    /// The holder of a pause may allocate: while there are pauses, an allocation in a full pool fails and does not wait
    /// for recovery. The holder must not wait for recovery in another way, nor for another pause.
    pub fn pause_trace(&self) -> TracePause {
        let recovery = &self.inner.recovery;
        let mut state = recovery.wait_while(self.media(), |state| state.phase.keeps_pauses_out());
        TracePause::begin(recovery, &mut state)
    }

    /// Like [`pause_trace`](Heap::pause_trace), but returns `None` at once if recovery is tracing or about to.
    pub fn try_pause_trace(&self) -> Option<TracePause> {
        let recovery = &self.inner.recovery;
        let mut state = lock(&recovery.state);
        if state.phase.keeps_pauses_out() {
            return None;
        }
        Some(TracePause::begin(recovery, &mut state))
    }

    /// For a caller whose allocation found the pool full: waits until recovery has ended, if it is running; frees
    /// retired objects that no guard protects any more; and returns `true`: the allocation is worth a retry. Returns
    /// `false` at once to a thread that holds a guard. The caller holds no [pause](Heap::pause_trace) either.
    pub fn wait_for_room(&self) -> bool {
        if crate::is_pinned() {
            return false;
        }
        self.inner.recovery.wait_ended(self.media());
        self.inner.reclaim_retired();
        true
    }

    /// Runs an operation that may find the pool full; if it does, [waits for room](Heap::wait_for_room) and runs it
    /// once more. The closure takes its guards itself, so that none is held during the wait.
    #[inline]
    pub fn with_room<T, E: MayBeFull>(&self, mut run: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        // One call of the closure, so that it is inlined.
        let mut is_retry = false;
        loop {
            match run() {
                Err(error) if error.is_full() && !is_retry && self.wait_for_room() => is_retry = true,
                done => return done,
            }
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
            self.inner.arena.nothing_is_swept();
        }
        self.inner.recovery.enter(phase);
    }

    /// Runs all of recovery; returns `false` if it was stopped.
    fn trace_and_sweep(&self, tracers: &Tracers<M>, threads: usize) -> Result<bool, Error> {
        let (arena, recovery, media) = (&self.inner.arena, &*self.inner.recovery, self.media());
        // This phase keeps new pauses from beginning.
        if !recovery.wait_unless_stopped(media, |state| state.pauses > 0) {
            return Ok(false);
        }
        recovery.enter(Phase::Tracing);
        arena.trace_begins();
        let tracing = Tracing {
            heap: self,
            tracers,
            threads,
            stop: &recovery.stop,
            traced: &recovery.traced,
        };
        if !tracing.run(self.roots()?, &|offset, len| arena.mark(offset, len))? {
            return Ok(false);
        }
        // Removals that begin from here on do not count.
        recovery.enter(Phase::Settling);
        if arena.trace_ended()? {
            media.comes_to("recovery: retired while it traced");
        }
        if lock(&recovery.state).removals > 0 {
            media.comes_to("recovery: waits for a removal");
        }
        let settled = recovery.wait_unless_stopped(media, |state| state.removals > 0)
            && recovery.wait_for_guards(media);
        if !settled {
            return Ok(false);
        }
        recovery.enter(Phase::Sweeping);
        arena.sweep_begins()?;
        let next = &AtomicU32::new(arena.old_pages().start);
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
        let (arena, recovery) = (&*self.inner.arena, &*self.inner.recovery);
        let end = arena.old_pages().end;
        while !recovery.stop.load(Relaxed) {
            let start = next.fetch_add(SWEEP_BATCH, Relaxed);
            if start >= end {
                return;
            }
            for page in start..end.min(start + SWEEP_BATCH) {
                arena.sweep(page);
                recovery.swept.fetch_add(1, Relaxed);
            }
        }
    }
}
