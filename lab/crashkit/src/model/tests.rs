//! Litmus histories, each with the contents that a crash at its end may leave.

use super::*;
use crate::log::{EventKind, LogEvent, StoreKind};
use std::collections::BTreeSet;
use std::panic::Location;

/// Words 0 to 7 are one line, 8 to 15 the next.
struct Litmus {
    tracker: Tracker,
    base: Memory,
    place: u32,
    thread: u32,
}

#[derive(Default)]
struct Memory([u64; 16]);

impl Base for Memory {
    fn guarantee(&mut self, word: u32, value: u64) {
        self.0[word as usize] = value;
    }
    fn unsettled(&mut self, _line: u32, _unsettled: bool) {}
}

impl Litmus {
    fn new(model: impl Into<MemoryModel>) -> Litmus {
        Litmus {
            tracker: Tracker::new(model.into()),
            base: Memory::default(),
            place: 0,
            thread: 0,
        }
    }

    fn step(mut self, kind: EventKind) -> Litmus {
        let event = LogEvent {
            kind,
            thread: self.thread,
            site: Location::caller(),
        };
        self.tracker.step(self.place, &event, &mut self.base);
        self.place += 1;
        self
    }

    fn thread(self, thread: u32) -> Litmus {
        Litmus { thread, ..self }
    }

    fn store_as(self, word: u32, value: u64, kind: StoreKind) -> Litmus {
        self.step(EventKind::Store { word, value, kind })
    }

    fn store(self, word: u32, value: u64) -> Litmus {
        self.store_as(word, value, StoreKind::Plain)
    }

    fn past_cache(self, word: u32, value: u64) -> Litmus {
        self.store_as(word, value, StoreKind::NonTemporal)
    }

    fn write_back(self, line: u32) -> Litmus {
        self.step(EventKind::WriteBack { line, joins: 0 })
    }

    fn fence(self) -> Litmus {
        self.step(EventKind::Fence)
    }

    fn locked(self) -> Litmus {
        self.step(EventKind::Locked)
    }

    /// Returns the values that two words may have.
    fn leaves(&self, a: u32, b: u32) -> BTreeSet<(u64, u64)> {
        let contents = |line: u32| -> Vec<Content> {
            let base: Content = std::array::from_fn(|i| self.base.0[line as usize * 8 + i]);
            match self.tracker.line(line) {
                Some(line) => {
                    let versions = line.versions(base, self.tracker.model().mode, 0);
                    versions.into_iter().map(|version| version.content).collect()
                }
                None => vec![base],
            }
        };
        let mut all = BTreeSet::new();
        for first in contents(a / 8) {
            for second in contents(b / 8) {
                let second = if a / 8 == b / 8 { first } else { second };
                all.insert((first[a as usize % 8], second[b as usize % 8]));
            }
        }
        all
    }

    /// Returns the first two words of a line, as all threads see them.
    fn visible(&self, line: u32) -> [u64; 2] {
        let base: Content = std::array::from_fn(|i| self.base.0[line as usize * 8 + i]);
        let content = self.tracker.line(line).map_or(base, |line| line.visible(base));
        [content[0], content[1]]
    }

    #[track_caller]
    fn may_leave<const N: usize>(self, a: u32, b: u32, expected: [(u64, u64); N]) {
        assert_eq!(self.leaves(a, b), BTreeSet::from(expected));
    }
}

/// Stores to one line become durable in their order, each alone.
#[test]
fn stores_to_a_line_are_prefix_ordered() {
    let both = || Litmus::new(Mode::Power).store(0, 1).store(1, 1);
    both().may_leave(0, 1, [(0, 0), (1, 0), (1, 1)]);
    both()
        .store(0, 2)
        .may_leave(0, 1, [(0, 0), (1, 0), (1, 1), (2, 1)]);
}

/// Stores to different lines are unordered.
#[test]
fn lines_are_independent() {
    Litmus::new(Mode::Power)
        .store(0, 1)
        .store(8, 1)
        .may_leave(0, 8, [(0, 0), (0, 1), (1, 0), (1, 1)]);
}

/// Neither a write-back alone nor a fence alone guarantees anything; a write-back and then a fence do.
#[test]
fn a_write_back_and_a_fence_make_durable() {
    let stored = || Litmus::new(Mode::Power).store(0, 1).store(8, 1);
    let anything = [(0, 0), (0, 1), (1, 0), (1, 1)];
    stored().write_back(0).may_leave(0, 8, anything);
    stored().fence().may_leave(0, 8, anything);
    stored().fence().write_back(0).may_leave(0, 8, anything);
    stored().write_back(0).fence().may_leave(0, 8, [(1, 0), (1, 1)]);
}

/// A store between the write-back and the fence is not guaranteed.
#[test]
fn a_write_back_is_of_its_moment() {
    Litmus::new(Mode::Power)
        .store(0, 1)
        .write_back(0)
        .store(0, 2)
        .store(1, 2)
        .fence()
        .may_leave(0, 1, [(1, 0), (2, 0), (2, 2)]);
}

/// A fence completes its own thread's write-backs, whichever thread stored, and no other thread's.
#[test]
fn fences_are_of_their_thread() {
    let written_back = || Litmus::new(Mode::Power).store(0, 1).thread(1).write_back(0);
    written_back().thread(0).fence().may_leave(0, 1, [(0, 0), (1, 0)]);
    written_back().thread(1).fence().may_leave(0, 1, [(1, 0)]);
}

/// A locked instruction completes write-backs where the model says so.
#[test]
fn locked_instructions_complete() {
    let locked = |model: MemoryModel| Litmus::new(model).store(0, 1).write_back(0).locked();
    for mode in [Mode::Power, Mode::Word] {
        locked(MemoryModel::from(mode)).may_leave(0, 1, [(0, 0), (1, 0)]);
        locked(MemoryModel::from(mode)).fence().may_leave(0, 1, [(1, 0)]);
    }
    let x86 = MemoryModel {
        locked_completes: true,
        ..MemoryModel::default()
    };
    locked(x86).may_leave(0, 1, [(1, 0)]);
}

/// `clflush` is ordered with the stores.
#[test]
fn clflush_needs_no_fence() {
    let model = MemoryModel {
        clflush: true,
        ..MemoryModel::default()
    };
    Litmus::new(model)
        .store(0, 1)
        .write_back(0)
        .store(1, 1)
        .may_leave(0, 1, [(1, 0), (1, 1)]);
}

/// Non-temporal stores are unordered, even in a line, until their thread's fence.
#[test]
fn stores_past_the_cache_are_unordered() {
    let stored = || Litmus::new(Mode::Power).past_cache(0, 1).past_cache(1, 1);
    let anything = [(0, 0), (0, 1), (1, 0), (1, 1)];
    stored().may_leave(0, 1, anything);
    stored().thread(1).fence().may_leave(0, 1, anything);
    stored().fence().may_leave(0, 1, [(1, 1)]);
    // They are unordered with ordinary stores, too.
    Litmus::new(Mode::Power)
        .store(0, 1)
        .past_cache(1, 1)
        .may_leave(0, 1, anything);
}

/// A killed process loses no store, and its unfenced write-backs stay unfenced.
#[test]
fn a_kill_makes_nothing_durable() {
    let killed = || {
        Litmus::new(Mode::Power)
            .store(0, 1)
            .past_cache(8, 1)
            .write_back(0)
            .step(EventKind::Killed)
    };
    killed().may_leave(0, 8, [(0, 1), (1, 1)]);
    killed().fence().may_leave(0, 8, [(0, 1), (1, 1)]);
    killed().write_back(0).fence().may_leave(0, 8, [(1, 1)]);
}

/// The last store to a word wins, whether through the cache or past it.
#[test]
fn a_word_keeps_its_order() {
    Litmus::new(Mode::Power)
        .past_cache(0, 1)
        .store(0, 2)
        .may_leave(0, 1, [(0, 0), (1, 0), (2, 0)]);
    Litmus::new(Mode::Power)
        .past_cache(0, 1)
        .store(0, 2)
        .write_back(0)
        .thread(1)
        .fence()
        .thread(0)
        .fence()
        .may_leave(0, 1, [(2, 0)]);
}

/// A durable non-temporal store supersedes earlier stores to its word, and no later ones; its line keeps its order.
#[test]
fn a_durable_store_past_the_cache_is_the_base() {
    let stored = || Litmus::new(Mode::Power).store(1, 1).store(0, 1).past_cache(0, 2);
    stored().may_leave(0, 1, [(0, 0), (0, 1), (1, 1), (2, 0), (2, 1)]);
    let fenced = || stored().fence();
    fenced().may_leave(0, 1, [(2, 0), (2, 1)]);
    assert_eq!(fenced().visible(0), [2, 1]);
    assert!(!fenced().tracker.is_pending(0, 1) && fenced().tracker.is_pending(1, 0));
    // No write-back, earlier or later, brings an old value back.
    fenced().store(0, 3).may_leave(0, 1, [(2, 0), (2, 1), (3, 1)]);
    fenced().write_back(0).fence().may_leave(0, 1, [(2, 1)]);
    let written_back = Litmus::new(Mode::Power)
        .store(0, 1)
        .write_back(0)
        .past_cache(0, 2);
    written_back.fence().may_leave(0, 1, [(2, 0)]);
    // The later of two such stores by two threads wins, whichever thread fences first.
    let both = || {
        Litmus::new(Mode::Power)
            .past_cache(0, 1)
            .thread(1)
            .past_cache(0, 2)
    };
    both().may_leave(0, 1, [(0, 0), (1, 0), (2, 0)]);
    both().fence().thread(0).fence().may_leave(0, 1, [(2, 0)]);
    both().thread(0).fence().may_leave(0, 1, [(1, 0), (2, 0)]);
    let by_words = Litmus::new(Mode::Word).store(0, 1).store(1, 1).past_cache(0, 2);
    by_words.fence().may_leave(0, 1, [(2, 0), (2, 1)]);
}

/// In word mode, stores to one line are unordered, and stores to one word are ordered.
#[test]
fn words_may_be_torn_apart() {
    let both = || Litmus::new(Mode::Word).store(0, 1).store(1, 1);
    both().may_leave(0, 1, [(0, 0), (1, 0), (0, 1), (1, 1)]);
    both()
        .store(0, 2)
        .may_leave(0, 1, [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1)]);
    both().write_back(0).fence().may_leave(0, 1, [(1, 1)]);
}

/// With too many combinations to try one by one, each word still lags in one and leads in another.
#[test]
fn torn_lines_are_sampled() {
    let mut litmus = Litmus::new(Mode::Word);
    for word in 0..8 {
        for value in 1..=3 {
            litmus = litmus.store(word, value);
        }
    }
    let pairs = litmus.leaves(2, 5);
    for pair in [(0, 0), (3, 3), (0, 3), (3, 0)] {
        assert!(pairs.contains(&pair), "{pair:?} of {pairs:?}");
    }
}

/// In process mode, every store survives.
#[test]
fn a_process_crash_loses_nothing() {
    Litmus::new(Mode::Process)
        .store(0, 1)
        .past_cache(8, 1)
        .may_leave(0, 8, [(1, 1)]);
}

/// Versions that differ only in bits that recovery ignores are one.
#[test]
fn ignored_bits_make_no_versions() {
    let marked = || Litmus::new(Mode::Power).store(0, 0x11).write_back(0).fence();
    marked()
        .store_as(0, 0x10, StoreKind::Unpersisted)
        .may_leave(0, 1, [(0x11, 0)]);
    let later = marked().store_as(0, 0x10, StoreKind::Unpersisted).store(1, 7);
    assert_eq!(later.leaves(1, 1), BTreeSet::from([(0, 0), (7, 7)]));
    // A volatile word adds no versions, whatever it holds.
    Litmus::new(Mode::Power)
        .store_as(0, 5, StoreKind::Volatile)
        .store(1, 1)
        .may_leave(1, 1, [(0, 0), (1, 1)]);
}

/// Volatile words come back as anything, but locks never with a future generation; other words come back as they are.
#[test]
fn volatile_words_are_spoilt() {
    let litmus = Litmus::new(Mode::Power)
        .store_as(0, 3 << 32 | 1, StoreKind::Lock)
        .store_as(0, 3 << 32, StoreKind::Lock)
        .store_as(1, 6, StoreKind::Volatile)
        .store_as(1, 7, StoreKind::Volatile)
        .store(2, 9);
    let line = litmus.tracker.line(0).expect("stored to");
    let spoilt = |policy| {
        let mut content = [0; 8];
        content[2] = 9;
        let mut random = 0_u64;
        line.spoil(&mut content, policy, || {
            random = random
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            random
        });
        assert_eq!(content[2..], [9, 0, 0, 0, 0, 0], "{policy:?}");
        (content[0], content[1])
    };
    assert_eq!(spoilt(Volatile::Before), (3 << 32 | 1, 6));
    assert_eq!(spoilt(Volatile::Last), (3 << 32, 7));
    assert_eq!(spoilt(Volatile::Zero), (0, 0));
    let (lock, other) = spoilt(Volatile::Garbage);
    assert!([0, 3].contains(&(lock >> 32)), "{lock:#x}");
    assert!(![0, 6, 7].contains(&other), "{other:#x}");
}

/// A word that becomes part of a new object is no longer volatile.
#[test]
fn drafts_begin_anew() {
    let reused = Litmus::new(Mode::Power)
        .store_as(0, 5, StoreKind::Lock)
        .step(EventKind::Drafted { word: 0, words: 8 })
        .store_as(0, 8, StoreKind::Draft);
    reused.may_leave(0, 1, [(0, 0), (8, 0)]);
}
