//! The media that records runs, and creates crash images lazily, as they are read.
//!
//! One [`Memory`] serves all images, so that none is ever copied: it holds the *base*, the stores that survive any
//! crash; a line in which images differ takes the version that the [chooser](crate::choose) picks when it is first
//! touched; and when a run ends, its changes are undone.
//!
//! I1 Between runs the memory holds the base; a new run has touched and saved no line.
//! I2 A line is touched before anything of it is read or written, and saved before anything of it changes.
//! I3 One OS thread uses the media at a time. Logical threads take turns at its calls.
//!
//! The common path, a line touched before, is a few loads; the rest is behind one mutex.
//!
//! | file | idea |
//! |---|---|
//! | `passing` | the calls of the structure under test |
//! | `lines` | lines, touched and saved |
//! | `base` | the base, and stores that join it |
//! | `sharing` | the visibility of stores among logical threads |
//! | `freed` | memory that was freed |
//!
//! This file manages the runs.

mod base;
mod freed;
mod lines;
mod passing;
mod sharing;

use crate::choose::{Chooser, Random};
use crate::log::{EventKind, EventLog, Site};
use crate::meetings::Meetings;
use crate::model::{Content, LineHasher, MemoryModel, Tracker};
use crate::point::{Access, AccessKind, Point};
use freed::Freed;
use pmem::{LINE, Memory};
use sharing::Sharing;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::panic::Location;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// While refusals are on, one in this many allocations is refused.
const REFUSE_ONE_IN: u64 = 3;

/// The state of a line of memory.
#[derive(Default)]
struct LineState {
    /// The last run that touched it: during that run, memory holds the image's content.
    touched: AtomicU32,
    /// The last run that saved its earlier content on the undo list.
    saved: AtomicU32,
    /// The last epoch in which a run touched it.
    read: AtomicU32,
    /// Whether images differ in it.
    unsettled: AtomicBool,
    /// The last run in which something in it was freed.
    freed: AtomicU32,
    /// The hash of its base; 0: not computed.
    hash: AtomicU64,
}

/// Called at every point where logical threads may switch. Returns the number of the thread that continues.
pub type Schedule = Arc<dyn Fn(Point) -> u32 + Send + Sync>;

/// The recording media. Clones share one state.
#[derive(Clone)]
pub struct Crash(Arc<MediaState>);

struct MediaState {
    memory: Memory,
    start: usize,
    len: usize,
    lines: Box<[LineState]>,
    /// The number of the run, from 1.
    run: AtomicU32,
    epoch: AtomicU32,
    /// A hash of all that was read in this run.
    signature: AtomicU64,
    /// Accesses left before a run counts as hanging.
    steps: AtomicU64,
    hung: AtomicBool,
    /// The seed of refusals of memory; 0: none.
    refusals: AtomicU64,
    recording: AtomicBool,
    thread: AtomicU32,
    /// Whether logical threads take turns now.
    threaded: AtomicBool,
    schedule: Mutex<Option<Schedule>>,
    slow: Mutex<Slow>,
}

/// By thread and line, the call sites that have asked for a write-back.
type Joins = HashMap<u64, Vec<Site>, BuildHasherDefault<LineHasher>>;

/// State off the common path, behind the mutex.
pub(crate) struct Slow {
    pub(crate) tracker: Tracker,
    pub(crate) chooser: Chooser,
    /// Changes of the base, for undoing them.
    base_undo: Vec<(u32, u64)>,
    undo: Vec<(u32, Content)>,
    log: EventLog,
    /// Those that have asked since the thread's last write-back of the line...
    joins: Joins,
    /// ...and those that asked for that write-back.
    issued: Joins,
    sharing: Sharing,
    freed: Freed,
    /// The first fault that the media has found in the run.
    finding: Option<String>,
    /// How logical threads have met in this run.
    meetings: Meetings,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    /// Hash of everything that was read.
    pub(crate) signature: u64,
    hung: bool,
    finding: Option<String>,
}

impl Ended {
    /// Returns the media's finding if there is one, and otherwise the run's own result.
    pub(crate) fn outcome<R>(&mut self, ran: Result<R, String>) -> Result<R, String> {
        match self.finding.take() {
            Some(finding) => Err(finding),
            None if self.hung => Err("the run hangs".into()),
            None => ran,
        }
    }
}

/// The panic payload that unwinds a run which hangs or has a finding.
struct StopRun;

/// Turns that a lone thread may wait in one loop before it counts as hanging.
const MAX_TURNS: u32 = 100;

impl std::fmt::Debug for Crash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Crash").finish_non_exhaustive()
    }
}

impl Crash {
    /// Creates a media over `memory`, which must hold zeros.
    pub fn new(memory: Memory) -> Crash {
        let len = memory.len() as usize;
        Crash(Arc::new(MediaState {
            start: memory.base().as_ptr().addr(),
            len,
            lines: (0..len / LINE).map(|_| LineState::default()).collect(),
            run: AtomicU32::new(1),
            epoch: AtomicU32::new(0),
            signature: AtomicU64::new(0),
            memory,
            steps: AtomicU64::new(u64::MAX),
            hung: AtomicBool::new(false),
            refusals: AtomicU64::new(0),
            recording: AtomicBool::new(false),
            thread: AtomicU32::new(0),
            threaded: AtomicBool::new(false),
            schedule: Mutex::new(None),
            slow: Mutex::new(Slow {
                tracker: Tracker::new(MemoryModel::default()),
                chooser: Chooser::default(),
                base_undo: Vec::new(),
                undo: Vec::new(),
                log: EventLog::default(),
                joins: Joins::default(),
                issued: Joins::default(),
                sharing: Sharing::default(),
                freed: Freed::default(),
                finding: None,
                meetings: Meetings::default(),
            }),
        }))
    }

    /// Returns the memory in which pools are made.
    pub fn memory(&self) -> &Memory {
        &self.0.memory
    }

    /// Sets the logical thread that runs from now on; 0 is the first.
    fn set_thread(&self, thread: u32) {
        self.0.thread.store(thread, Relaxed);
    }

    /// Returns the logical thread that runs.
    fn thread(&self) -> u32 {
        self.0.thread.load(Relaxed)
    }

    /// Runs `f`, and calls `schedule` wherever its logical threads may switch.
    pub(crate) fn scheduled<R>(&self, schedule: Schedule, f: impl FnOnce() -> R) -> R {
        *self.schedule() = Some(schedule);
        {
            let mut slow = self.slow();
            slow.sharing = Sharing::default();
            slow.meetings = Meetings::default();
        }
        self.set_thread(0);
        self.0.threaded.store(true, Relaxed);
        let result = f();
        self.0.threaded.store(false, Relaxed);
        self.set_thread(0);
        *self.schedule() = None;
        result
    }

    fn schedule(&self) -> MutexGuard<'_, Option<Schedule>> {
        self.0.schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the meetings of the last run with several logical threads.
    pub(crate) fn take_meetings(&self) -> Meetings {
        std::mem::take(&mut self.slow().meetings)
    }

    /// Makes the first logical thread current again, once the others have ended.
    pub(crate) fn rejoin(&self) {
        self.set_thread(0);
    }

    #[cold]
    #[inline(never)]
    fn switch(&self, point: Point) {
        // No switch while a thread unwinds: the others would take the panic for their own.
        if std::thread::panicking() {
            return;
        }
        let schedule = self.schedule().clone();
        if let Some(schedule) = schedule {
            self.slow().meetings.stops(self.thread(), &point);
            self.set_thread(schedule(point));
            self.slow().meetings.goes_on(self.thread(), &point);
        }
    }

    /// Logs that operation `op` of the current thread begins.
    #[track_caller]
    pub fn invoke(&self, op: u32) {
        if self.0.threaded.load(Relaxed) {
            self.switch(Point::Invoke);
        }
        self.event(EventKind::Invoke(op));
    }

    /// Logs that operation `op` of the current thread has answered.
    #[track_caller]
    pub fn acknowledge(&self, op: u32) {
        self.event(EventKind::Ack(op));
        self.slow().meetings.ends(self.thread());
    }

    pub(crate) fn slow(&self) -> MutexGuard<'_, Slow> {
        self.0.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a run of at most this many accesses.
    pub(crate) fn begin(&self, steps: u64) {
        self.0.steps.store(steps, Relaxed);
        self.0.hung.store(false, Relaxed);
        self.refuse_memory(0);
    }

    /// From now on fails some allocations, drawn by this seed, as if the pool were full; 0: none.
    pub(crate) fn refuse_memory(&self, seed: u64) {
        self.0.refusals.store(seed, Relaxed);
    }

    fn draw_refusal(&self) -> bool {
        let seed = self.0.refusals.load(Relaxed);
        if seed == 0 {
            return false;
        }
        let mut random = Random(seed);
        let refused = random.below(REFUSE_ONE_IN) == 0;
        self.refuse_memory(random.next().max(1));
        refused
    }

    /// Begins to record events.
    pub(crate) fn record(&self) {
        self.slow().log = EventLog::default();
        self.0.recording.store(true, Relaxed);
    }

    /// Ends recording and returns the log.
    pub(crate) fn recorded(&self) -> EventLog {
        self.0.recording.store(false, Relaxed);
        let mut slow = self.slow();
        slow.joins.clear();
        slow.issued.clear();
        std::mem::take(&mut slow.log)
    }

    /// Returns the number of events recorded so far.
    pub(crate) fn recorded_so_far(&self) -> usize {
        self.slow().log.events.len()
    }

    /// Ends the run and restores memory to its content at the beginning.
    pub(crate) fn end(&self) -> Ended {
        self.0.steps.store(u64::MAX, Relaxed);
        let mut slow = self.slow();
        for (line, content) in slow.undo.drain(..) {
            self.write(line, &content);
        }
        slow.freed.clear();
        let finding = slow.finding.take();
        drop(slow);
        self.0.run.store(self.run() + 1, Relaxed);
        Ended {
            signature: self.0.signature.swap(0, Relaxed),
            hung: self.0.hung.load(Relaxed),
            finding,
        }
    }

    fn run(&self) -> u32 {
        self.0.run.load(Relaxed)
    }

    /// Begins a new epoch, in which no line has been read.
    pub(crate) fn new_epoch(&self) {
        self.0.epoch.store(self.0.epoch.load(Relaxed) + 1, Relaxed);
    }

    /// Returns whether the line was read in this epoch.
    pub(crate) fn was_read(&self, line: u32) -> bool {
        self.0.lines[line as usize].read.load(Relaxed) == self.0.epoch.load(Relaxed)
    }

    /// Counts an access, before which threads may switch.
    #[inline(always)]
    #[track_caller]
    fn count_access(&self, kind: AccessKind, at: *const u8) {
        let left = self.0.steps.load(Relaxed);
        if left == 0 {
            self.hang();
        }
        self.0.steps.store(left.saturating_sub(1), Relaxed);
        if self.0.threaded.load(Relaxed) {
            let (at, site) = (at.addr(), Location::caller());
            self.switch(Point::Access(Access { at, kind, site }));
        }
    }

    /// Ends the run as one that hangs.
    #[cold]
    #[inline(never)]
    fn hang(&self) {
        self.0.hung.store(true, Relaxed);
        self.unwind();
    }

    /// Ends the run with a finding.
    fn end_with(&self, finding: String) {
        self.slow().finding.get_or_insert(finding);
        self.unwind();
    }

    fn unwind(&self) {
        if !std::thread::panicking() {
            std::panic::resume_unwind(Box::new(StopRun));
        }
    }
}
