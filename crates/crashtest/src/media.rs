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

use crate::choose::Chooser;
use crate::log::{Event, Log, Site, Store, What};
use crate::model::{Base, Content, LineHasher, Model, Tracker};
use pmem::{LINE, Media, Memory, Purpose};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::panic::Location;
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

    /// How far back the base can be taken: to how it is now.
    pub(crate) fn mark_base(&self) -> usize {
        self.slow().base_undo.len()
    }

    /// Takes the base back to how it was.
    pub(crate) fn reset_base(&self, mark: usize) {
        let mut slow = self.slow();
        while slow.base_undo.len() > mark {
            if let Some((word, value)) = slow.base_undo.pop() {
                self.words()[word as usize].store(value, Relaxed);
                self.0.lines[word as usize / 8].hash.store(0, Relaxed);
            }
        }
    }

    /// Puts another tracker in charge of which lines are not settled.
    pub(crate) fn swap_tracker(&self, tracker: Tracker) -> Tracker {
        let mut slow = self.slow();
        for line in slow.tracker.unsettled() {
            self.set_unsettled(line, false);
        }
        for line in tracker.unsettled() {
            self.set_unsettled(line, true);
        }
        std::mem::replace(&mut slow.tracker, tracker)
    }

    /// Lets the tracker carry out an event of a log.
    pub(crate) fn step(&self, place: u32, event: &Event) {
        let mut slow = self.slow();
        let Slow {
            tracker, base_undo, ..
        } = &mut *slow;
        tracker.step(
            place,
            event,
            &mut Arena {
                crash: self,
                undo: base_undo,
            },
        );
    }

    /// Makes the content of a line part of the base.
    pub(crate) fn guarantee_line(&self, line: u32, content: &Content) {
        let mut slow = self.slow();
        let mut arena = Arena {
            crash: self,
            undo: &mut slow.base_undo,
        };
        for (word, &value) in (line * 8..).zip(content) {
            arena.guarantee(word, value);
        }
    }

    /// What a line holds now.
    pub(crate) fn content(&self, line: u32) -> Content {
        let words = &self.words()[line as usize * 8..][..8];
        let word = |i: usize| words[i].load(Relaxed);
        [
            word(0),
            word(1),
            word(2),
            word(3),
            word(4),
            word(5),
            word(6),
            word(7),
        ]
    }

    fn write(&self, line: u32, content: &Content) {
        let words = &self.words()[line as usize * 8..][..8];
        for (word, &value) in words.iter().zip(content) {
            word.store(value, Relaxed);
        }
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the kit changes a line when it is first touched, which is before anybody can have a reference into
        // it, and between runs, when no pool is open.
        unsafe { self.0.memory.words() }
    }

    fn set_unsettled(&self, line: u32, unsettled: bool) {
        self.0.lines[line as usize].unsettled.store(unsettled, Relaxed);
    }

    /// The number of bytes from the memory's start to `at`, if it is in the memory.
    #[inline(always)]
    fn within(&self, at: *const u8) -> Option<usize> {
        let offset = at.addr().wrapping_sub(self.0.start);
        (offset < self.0.len).then_some(offset)
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

    #[inline(always)]
    fn touch_for_load(&self, word: &AtomicU64) {
        self.step_on();
        if let Some(offset) = self.within(word.as_ptr().cast()) {
            self.touch(offset / LINE);
        }
    }

    /// Makes way for a store to a word.
    #[inline(always)]
    fn touch_for_store(&self, word: &AtomicU64) -> Option<u32> {
        self.step_on();
        let offset = self.within(word.as_ptr().cast())?;
        self.save(offset / LINE);
        Some((offset / 8) as u32)
    }

    #[inline(always)]
    fn touch(&self, line: usize) {
        if self.0.lines[line].touched.load(Relaxed) != self.run() {
            self.touch_first(line);
        }
    }

    #[inline(always)]
    fn save(&self, line: usize) {
        if self.0.lines[line].saved.load(Relaxed) != self.run() {
            self.touch(line);
            self.save_slowly(line);
        }
    }

    #[inline(never)]
    fn save_slowly(&self, line: usize) {
        // Its image may have been saved over when it was touched.
        if self.0.lines[line].saved.load(Relaxed) != self.run() {
            self.save_first(&mut self.slow(), line);
        }
    }

    #[inline(never)]
    fn touch_first(&self, line: usize) {
        let state = &self.0.lines[line];
        state.touched.store(self.run(), Relaxed);
        state.read.store(self.0.epoch.load(Relaxed), Relaxed);
        let hash = if state.unsettled.load(Relaxed) {
            self.decide(line)
        } else {
            match state.hash.load(Relaxed) {
                0 => {
                    let hash = hash_of(line, &self.content(line as u32));
                    state.hash.store(hash, Relaxed);
                    hash
                }
                hash => hash,
            }
        };
        let signature = &self.0.signature;
        signature.store(signature.load(Relaxed) ^ hash, Relaxed);
    }

    /// Gives a line in which images differ the version of this image; its hash.
    fn decide(&self, line: usize) -> u64 {
        let mut slow = self.slow();
        let slow = &mut *slow;
        let content = self.content(line as u32);
        let image = slow.chooser.image_of(&slow.tracker, line as u32, content);
        if image != content {
            self.save_first(slow, line);
            self.write(line as u32, &image);
        }
        hash_of(line, &image)
    }

    fn save_first(&self, slow: &mut Slow, line: usize) {
        self.0.lines[line].saved.store(self.run(), Relaxed);
        slow.undo.push((line as u32, self.content(line as u32)));
    }

    #[inline(always)]
    #[track_caller]
    fn event(&self, what: What) {
        if self.0.recording.load(Relaxed) {
            self.push(what, Location::caller());
        }
    }

    #[cold]
    #[inline(never)]
    fn push(&self, what: What, site: Site) {
        let thread = self.thread();
        self.slow().log.events.push(Event { what, thread, site });
    }

    #[inline(always)]
    #[track_caller]
    fn stored(&self, word: Option<u32>, value: u64, kind: Store) {
        if let Some(word) = word {
            self.event(What::Store { word, value, kind });
            if self.0.threaded.load(Relaxed) {
                let thread = self.thread();
                self.slow().sharing.stored(word, thread);
            }
        }
    }

    /// What a thread sees in a word, if that is not what memory holds; notes that it depends on another thread's store.
    #[cold]
    #[inline(never)]
    #[track_caller]
    fn shared_load(&self, word: &AtomicU64) -> Option<u64> {
        let word = (self.within(word.as_ptr().cast())? / 8) as u32;
        let thread = self.thread();
        let (own, of_another) = {
            let slow = self.slow();
            (
                slow.sharing.own(word, thread),
                slow.sharing.is_of_another(word, thread),
            )
        };
        if of_another {
            self.event(What::Load { word });
        }
        own
    }

    /// Shows everybody what the thread has stored past the cache.
    fn drain(&self) {
        if self.0.threaded.load(Relaxed) {
            let thread = self.thread();
            let drained = self.slow().sharing.drain(thread);
            for (word, value) in drained {
                self.words()[word as usize].store(value, Relaxed);
            }
        }
    }

    #[track_caller]
    fn exchange(&self, word: &AtomicU64, old: u64, new: u64, kind: Store) -> Result<u64, u64> {
        let place = self.touch_for_store(word);
        self.event(What::Locked);
        self.drain();
        // Whether it takes away a mark or not, nothing depends on what is there instead.
        if kind == Store::Plain && self.0.threaded.load(Relaxed) {
            self.shared_load(word);
        }
        let result = word.compare_exchange(old, new, Relaxed, Relaxed);
        if result.is_ok() {
            self.stored(place, new, kind);
        }
        result
    }
}

/// What logical threads see of each other.
#[derive(Default)]
struct Sharing {
    /// Who stored into a word last.
    writers: HashMap<u32, u32, BuildHasherDefault<LineHasher>>,
    /// Stores past the cache that nobody but their threads sees yet: thread, word, value.
    past_cache: Vec<(u32, u32, u64)>,
}

impl Sharing {
    fn stored(&mut self, word: u32, thread: u32) {
        self.writers.insert(word, thread);
    }

    fn is_of_another(&self, word: u32, thread: u32) -> bool {
        self.writers.get(&word).is_some_and(|writer| *writer != thread)
    }

    /// What the thread has stored there past the cache.
    fn own(&self, word: u32, thread: u32) -> Option<u64> {
        let mut own = self
            .past_cache
            .iter()
            .rev()
            .filter(|(by, place, _)| (*by, *place) == (thread, word));
        own.next().map(|(.., value)| *value)
    }

    fn drain(&mut self, thread: u32) -> Vec<(u32, u64)> {
        if self.past_cache.is_empty() {
            return Vec::new();
        }
        let (own, others) = self
            .past_cache
            .drain(..)
            .partition::<Vec<_>, _>(|(by, ..)| *by == thread);
        self.past_cache = others;
        own.into_iter().map(|(_, word, value)| (word, value)).collect()
    }
}

/// The base in memory.
struct Arena<'c> {
    crash: &'c Crash,
    undo: &'c mut Vec<(u32, u64)>,
}

impl Base for Arena<'_> {
    fn guarantee(&mut self, word: u32, value: u64) {
        let place = &self.crash.words()[word as usize];
        let was = place.load(Relaxed);
        if was != value {
            self.undo.push((word, was));
            place.store(value, Relaxed);
            self.crash.0.lines[word as usize / 8].hash.store(0, Relaxed);
        }
    }

    fn unsettled(&mut self, line: u32, unsettled: bool) {
        self.crash.set_unsettled(line, unsettled);
    }
}

/// Of a line and what it holds.
fn hash_of(line: usize, content: &Content) -> u64 {
    let mut hash = (line as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d;
    for &word in content {
        hash = (hash ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd);
        hash ^= hash >> 32;
    }
    hash
}

// SAFETY: one OS thread at a time uses the media, in which every order is kept; each access is the atomic of the same
// name. It promises no durability but that of the model, to which it is tested.
unsafe impl Media for Crash {
    const TAKES_TURNS: bool = true;

    #[inline]
    fn load(&self, word: &AtomicU64) -> u64 {
        self.touch_for_load(word);
        if self.0.threaded.load(Relaxed)
            && let Some(own) = self.shared_load(word)
        {
            return own;
        }
        word.load(Relaxed)
    }

    #[inline]
    fn peek(&self, word: &AtomicU64) -> u64 {
        self.touch_for_load(word);
        word.load(Relaxed)
    }

    #[inline]
    fn store(&self, word: &AtomicU64, value: u64) {
        let place = self.touch_for_store(word);
        self.stored(place, value, Store::Plain);
        word.store(value, Relaxed);
    }

    #[inline]
    fn store_unpersisted(&self, word: &AtomicU64, value: u64) {
        let place = self.touch_for_store(word);
        self.stored(place, value, Store::Unpersisted);
        word.store(value, Relaxed);
    }

    fn compare_exchange(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.exchange(word, old, new, Store::Plain)
    }

    fn compare_exchange_unpersisted(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.exchange(word, old, new, Store::Unpersisted)
    }

    fn store_nt(&self, word: &AtomicU64, value: u64) {
        let place = self.touch_for_store(word);
        self.stored(place, value, Store::NonTemporal);
        match place {
            Some(place) if self.0.threaded.load(Relaxed) => {
                let thread = self.thread();
                self.slow().sharing.past_cache.push((thread, place, value));
            }
            _ => word.store(value, Relaxed),
        }
    }

    fn touched(&self, start: *const u8, len: usize) {
        self.step_on();
        let Some(offset) = self.within(start) else {
            return;
        };
        for line in offset / LINE..(offset + len).div_ceil(LINE).min(self.0.lines.len()) {
            self.touch(line);
        }
    }

    fn drafting(&self, start: *const u8, len: usize) {
        self.step_on();
        let Some(offset) = self.within(start) else {
            return;
        };
        for line in offset / LINE..(offset + len).div_ceil(LINE) {
            if offset <= line * LINE && (line + 1) * LINE <= offset + len {
                // What is there is overwritten unread.
                self.0.lines[line].touched.store(self.run(), Relaxed);
            }
            self.save(line);
        }
    }

    fn drafted(&self, start: *const u8, len: usize) {
        if !self.0.recording.load(Relaxed) {
            return;
        }
        let Some(offset) = self.within(start) else {
            return;
        };
        let words = offset / 8..(offset + len).div_ceil(8);
        self.event(What::Drafted {
            word: words.start as u32,
            words: words.len() as u32,
        });
        for word in words {
            let value = self.words()[word].load(Relaxed);
            self.stored(Some(word as u32), value, Store::Draft);
        }
    }

    fn write_back(&self, at: *const u8, _purpose: Purpose) {
        self.step_on();
        if let Some(offset) = self.within(at) {
            self.event(What::WriteBack {
                line: (offset / LINE) as u32,
                joins: 0,
            });
        }
    }

    fn joined(&self, at: *const u8, len: usize) {
        if !self.0.recording.load(Relaxed) {
            return;
        }
        let Some(offset) = self.within(at) else {
            return;
        };
        let site = Location::caller();
        let mut slow = self.slow();
        for line in offset / LINE..(offset + len.max(1)).div_ceil(LINE) {
            let joins = slow.joins.entry(key(self.thread(), line)).or_default();
            if !joins.contains(&site) {
                joins.push(site);
            }
        }
    }

    fn write_back_joined(&self, at: *const u8, _purpose: Purpose) {
        self.step_on();
        if !self.0.recording.load(Relaxed) {
            return;
        }
        let Some(offset) = self.within(at) else {
            return;
        };
        let mut slow = self.slow();
        let slow = &mut *slow;
        let line = offset / LINE;
        let mut sites = slow.joins.remove(&key(self.thread(), line)).unwrap_or_default();
        if sites.is_empty() {
            sites.push(Location::caller());
        }
        let site = sites.remove(0);
        let joins = if sites.is_empty() {
            0
        } else {
            slow.log.joins.push(sites);
            slow.log.joins.len() as u32 - 1
        };
        let what = What::WriteBack {
            line: line as u32,
            joins,
        };
        slow.log.events.push(Event {
            what,
            thread: self.thread(),
            site,
        });
    }

    fn fence(&self, _purpose: Purpose) {
        self.step_on();
        self.event(What::Fence);
        self.drain();
    }

    #[inline]
    fn load_volatile(&self, word: &AtomicU64) -> u64 {
        self.touch_for_load(word);
        word.load(Relaxed)
    }

    #[inline]
    fn store_volatile(&self, word: &AtomicU64, value: u64) {
        let place = self.touch_for_store(word);
        self.stored(place, value, Store::Volatile);
        word.store(value, Relaxed);
    }

    fn compare_exchange_volatile(&self, word: &AtomicU64, old: u64, new: u64) -> Result<u64, u64> {
        self.exchange(word, old, new, Store::Lock)
    }

    fn wait(&self, turn: u32) {
        if self.0.threaded.load(Relaxed) {
            self.switch(Point::Wait);
        } else if turn >= MOST_TURNS {
            self.hang();
        }
        let left = self.0.steps.load(Relaxed);
        if left == 0 {
            self.hang();
        }
        self.0.steps.store(left.saturating_sub(1), Relaxed);
    }
}

fn key(thread: u32, line: usize) -> u64 {
    u64::from(thread) << 32 | line as u64
}
