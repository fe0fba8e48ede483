//! The media that records runs, and lets crash images come into being as they are read.
//!
//! One [`Memory`] serves for everything, so that no image is ever copied: it holds the *base*, what a crash is sure to
//! leave; a line in which images differ takes the version that the [chooser](crate::choose) picks when it is first
//! touched; and whatever a run changes is put back when it has ended.
//!
//! I1 Between runs the memory holds the base; a new run has touched and saved no line.
//! I2 A line is touched before anything of it is read or written, and saved before anything of it changes.
//! I3 One OS thread uses the media at a time. Logical threads take turns at its calls.
//!
//! The common path, a line touched before, is a few loads; the rest is behind one mutex.
//!
//! | file | idea |
//! |---|---|
//! | `passing` | what the structure under test calls |
//! | `lines` | lines, touched and saved |
//! | `base` | the base, and what becomes part of it |
//! | `sharing` | what logical threads see of each other |
//!
//! Here are runs.

mod base;
mod lines;
mod passing;
mod sharing;

use crate::choose::Chooser;
use crate::log::{Log, Site, What};
use crate::model::{Content, LineHasher, Model, Tracker};
use pmem::{LINE, Memory};
use sharing::Sharing;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What is known of a line of the memory.
#[derive(Default)]
struct LineState {
    /// The last run that has touched it: what memory holds is its image.
    touched: AtomicU32,
    /// The last run that has put what it held before on the undo list.
    saved: AtomicU32,
    /// The last epoch in which it was touched.
    read: AtomicU32,
    /// Whether images differ in it.
    unsettled: AtomicBool,
    /// The hash of its base; 0: not computed.
    hash: AtomicU64,
}

/// Where a logical thread may be switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Before an access of persistent memory, a write-back or a fence.
    Access,
    /// In a loop that waits for another thread: it makes no progress before another runs.
    Wait,
}

/// Called at every point where logical threads may be switched; the number of the one that it returns to.
pub type Schedule = Box<dyn Fn(Point) -> u32 + Send + Sync>;

/// The media. Clones are handles of the same one.
#[derive(Clone)]
pub struct Crash(Arc<Shared>);

struct Shared {
    memory: Memory,
    start: usize,
    len: usize,
    lines: Box<[LineState]>,
    /// The number of the run; of the first, 1.
    run: AtomicU32,
    epoch: AtomicU32,
    /// Of all that was read in this run.
    signature: AtomicU64,
    /// Accesses left before a run counts as hanging.
    steps: AtomicU64,
    hung: AtomicBool,
    recording: AtomicBool,
    thread: AtomicU32,
    /// Whether logical threads take turns now.
    threaded: AtomicBool,
    schedule: OnceLock<Schedule>,
    slow: Mutex<Slow>,
}

/// Who asked for a line's write-back since it was last written back.
type Joins = HashMap<u64, Vec<Site>, BuildHasherDefault<LineHasher>>;

/// What the common path does without.
pub(crate) struct Slow {
    pub(crate) tracker: Tracker,
    pub(crate) chooser: Chooser,
    /// Changes of the base, to be taken back in the end.
    base_undo: Vec<(u32, u64)>,
    undo: Vec<(u32, Content)>,
    log: Log,
    joins: Joins,
    sharing: Sharing,
}

/// How a run ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    /// Of all that was read.
    pub(crate) signature: u64,
    pub(crate) hung: bool,
}

/// What unwinds a run that hangs.
struct Hang;

/// How often a lone thread may wait in one loop.
const MOST_TURNS: u32 = 100;

impl std::fmt::Debug for Crash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crash").finish_non_exhaustive()
    }
}

impl Crash {
    /// A media over `memory`, which holds zeros.
    pub fn new(memory: Memory) -> Crash {
        let len = memory.len() as usize;
        Crash(Arc::new(Shared {
            start: memory.base().as_ptr().addr(),
            len,
            lines: (0..len / LINE).map(|_| LineState::default()).collect(),
            run: AtomicU32::new(1),
            epoch: AtomicU32::new(0),
            signature: AtomicU64::new(0),
            memory,
            steps: AtomicU64::new(u64::MAX),
            hung: AtomicBool::new(false),
            recording: AtomicBool::new(false),
            thread: AtomicU32::new(0),
            threaded: AtomicBool::new(false),
            schedule: OnceLock::new(),
            slow: Mutex::new(Slow {
                tracker: Tracker::new(Model::default()),
                chooser: Chooser::default(),
                base_undo: Vec::new(),
                undo: Vec::new(),
                log: Log::default(),
                joins: Joins::default(),
                sharing: Sharing::default(),
            }),
        }))
    }

    /// The memory that pools are made in.
    pub fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// Says which logical thread runs from now on; 0 is the first.
    fn set_thread(&self, thread: u32) {
        self.0.thread.store(thread, Relaxed);
    }

    /// The logical thread that runs.
    fn thread(&self) -> u32 {
        self.0.thread.load(Relaxed)
    }

    /// Runs `f`, and has `schedule` called wherever its logical threads may be switched. The schedule of the first such
    /// run serves for all.
    pub(crate) fn scheduled<R>(&self, schedule: Schedule, f: impl FnOnce() -> R) -> R {
        let _ = self.0.schedule.set(schedule);
        self.slow().sharing = Sharing::default();
        self.set_thread(0);
        self.0.threaded.store(true, Relaxed);
        let result = f();
        self.0.threaded.store(false, Relaxed);
        self.set_thread(0);
        result
    }

    /// Says that the first logical thread runs again, as the others have ended.
    pub(crate) fn rejoin(&self) {
        self.set_thread(0);
    }

    #[cold]
    #[inline(never)]
    fn switch(&self, point: Point) {
        // Who unwinds does so alone: the others would take it for their own panic.
        if !std::thread::panicking()
            && let Some(schedule) = self.0.schedule.get()
        {
            self.set_thread(schedule(point));
        }
    }

    /// Writes down that operation `op` of the current thread begins.
    #[track_caller]
    pub fn invoke(&self, op: u32) {
        if self.0.threaded.load(Relaxed) {
            self.switch(Point::Access);
        }
        self.event(What::Invoke(op));
    }

    /// Writes down that operation `op` of the current thread has answered.
    #[track_caller]
    pub fn acknowledge(&self, op: u32) {
        self.event(What::Ack(op));
    }

    pub(crate) fn slow(&self) -> MutexGuard<'_, Slow> {
        self.0.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the run that begins so many accesses.
    pub(crate) fn begin(&self, steps: u64) {
        self.0.steps.store(steps, Relaxed);
        self.0.hung.store(false, Relaxed);
    }

    /// Begins to write down what happens.
    pub(crate) fn record(&self) {
        self.slow().log = Log::default();
        self.0.recording.store(true, Relaxed);
    }

    /// Ends writing down, and gives the log.
    pub(crate) fn recorded(&self) -> Log {
        self.0.recording.store(false, Relaxed);
        let mut slow = self.slow();
        slow.joins.clear();
        std::mem::take(&mut slow.log)
    }

    /// How many events there are so far.
    pub(crate) fn recorded_so_far(&self) -> usize {
        self.slow().log.events.len()
    }

    /// Puts everything back as it was when the run began.
    pub(crate) fn end(&self) -> Ended {
        self.0.steps.store(u64::MAX, Relaxed);
        let mut slow = self.slow();
        for (line, content) in slow.undo.drain(..) {
            self.write(line, &content);
        }
        drop(slow);
        self.0.run.store(self.run() + 1, Relaxed);
        Ended {
            signature: self.0.signature.swap(0, Relaxed),
            hung: self.0.hung.load(Relaxed),
        }
    }

    fn run(&self) -> u32 {
        self.0.run.load(Relaxed)
    }

    /// From now on, lines read count as read in a new epoch.
    pub(crate) fn new_epoch(&self) {
        self.0.epoch.store(self.0.epoch.load(Relaxed) + 1, Relaxed);
    }

    /// Whether the line was read in this epoch.
    pub(crate) fn was_read(&self, line: u32) -> bool {
        self.0.lines[line as usize].read.load(Relaxed) == self.0.epoch.load(Relaxed)
    }

    /// One access more.
    #[inline(always)]
    fn step_on(&self) {
        let left = self.0.steps.load(Relaxed);
        if left == 0 {
            self.hang();
        }
        self.0.steps.store(left.saturating_sub(1), Relaxed);
        if self.0.threaded.load(Relaxed) {
            self.switch(Point::Access);
        }
    }

    /// Unwinds the run, unless it is unwinding already.
    #[cold]
    #[inline(never)]
    fn hang(&self) {
        self.0.hung.store(true, Relaxed);
        if !std::thread::panicking() {
            std::panic::resume_unwind(Box::new(Hang));
        }
    }
}
