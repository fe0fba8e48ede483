//! The tracker follows a log, and knows which stores to each line are guaranteed.

use super::line::Pending;
use super::{Line, LineHasher, MemoryModel, Mode};
use crate::log::{EventKind, LogEvent, StoreKind};
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

/// A thread's write-backs and non-temporal stores that wait for a fence.
#[derive(Clone, Debug, Default)]
struct Thread {
    /// Lines written back, each with the number of its stores covered.
    written_back: Vec<(u32, u64)>,
    /// Lines with non-temporal stores.
    past_cache: Vec<u32>,
}

pub(crate) type Lines = HashMap<u32, Line, BuildHasherDefault<LineHasher>>;

/// Follows a log.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tracker {
    model: MemoryModel,
    lines: Lines,
    threads: Vec<Thread>,
}

/// Receives the guaranteed stores, and which lines are unsettled.
pub(crate) trait Base {
    /// Records that the word has this value in every image from now on.
    fn guarantee(&mut self, word: u32, value: u64);
    /// Records whether images differ in the line.
    fn unsettled(&mut self, line: u32, unsettled: bool);
}

/// No base at all.
impl Base for () {
    fn guarantee(&mut self, _word: u32, _value: u64) {}
    fn unsettled(&mut self, _line: u32, _unsettled: bool) {}
}

impl Tracker {
    pub(crate) fn new(model: MemoryModel) -> Tracker {
        Tracker {
            model,
            ..Tracker::default()
        }
    }

    pub(crate) fn model(&self) -> MemoryModel {
        self.model
    }

    pub(crate) fn line(&self, line: u32) -> Option<&Line> {
        self.lines.get(&line)
    }

    /// Returns the lines in which images differ.
    pub(crate) fn unsettled(&self) -> impl Iterator<Item = u32> + '_ {
        self.lines
            .iter()
            .filter(|(_, line)| !line.is_settled())
            .map(|(&number, _)| number)
    }

    /// Returns whether the event makes something durable that might have been lost before.
    pub(crate) fn raises(&self, event: &LogEvent) -> bool {
        match event.kind {
            EventKind::Fence => self.awaits_fence(event.thread),
            EventKind::Locked => self.model.locked_completes && self.awaits_fence(event.thread),
            // In process mode, each store is guaranteed at once.
            EventKind::Store { kind, .. } => self.model.mode == Mode::Process && kind.matters(),
            EventKind::WriteBack { line, .. } => {
                self.model.clflush && self.lines.get(&line).is_some_and(|line| !line.stores.is_empty())
            }
            _ => false,
        }
    }

    /// Returns the place in the log of the newest store to a word that recovery may depend on, if a crash may lose it.
    /// (Non-temporal stores do not count: other threads see one only after the fence that makes it durable, or after a
    /// locked instruction, which does so on x86-64.)
    pub(crate) fn pending_store(&self, word: u32) -> Option<u32> {
        let line = self.lines.get(&(word / 8))?;
        let mut stores = line.stores.iter().rev();
        let newest = stores.find(|store| u32::from(store.word) == word % 8 && store.kind.matters());
        newest.map(|store| store.event)
    }

    /// Returns whether a crash may still lose the store at that place of the log.
    pub(crate) fn is_pending(&self, word: u32, event: u32) -> bool {
        let line = self.lines.get(&(word / 8));
        line.is_some_and(|line| {
            let mut stores = line.stores.iter();
            stores.any(|store| store.event == event && store.kind.matters())
        })
    }

    /// Returns whether another tracker of the same stores guarantees more.
    pub(crate) fn lags_behind(&self, other: &Tracker) -> bool {
        self.lines.iter().any(|(number, line)| {
            let other = other.lines.get(number);
            other
                .is_some_and(|other| other.gone > line.gone || other.past_cache.len() < line.past_cache.len())
        })
    }

    fn awaits_fence(&self, thread: u32) -> bool {
        self.threads.get(thread as usize).is_some_and(|thread| {
            !thread.past_cache.is_empty()
                || thread
                    .written_back
                    .iter()
                    .any(|(line, upto)| self.lines.get(line).is_some_and(|line| line.gone < *upto))
        })
    }

    /// Applies the event at `place` in the log.
    pub(crate) fn step(&mut self, place: u32, event: &LogEvent, base: &mut impl Base) {
        match event.kind {
            EventKind::Store { word, value, kind } => {
                self.store(place, event.thread, word, value, kind, base)
            }
            EventKind::Drafted { word, words } => {
                for word in word..word + words {
                    if let Some(line) = self.lines.get_mut(&(word / 8)) {
                        let bit = 1 << (word % 8);
                        line.volatile &= !bit;
                        line.locks &= !bit;
                    }
                }
            }
            EventKind::WriteBack { line, .. } => {
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
            EventKind::Fence => self.complete(event.thread, base),
            EventKind::Locked if self.model.locked_completes => self.complete(event.thread, base),
            EventKind::Killed => self.kill(base),
            EventKind::Locked
            | EventKind::Load { .. }
            | EventKind::Disregarded { .. }
            | EventKind::Invoke(_)
            | EventKind::Ack(_) => {}
        }
    }

    /// Applies a kill: non-temporal stores become durable, and write-backs under way are never fenced.
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

    fn store(
        &mut self,
        event: u32,
        thread: u32,
        word: u32,
        value: u64,
        kind: StoreKind,
        base: &mut impl Base,
    ) {
        let number = word / 8;
        let line = self.lines.entry(number).or_default();
        let bit = 1 << (word % 8);
        let place = (word % 8) as usize;
        if matches!(kind, StoreKind::Volatile | StoreKind::Lock) {
            line.before[place] = if line.volatile & bit != 0 {
                line.last[place]
            } else {
                0
            };
            line.last[place] = value;
            line.volatile |= bit;
            if kind == StoreKind::Lock {
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
        if kind == StoreKind::NonTemporal {
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
                let (own, others) = std::mem::take(&mut line.past_cache)
                    .into_iter()
                    .partition(|store: &Pending| store.thread == thread);
                line.past_cache = others;
                for store in own {
                    base.guarantee(number * 8 + u32::from(store.word), store.value);
                    line.overtake(store);
                }
                self.settle(number, base);
            }
        }
        // Keeps the buffers' allocations.
        written_back.clear();
        past_cache.clear();
        *self.thread(thread) = Thread {
            written_back,
            past_cache,
        };
    }

    /// Guarantees the first `upto` stores of the line.
    fn raise(&mut self, number: u32, upto: u64, base: &mut impl Base) {
        let Some(line) = self.lines.get_mut(&number) else {
            return;
        };
        let count = upto.saturating_sub(line.gone) as usize;
        for store in line.stores.drain(..count.min(line.stores.len())) {
            base.guarantee(number * 8 + u32::from(store.word), store.value);
            // An earlier non-temporal store to the same word can no longer come after it.
            line.past_cache
                .retain(|past| past.word != store.word || past.event > store.event);
        }
        line.gone = line.gone.max(upto);
        self.settle(number, base);
    }

    fn settle(&mut self, number: u32, base: &mut impl Base) {
        // A settled line stays in the map: a write-back under way may refer to its count of stores (`gone`).
        if self.lines.get(&number).is_some_and(Line::is_settled) {
            base.unsettled(number, false);
        }
    }
}
