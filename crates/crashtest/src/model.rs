//! The memory model: which images a crash may leave.
//!
//! For each line of 64 bytes the tracker keeps the stores that are not guaranteed durable, in order; for each thread,
//! which lines it has written back, up to which store, and not fenced yet.
//!
//! I1 What is guaranteed is in the *base*, and in every image.
//! I2 An image holds, of each line, the base and a prefix of the pending stores ([`Mode::Power`]), or a prefix for each
//!    word apart ([`Mode::Word`]), and any of the pending non-temporal stores.
//!    Volatile words are left out of this: they hold anything ([`Volatile`]).
//! I3 A write-back guarantees what the line held when it was issued, and only once a fence (or a locked instruction) of
//!    the same thread has followed.
//!
//! I4 What others see of a store past the cache is durable: it reaches them by way of memory. (Here they see it at
//!    once, which is one of the moments at which they may.)
//!
//! Not here: who decides among the images (`choose`), and where they are (`media`).

use crate::log::{Event, Store, What};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// What a crash may tear apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Power loss with caches lost: lines are independent, stores to one line become durable in order.
    #[default]
    Power,
    /// Stricter than any hardware: words are independent, even those of one line.
    Word,
    /// The process ends and its memory stays: every store is there.
    Process,
}

impl std::fmt::Display for Mode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Mode::Power => "power",
            Mode::Word => "word",
            Mode::Process => "process",
        })
    }
}

/// A memory model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Model {
    /// What a crash may tear apart.
    pub mode: Mode,
    /// Whether a write-back is `clflush`, which takes its place in the order of stores and needs no fence.
    pub clflush: bool,
    /// Whether a locked instruction completes the write-backs before it, as on x86-64.
    pub locked_completes: bool,
}

impl Default for Model {
    fn default() -> Model {
        Model::from(Mode::Power)
    }
}

impl From<Mode> for Model {
    fn from(mode: Mode) -> Model {
        Model {
            mode,
            clflush: false,
            locked_completes: true,
        }
    }
}

/// The eight words of a line.
pub(crate) type Content = [u64; 8];

/// A store that a crash may lose.
#[derive(Clone, Copy, Debug)]
struct Pending {
    word: u8,
    kind: Store,
    value: u64,
    /// Its place in the log.
    event: u32,
    thread: u32,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    /// Stores guaranteed and gone from `stores`.
    gone: u64,
    stores: Vec<Pending>,
    past_cache: Vec<Pending>,
    /// Words that mean something in their generation only, and which of them are locks.
    volatile: u8,
    locks: u8,
    /// What those hold now, and held before.
    last: Content,
    before: Content,
}

/// One of the contents that a line may have after a crash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) content: Content,
    /// The newest store in it, as a place in the log plus one; 0: none but what is guaranteed.
    pub(crate) newest: u32,
}

/// What a volatile word may hold after a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Volatile {
    /// What they held before the last store.
    Before,
    /// The last value stored.
    Last,
    Zero,
    Garbage,
}

impl Volatile {
    pub(crate) fn of(number: u64) -> Volatile {
        [
            Volatile::Before,
            Volatile::Last,
            Volatile::Zero,
            Volatile::Garbage,
        ][(number % 4) as usize]
    }
}

/// More contents of one line than this are not looked at one by one.
const MOST_VERSIONS: usize = 64;

/// More stores past the cache to one line than this are not combined freely.
const MOST_FREE: usize = 4;

impl Line {
    fn is_settled(&self) -> bool {
        self.stores.is_empty() && self.past_cache.is_empty() && self.volatile == 0
    }

    /// What everybody sees: all stores.
    pub(crate) fn visible(&self, mut content: Content) -> Content {
        let mut all: Vec<&Pending> = self.stores.iter().chain(&self.past_cache).collect();
        all.sort_by_key(|store| store.event);
        for store in all {
            content[usize::from(store.word)] = store.value;
        }
        for (word, value) in content.iter_mut().enumerate() {
            if self.volatile >> word & 1 != 0 {
                *value = self.last[word];
            }
        }
        content
    }

    /// The stores that a crash may lose: word of the line, value, place in the log, whether it matters.
    pub(crate) fn pending(&self) -> impl Iterator<Item = (u32, u64, u32, bool)> + '_ {
        let all = self.stores.iter().chain(&self.past_cache);
        all.map(|store| {
            (
                u32::from(store.word),
                store.value,
                store.event,
                store.kind.matters(),
            )
        })
    }

    /// The bits that recovery is said to ignore: those of volatile words, and those that only stores not to be
    /// persisted have changed.
    fn ignored(&self, base: Content) -> Content {
        let mut ignored = [0; 8];
        let mut content = base;
        for store in &self.stores {
            let word = usize::from(store.word);
            if store.kind == Store::Unpersisted {
                ignored[word] |= content[word] ^ store.value;
            }
            content[word] = store.value;
        }
        for (word, ignored) in ignored.iter_mut().enumerate() {
            if self.volatile >> word & 1 != 0 {
                *ignored = !0;
            }
        }
        ignored
    }

    /// The contents that the line may have: the base first, the visible one last. Of those that differ only in bits
    /// that recovery is said to ignore there is one, which depends on `coin`.
    pub(crate) fn versions(&self, base: Content, mode: Mode, coin: u64) -> Vec<Version> {
        if self.stores.is_empty() && self.past_cache.is_empty() {
            return vec![Version {
                content: base,
                newest: 0,
            }];
        }
        let mut versions = Versions {
            base,
            ignored: self.ignored(base),
            coin,
            list: Vec::with_capacity(4),
        };
        let past = self.past_cache.len();
        match mode {
            Mode::Process => {}
            Mode::Power => {
                let masks = masks(past);
                for taken in 0..=self.stores.len() {
                    for &mask in &masks {
                        self.add(&mut versions, &|i| i < taken, mask);
                    }
                }
            }
            Mode::Word => self.add_by_words(&mut versions),
        }
        self.add(&mut versions, &|_| true, !0);
        versions.list
    }

    /// Of each word any prefix of its stores: as many combinations as there is room for, the extremes first.
    fn add_by_words(&self, versions: &mut Versions) {
        let mut counts = [0; 8];
        let nth: Vec<(usize, usize)> = self
            .stores
            .iter()
            .map(|store| {
                let count = &mut counts[usize::from(store.word)];
                *count += 1;
                (usize::from(store.word), *count)
            })
            .collect();
        let past = self.past_cache.len();
        let combinations = counts
            .iter()
            .fold(1_usize, |all, count| all.saturating_mul(count + 1));
        let mut add = |taken: [usize; 8], mask| {
            self.add(versions, &|i| nth[i].1 <= taken[nth[i].0], mask);
        };
        if combinations <= MOST_VERSIONS {
            for number in 0..combinations {
                let mut rest = number;
                let taken = counts.map(|count| {
                    let taken = rest % (count + 1);
                    rest /= count + 1;
                    taken
                });
                for mask in masks(past) {
                    add(taken, mask);
                }
            }
            return;
        }
        add([0; 8], 0);
        for word in 0..8 {
            let mut one = [0; 8];
            one[word] = counts[word];
            let mut others = counts;
            others[word] = 0;
            for mask in masks(past) {
                add(one, mask);
                add(others, mask);
            }
        }
        for prefix in 0..=self.stores.len() {
            self.add(versions, &|i| i < prefix, 0);
        }
    }

    /// Adds the base with those of the ordered stores that `taken` names and those past the cache that are in `mask`.
    fn add(&self, versions: &mut Versions, taken: &dyn Fn(usize) -> bool, mask: u64) {
        let mut version = Version {
            content: versions.base,
            newest: 0,
        };
        let mut take = |store: &Pending| {
            let word = &mut version.content[usize::from(store.word)];
            if *word != store.value {
                *word = store.value;
                if store.kind.matters() {
                    version.newest = version.newest.max(store.event + 1);
                }
            }
        };
        let mut past = (0..).zip(&self.past_cache).peekable();
        for (i, store) in self.stores.iter().enumerate() {
            while let Some((j, past)) = past.next_if(|(_, past)| past.event < store.event) {
                if mask >> j & 1 != 0 {
                    take(past);
                }
            }
            if taken(i) {
                take(store);
            }
        }
        for (j, past) in past {
            if mask >> j & 1 != 0 {
                take(past);
            }
        }
        versions.add(version);
    }

    /// What a volatile policy makes of the volatile words of a version.
    pub(crate) fn spoil(&self, content: &mut Content, policy: Volatile, mut random: impl FnMut() -> u64) {
        if self.volatile == 0 {
            return;
        }
        for (word, value) in content
            .iter_mut()
            .enumerate()
            .filter(|(word, _)| self.volatile >> word & 1 != 0)
        {
            *value = match policy {
                Volatile::Before => self.before[word],
                Volatile::Last => self.last[word],
                Volatile::Zero => 0,
                // A generation is durable before a lock has it, and so is none to come.
                Volatile::Garbage if self.locks >> word & 1 != 0 => {
                    let generation = if random().is_multiple_of(2) {
                        self.last[word] >> 32
                    } else {
                        0
                    };
                    generation << 32 | random() & 0xffff_ffff
                }
                Volatile::Garbage => random(),
            };
        }
    }
}

/// Versions being collected.
struct Versions {
    base: Content,
    ignored: Content,
    coin: u64,
    list: Vec<Version>,
}

impl Versions {
    fn add(&mut self, version: Version) {
        let same = |other: &&mut Version| {
            let pairs = other.content.iter().zip(&version.content);
            pairs
                .zip(&self.ignored)
                .all(|((a, b), ignored)| (a ^ b) & !ignored == 0)
        };
        match self.list.iter_mut().rev().find(same) {
            Some(other) => {
                self.coin = self.coin.rotate_left(1);
                if self.coin & 1 != 0 {
                    other.content = version.content;
                }
            }
            None => self.list.push(version),
        }
    }
}

/// Which of `count` stores past the cache to look at together: all subsets of a few; of many none, each alone, all but
/// one, all.
fn masks(count: usize) -> Vec<u64> {
    let count = count.min(63);
    let all = (1 << count) - 1;
    if count <= MOST_FREE {
        return (0..=all).collect();
    }
    let each = || (0..count).map(|i| 1_u64 << i);
    let mut masks = vec![0];
    masks.extend(each());
    masks.extend(each().map(|one| all & !one));
    masks.push(all);
    masks
}

/// What one thread has on its way.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Lines written back, and up to which of their stores.
    written_back: Vec<(u32, u64)>,
    /// Lines stored to past the cache.
    past_cache: Vec<u32>,
}

pub(crate) type Lines = HashMap<u32, Line, BuildHasherDefault<LineHasher>>;

/// Follows a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    model: Model,
    lines: Lines,
    threads: Vec<Thread>,
}

/// Where the tracker puts what is guaranteed, and says which lines are not settled.
pub(crate) trait Base {
    /// The word has this value in every image from now on.
    fn guarantee(&mut self, word: u32, value: u64);
    /// Whether images differ in the line.
    fn unsettled(&mut self, line: u32, unsettled: bool);
}

/// No base at all.
impl Base for () {
    fn guarantee(&mut self, _word: u32, _value: u64) {}
    fn unsettled(&mut self, _line: u32, _unsettled: bool) {}
}

impl Tracker {
    pub(crate) fn new(model: Model) -> Tracker {
        Tracker {
            model,
            ..Tracker::default()
        }
    }

    pub(crate) fn model(&self) -> Model {
        self.model
    }

    pub(crate) fn line(&self, line: u32) -> Option<&Line> {
        self.lines.get(&line)
    }

    /// The lines in which images differ.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = u32> + '_ {
        self.lines
            .iter()
            .filter(|(_, line)| !line.is_settled())
            .map(|(&number, _)| number)
    }

    /// Whether the event makes something durable that might have been lost before.
    pub(crate) fn raises(&self, event: &Event) -> bool {
        match event.what {
            What::Fence => self.has_on_its_way(event.thread),
            What::Locked => self.model.locked_completes && self.has_on_its_way(event.thread),
            // Where nothing is lost, every store tells.
            What::Store { kind, .. } => self.model.mode == Mode::Process && kind.matters(),
            What::WriteBack { line, .. } => {
                self.model.clflush && self.lines.get(&line).is_some_and(|line| !line.stores.is_empty())
            }
            _ => false,
        }
    }

    /// The place in the log of the newest store to a word that recovery may make something of, if a crash may lose it.
    pub(crate) fn pending_store(&self, word: u32) -> Option<u32> {
        let line = self.lines.get(&(word / 8))?;
        let mut stores = line.stores.iter().rev();
        let newest = stores.find(|store| u32::from(store.word) == word % 8 && store.kind.matters());
        newest.map(|store| store.event)
    }

    /// Whether a crash may still lose the store at that place of the log.
    pub(crate) fn is_pending(&self, word: u32, event: u32) -> bool {
        let line = self.lines.get(&(word / 8));
        line.is_some_and(|line| line.stores.iter().any(|store| store.event == event))
    }

    /// Whether another tracker of the same stores guarantees more.
    pub(crate) fn lags_behind(&self, other: &Tracker) -> bool {
        self.lines.iter().any(|(number, line)| {
            let other = other.lines.get(number);
            other
                .is_some_and(|other| other.gone > line.gone || other.past_cache.len() < line.past_cache.len())
        })
    }

    fn has_on_its_way(&self, thread: u32) -> bool {
        self.threads.get(thread as usize).is_some_and(|thread| {
            !thread.past_cache.is_empty()
                || thread
                    .written_back
                    .iter()
                    .any(|(line, upto)| self.lines.get(line).is_some_and(|line| line.gone < *upto))
        })
    }

    /// Carries out the event that stands at `place` in the log.
    pub(crate) fn step(&mut self, place: u32, event: &Event, base: &mut impl Base) {
        match event.what {
            What::Store { word, value, kind } => self.store(place, event.thread, word, value, kind, base),
            What::Drafted { word, words } => {
                for word in word..word + words {
                    if let Some(line) = self.lines.get_mut(&(word / 8)) {
                        let bit = 1 << (word % 8);
                        line.volatile &= !bit;
                        line.locks &= !bit;
                    }
                }
            }
            What::WriteBack { line, .. } => {
                let Some(upto) = self
                    .lines
                    .get(&line)
                    .map(|line| line.gone + line.stores.len() as u64)
                else {
                    return;
                };
                if self.model.clflush {
                    self.raise(line, upto, base);
                } else {
                    self.thread(event.thread).written_back.push((line, upto));
                }
            }
            What::Fence => self.complete(event.thread, base),
            What::Locked if self.model.locked_completes => self.complete(event.thread, base),
            What::Killed => self.kill(base),
            What::Locked | What::Load { .. } | What::Invoke(_) | What::Ack(_) => {}
        }
    }

    /// What was seen past the cache is durable, and nobody fences the write-backs under way.
    fn kill(&mut self, base: &mut impl Base) {
        for thread in 0..self.threads.len() as u32 {
            self.thread(thread).written_back.clear();
            self.complete(thread, base);
        }
    }

    fn thread(&mut self, thread: u32) -> &mut Thread {
        let thread = thread as usize;
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Thread::default);
        }
        &mut self.threads[thread]
    }

    fn store(&mut self, event: u32, thread: u32, word: u32, value: u64, kind: Store, base: &mut impl Base) {
        let number = word / 8;
        let line = self.lines.entry(number).or_default();
        let bit = 1 << (word % 8);
        let place = (word % 8) as usize;
        if matches!(kind, Store::Volatile | Store::Lock) {
            line.before[place] = if line.volatile & bit != 0 {
                line.last[place]
            } else {
                0
            };
            line.last[place] = value;
            line.volatile |= bit;
            if kind == Store::Lock {
                line.locks |= bit;
            }
            base.unsettled(number, true);
            return;
        }
        line.volatile &= !bit;
        line.locks &= !bit;
        base.unsettled(number, true);
        if self.model.mode == Mode::Process {
            base.guarantee(word, value);
            self.settle(number, base);
            return;
        }
        let store = Pending {
            word: (word % 8) as u8,
            kind,
            value,
            event,
            thread,
        };
        if kind == Store::NonTemporal {
            line.past_cache.push(store);
            self.thread(thread).past_cache.push(number);
        } else {
            line.stores.push(store);
        }
    }

    fn complete(&mut self, thread: u32, base: &mut impl Base) {
        let Thread {
            mut written_back,
            mut past_cache,
        } = std::mem::take(self.thread(thread));
        for &(line, upto) in &written_back {
            self.raise(line, upto, base);
        }
        for &number in &past_cache {
            if let Some(line) = self.lines.get_mut(&number) {
                line.past_cache.retain(|store| {
                    if store.thread == thread {
                        base.guarantee(number * 8 + u32::from(store.word), store.value);
                    }
                    store.thread != thread
                });
                self.settle(number, base);
            }
        }
        // The buffers serve again.
        written_back.clear();
        past_cache.clear();
        *self.thread(thread) = Thread {
            written_back,
            past_cache,
        };
    }

    /// The first `upto` stores of the line are durable.
    fn raise(&mut self, number: u32, upto: u64, base: &mut impl Base) {
        let Some(line) = self.lines.get_mut(&number) else {
            return;
        };
        let count = upto.saturating_sub(line.gone) as usize;
        for store in line.stores.drain(..count.min(line.stores.len())) {
            base.guarantee(number * 8 + u32::from(store.word), store.value);
            // A store past the cache that came before to the same word cannot come after it.
            line.past_cache
                .retain(|past| past.word != store.word || past.event > store.event);
        }
        line.gone = line.gone.max(upto);
        self.settle(number, base);
    }

    fn settle(&mut self, number: u32, base: &mut impl Base) {
        // A line keeps its count of stores for as long as a write-back may refer to it.
        if self.lines.get(&number).is_some_and(Line::is_settled) {
            base.unsettled(number, false);
        }
    }
}

/// Lines are numbers close together: a multiplication spreads them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineHasher(u64);

impl Hasher for LineHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u32(u32::from(byte));
        }
    }
    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0.rotate_left(5) ^ u64::from(number)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

#[cfg(test)]
mod tests;
