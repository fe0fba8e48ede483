//! Histories: seeded sequences of operations that reach every structure modification.
//!
//! A history prepares a structure that is about to change shape, and then changes it. What a preparation leaves is
//! durable; crash points come after it.

use crate::choose::Random;
use crate::map::{Bytes, Op};

/// Operations, one after the other.
#[derive(Clone, Debug)]
pub struct History<O> {
    /// What made it.
    pub seed: u64,
    /// The operations.
    pub ops: Vec<O>,
    /// So many of them are the preparation.
    pub prepared: u32,
    /// The others are dealt out to so many threads, one after the other.
    pub threads: u32,
}

/// Children at which trees of this family change the kind of a node, or nearly.
const BRINKS: [u64; 10] = [1, 2, 4, 5, 12, 16, 17, 40, 48, 49];

/// Keys over which several threads meet.
const HOT: usize = 4;

/// A history of `ops` operations on a map by so many threads, after a preparation.
pub fn of_map(seed: u64, ops: usize, threads: u32) -> History<Op> {
    let mut maker = Maker {
        random: Random(seed),
        hot: if threads > 1 { HOT } else { 0 },
        keys: Vec::new(),
        present: Vec::new(),
    };
    maker.make(seed, ops, threads)
}

struct Maker {
    random: Random,
    /// So many of the last keys are chosen half of the time.
    hot: usize,
    /// Keys to choose from.
    keys: Vec<Bytes>,
    /// Those that have been put and not removed, roughly.
    present: Vec<Bytes>,
}

impl Maker {
    fn make(&mut self, seed: u64, count: usize, threads: u32) -> History<Op> {
        let mut ops = Vec::new();
        let kind = self.random.below(8);
        match kind {
            // From nothing: keys of all sorts.
            0 | 1 => self.mixed_keys(60),
            // A fan: one node with so many children, each a few leaves.
            2..=5 => self.fan(&mut ops),
            // Chains of prefixes, and long common ones.
            6 => self.chains(),
            // Few keys, over and over.
            _ => self.mixed_keys(6),
        }
        // Sometimes the preparation is what is looked at.
        let watched = self.random.below(3) * self.random.below(12);
        let prepared = (ops.len() as u32).saturating_sub(watched as u32);
        let mut mood = self.random.below(4);
        for number in 0..count {
            if number % 25 == 24 {
                mood = self.random.below(4);
            }
            let op = self.op(mood);
            ops.push(op);
        }
        History {
            seed,
            ops,
            prepared,
            threads,
        }
    }

    fn op(&mut self, mood: u64) -> Op {
        // In a hundred: removes, updates, reads.
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

    /// Mostly of eight bytes, which some structures keep in place; seldom so long that it takes pages of its own.
    fn value(&mut self) -> Bytes {
        let len = match self.random.below(100) {
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

    fn mixed_keys(&mut self, count: usize) {
        self.keys.push([].into());
        while self.keys.len() < count {
            let len = match self.random.below(10) {
                0 => self.random.below(3),
                1 => 9 + self.random.below(80),
                _ => 1 + self.random.below(9),
            };
            let alphabet: &[u8] = if self.random.below(4) == 0 {
                &[0, 1, 127, 128, 255]
            } else {
                b"abc"
            };
            let key: Vec<u8> = (0..len).map(|_| *self.random.pick(alphabet)).collect();
            self.keys.push(key.into());
        }
    }

    /// Keys `prefix, byte, suffix`, of as many bytes as bring a node to the brink.
    fn fan(&mut self, ops: &mut Vec<Op>) {
        let children = *self.random.pick(&BRINKS);
        let prefix_len = *self.random.pick(&[0, 1, 3, 12]);
        let prefix: Vec<u8> = (0..prefix_len).map(|_| self.random.below(256) as u8).collect();
        // More leaves than one leaf array holds, so that there is a node at all; sometimes fewer.
        let leaves = *self.random.pick(&[20, 66, 66, 80]);
        let first = self.random.below(256) as u8;
        let key = |child: u64, leaf: u64| -> Bytes {
            let mut key = prefix.clone();
            key.push(first.wrapping_add((child as u8).wrapping_mul(37)));
            if leaf > 0 {
                key.extend([b'-', leaf as u8]);
            }
            key.into()
        };
        for number in 0..leaves {
            let key = key(number % children, number / children);
            let value = self.value();
            self.present.push(key.clone());
            ops.push(Op::Insert(key, value));
        }
        // To add to: neighbours of what is there, and new children; and keys that part from the prefix.
        for child in 0..children + 8 {
            let leaf = 1 + self.random.below(6);
            self.keys.push(key(child, leaf));
            self.keys.push(key(child, 0));
        }
        for _ in 0..4 {
            let at = self.random.below(prefix_len as u64 + 1) as usize;
            let mut other = prefix[..at].to_vec();
            other.push(self.random.below(256) as u8);
            self.keys.push(other.into());
        }
        // The key that ends where the others part.
        self.keys.push(prefix.clone().into());
        // A removal of most of it sometimes comes before.
        if self.random.below(3) == 0 {
            while self.present.len() as u64 > children.max(34) + 2 {
                let at = self.random.below(self.present.len() as u64) as usize;
                ops.push(Op::Remove(self.present.swap_remove(at)));
            }
        }
    }

    fn chains(&mut self) {
        let long: Vec<u8> = (0..120).map(|_| self.random.below(3) as u8).collect();
        for _ in 0..40 {
            let at = self.random.below(long.len() as u64) as usize;
            let mut key = long[..at].to_vec();
            if self.random.below(2) == 0 {
                key.push(self.random.below(256) as u8);
                key.extend(&long[..(self.random.below(4) as usize)]);
            }
            self.keys.push(key.into());
        }
    }
}
