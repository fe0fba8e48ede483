//! Histories: seeded sequences of operations that reach every structure modification.
//!
//! A history prepares a structure that is about to change shape (`scene`), and then changes it. The prepared content is
//! durable; crash points come after the preparation.

mod calls;
mod rare;
mod scene;

use crate::map::{Bytes, Op};
use crashkit::{History, Random};
pub use scene::SCENES;
use std::collections::VecDeque;

/// The minimum number of pages of a small pool: the first objects of an index need them.
const MIN_PAGES: u64 = 10;

/// The bound of the random number of additional pages of a small pool.
const EXTRA_PAGES: u64 = 14;

/// One in this many histories of several threads has a thread that only scans. So has every second history of the
/// scene [`Blink`](scene::blinks).
const SCANNERS: u64 = 4;

/// The number of hot keys, for which several threads contend.
const HOT: usize = 4;

/// Returns a history of `ops` operations on a map by `threads` threads, after a preparation. [`SCENES`] consecutive
/// seeds cover all scenes.
pub fn of_map(seed: u64, ops: usize, threads: u32) -> History<Op> {
    Maker::new(seed, threads).make(seed, ops, threads)
}

/// One in this many histories of a hunt is rare. A prime number that does not divide [`SCENES`], so that hunts reach
/// all scenes.
const RARE_IN: u64 = 5;

/// Returns a history for a hunt of mutants: one of [`of_map`], or one of those that [reach what these hardly
/// reach](rare_of_map).
pub fn of_hunt(seed: u64, ops: usize, threads: u32) -> History<Op> {
    match seed % RARE_IN {
        0 => History {
            seed,
            ..rare_of_map(seed / RARE_IN)
        },
        _ => of_map(seed, ops, threads),
    }
}

/// Returns a history that reaches a place which those of [`of_map`] hardly reach, with a length and threads of its own.
/// Consecutive seeds take the places in turn.
pub fn rare_of_map(seed: u64) -> History<Op> {
    Maker::new(seed, 1).rare(seed)
}

struct Maker {
    random: Random,
    /// The number of keys, at the end of `keys`, that are chosen half of the time.
    hot: usize,
    /// Whether values may have other lengths than eight bytes.
    odd_values: bool,
    /// Keys to choose from.
    keys: Vec<Bytes>,
    /// Approximately the keys that are present.
    present: Vec<Bytes>,
    /// Operations that change the structure's shape. The watched part begins with them, and takes two thirds of its
    /// operations from them.
    plan: VecDeque<Op>,
}

impl Maker {
    fn new(seed: u64, threads: u32) -> Maker {
        Maker {
            random: Random(seed),
            hot: if threads > 1 { HOT } else { 0 },
            odd_values: true,
            keys: Vec::new(),
            present: Vec::new(),
            plan: VecDeque::new(),
        }
    }

    fn make(mut self, seed: u64, count: usize, threads: u32) -> History<Op> {
        let mut ops = Vec::new();
        let scene = (seed % SCENES as u64) as usize;
        self.prepare(scene, &mut ops);
        // Sometimes the end of the preparation is watched too.
        let watched = self.random.below(3) * self.random.below(12);
        let prepared = (ops.len() as u32).saturating_sub(watched as u32);
        let mut mood = self.random.below(4);
        for number in 0..count {
            if number % 25 == 24 {
                mood = self.random.below(4);
            }
            let planned = if number < 4 || self.random.below(3) > 0 {
                self.plan.pop_front()
            } else {
                None
            };
            let op = match planned {
                Some(op) => self.track(op),
                None => self.op(mood),
            };
            ops.push(op);
        }
        let watched = &mut ops[prepared as usize..];
        if seed % 8 == 7 {
            calls::gather(seed, watched);
        }
        if threads > 1 && seed % SCANNERS == 2 {
            calls::add_gets(seed, watched, threads);
        }
        let scanner = threads > 1 && (seed % SCANNERS == 1 || scene::blinks(scene) && seed.is_multiple_of(2));
        calls::add_scans(seed, watched, &self.keys, scanner.then_some(threads));
        History {
            seed,
            ops,
            prepared,
            threads,
            reopened: seed % 7 == 4 && prepared > 0,
            legs: None,
            room: match seed % 11 {
                6 => (MIN_PAGES + self.random.below(EXTRA_PAGES)) << 16,
                _ => u64::MAX,
            },
        }
    }

    /// Updates `present` for a planned operation.
    fn track(&mut self, op: Op) -> Op {
        match &op {
            Op::Remove(key) => self.present.retain(|other| other != key),
            Op::Insert(key, _) if !self.present.contains(key) => self.present.push(key.clone()),
            _ => {}
        }
        op
    }

    fn op(&mut self, mood: u64) -> Op {
        // The percentages of removes, updates and reads.
        let (removes, updates, reads) = match mood {
            0 => (10, 10, 3),
            1 => (80, 5, 3),
            2 => (30, 40, 5),
            _ => (45, 10, 3),
        };
        if self.hot > 0 && self.random.below(5) == 0 {
            return Op::Get(self.key());
        }
        let dice = self.random.below(100);
        let known = !self.present.is_empty();
        if dice < removes && known {
            let at = self.random.below(self.present.len() as u64) as usize;
            return Op::Remove(self.present.swap_remove(at));
        }
        if dice < removes + updates && known {
            let key = self.random.pick(&self.present).clone();
            let value = self.value();
            return if dice.is_multiple_of(2) {
                Op::Update(key, value)
            } else {
                Op::Upsert(key, value)
            };
        }
        let key = self.key();
        if dice < removes + updates + reads {
            return Op::Get(key);
        }
        let value = self.value();
        if !self.present.contains(&key) {
            self.present.push(key.clone());
        }
        if dice.is_multiple_of(3) {
            Op::Upsert(key, value)
        } else {
            Op::Insert(key, value)
        }
    }

    fn key(&mut self) -> Bytes {
        let hot = self.hot > 0 && self.random.below(2) == 0;
        let first = if hot {
            self.keys.len().saturating_sub(self.hot)
        } else {
            0
        };
        self.random.pick(&self.keys[first..]).clone()
    }

    /// Draws a value: mostly of eight bytes, which some indexes store in place; rarely so long that it needs pages of
    /// its own.
    fn value(&mut self) -> Bytes {
        let len = match self.random.below(100) {
            _ if !self.odd_values => 8,
            0..70 => 8,
            70..98 => self.random.below(40),
            98 => 200 + self.random.below(2000),
            _ => 40_000,
        };
        let mut value = vec![0; len as usize];
        for chunk in value.chunks_mut(8) {
            chunk.copy_from_slice(&self.random.next().to_le_bytes()[..chunk.len()]);
        }
        value.into()
    }
}
