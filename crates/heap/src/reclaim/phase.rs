//! The phases of recovery, what holds it back, and the threads that wait for it. What it does in each phase is in
//! [`recover`](crate::recovery::recover).
//!
//! I1 The phase, the pauses and the removals change under one lock: no pause begins while recovery traces, and a
//!    removal counts if it begins before the trace has ended.
//! I2 No wait for the end of recovery outlasts the heap's last handle.

use crate::lock::lock;
use pmem::{Media, Process};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Turns that recovery stays awake while it waits for guards.
const AWAKE: u32 = 8;

/// The same where threads take turns: the holder of a guard runs meanwhile, and sleeping helps only against other
/// threads of the process.
const AWAKE_IN_TURNS: u32 = 20_000;

/// The stage of recovery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryStage {
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
    /// The stage.
    pub state: RecoveryStage,
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
pub(crate) enum Phase {
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
    pub(crate) fn keeps_pauses_out(&self) -> bool {
        matches!(self, Phase::Pausing | Phase::Tracing)
    }

    /// Whether the trace has not ended, or may yet begin.
    fn is_before_trace_end(&self) -> bool {
        matches!(self, Phase::Idle | Phase::Pausing | Phase::Tracing)
    }
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    pub(crate) started: Option<Instant>,
    pub(crate) taken: Duration,
    pub(crate) thread: Option<JoinHandle<()>>,
    /// Number of threads that it was started with; 0 before the start.
    pub(crate) threads: usize,
    /// Holders of a [`TracePause`].
    pub(crate) pauses: usize,
    /// Running removals that began before the trace's end.
    pub(crate) removals: usize,
}

#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) state: Mutex<State>,
    changed: Condvar,
    pub(crate) stop: AtomicBool,
    pub(crate) traced: AtomicU64,
    pub(crate) swept: AtomicU32,
    pub(crate) to_sweep: u32,
}

/// Keeps recovery from tracing while it lives: see [`Heap::pause_trace`](crate::Heap::pause_trace).
#[derive(Debug)]
#[must_use]
pub struct TracePause(Arc<Recovery>);

impl TracePause {
    /// Counts a pause, under the lock of the state.
    pub(crate) fn begin(recovery: &Arc<Recovery>, state: &mut State) -> TracePause {
        state.pauses += 1;
        TracePause(Arc::clone(recovery))
    }
}

impl Drop for TracePause {
    fn drop(&mut self) {
        lock(&self.0.state).pauses -= 1;
        self.0.changed.notify_all();
    }
}

/// Keeps recovery from sweeping while it lives, if the trace had not ended when it was made: objects that its holder
/// unlinks meanwhile may be retired under later guards.
#[derive(Debug)]
pub(crate) struct Removal(Option<Arc<Recovery>>);

impl Removal {
    pub(crate) fn begin(recovery: &Arc<Recovery>) -> Removal {
        let mut state = lock(&recovery.state);
        let counts = state.phase.is_before_trace_end();
        state.removals += usize::from(counts);
        Removal(counts.then(|| Arc::clone(recovery)))
    }
}

impl Drop for Removal {
    fn drop(&mut self) {
        if let Some(recovery) = &self.0 {
            lock(&recovery.state).removals -= 1;
            recovery.changed.notify_all();
        }
    }
}

/// Stops recovery when the last handle of its heap is dropped, and waits until it has stopped. In a forked child,
/// which does not have recovery's thread, it does nothing.
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
            // Leaks `recovery`, so that the handle in it, of a thread that does not exist here, is never dropped.
            std::mem::forget(Arc::clone(recovery));
            return;
        }
        recovery.stop.store(true, SeqCst);
        // A waiting thread checks `stop` under this lock, and so either sees that it is set or is woken.
        let thread = lock(&recovery.state).thread.take();
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
            state: Mutex::new(State {
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

    pub(crate) fn enter(&self, phase: Phase) {
        let mut state = lock(&self.state);
        state.phase = phase;
        state.taken = state.started.map_or(Duration::ZERO, |started| started.elapsed());
        self.changed.notify_all();
    }

    /// Whether recovery is running.
    pub(crate) fn is_running(&self) -> bool {
        lock(&self.state).phase.is_running()
    }

    /// Waits for the end of recovery, for a caller that holds neither a guard nor a pause.
    pub(crate) fn wait_ended<M: Media>(&self, media: &M) {
        drop(self.wait_while(media, |state| state.phase.is_running()));
    }

    /// Waits for the end of recovery, for an allocation, whose caller may hold anything: returns at once if the
    /// thread holds a guard, and while there are pauses (I3 of `recover`).
    pub(crate) fn wait_for_room<M: Media>(&self, media: &M) {
        if crate::is_pinned() {
            return;
        }
        drop(self.wait_while(media, |state| state.phase.is_running() && state.pauses == 0));
    }

    /// Waits while `keeps_waiting` holds; returns `false` if recovery was stopped.
    pub(crate) fn wait_unless_stopped<M: Media>(
        &self,
        media: &M,
        keeps_waiting: impl Fn(&State) -> bool,
    ) -> bool {
        let goes_on = |state: &State| keeps_waiting(state) && !self.stop.load(SeqCst);
        let state = self.wait_while(media, goes_on);
        !keeps_waiting(&state)
    }

    /// Waits while `keeps_waiting` holds. Where threads take turns, the others run meanwhile.
    pub(crate) fn wait_while<M: Media>(
        &self,
        media: &M,
        keeps_waiting: impl Fn(&State) -> bool,
    ) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        while keeps_waiting(&state) {
            state = if M::TAKES_TURNS {
                drop(state);
                media.wait(0);
                lock(&self.state)
            } else {
                let woken = self.changed.wait(state);
                woken.unwrap_or_else(PoisonError::into_inner)
            };
        }
        state
    }

    /// Waits until all guards that exist now are gone; returns `false` if recovery was stopped.
    pub(crate) fn wait_for_guards<M: Media>(&self, media: &M) -> bool {
        let gone = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&gone);
        let guard = crate::pin();
        if M::REUSES_AT_ONCE {
            guard.defer_exactly(move || tell.store(true, SeqCst));
        } else {
            guard.defer(0, move || tell.store(true, SeqCst));
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
