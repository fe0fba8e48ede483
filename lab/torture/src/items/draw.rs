//! Random histories of the server's items.

use super::{Condition, Life, Op, Place, Shown, Token};
use crashkit::{History, Random};

/// The bound of the number of items prepared for a history that reopens the databases.
const PREPARED: u64 = 20;

/// The minimum size in bytes of a small pool, which is soon full.
const MIN_ROOM: u64 = 10 << 16;

/// The bound of the random number of additional 64 KiB pages of a small pool.
const EXTRA_PAGES: u64 = 12;

/// The number of recent uniques from which a compare-and-swap chooses.
const REMEMBERED: usize = 8;

/// The letters of keys: each key is one of them, or one twice.
const LETTERS: &[u8] = b"abcd";

/// Returns all places that operations name.
pub(super) fn places() -> impl Iterator<Item = Place> {
    let keys = LETTERS.iter().flat_map(|&letter| [vec![letter], vec![letter; 2]]);
    keys.flat_map(|key| [(0, key.clone()), (1, key)])
}

/// The source of random operations.
struct Draw<'r> {
    random: &'r mut Random,
    /// The tokens of the last operations that gave or read a unique, and their keys.
    seen: Vec<(Place, Token)>,
}

impl Draw<'_> {
    fn below(&mut self, end: u64) -> u64 {
        self.random.below(end)
    }

    /// Draws one of a few keys, so that operations conflict. No key is empty.
    fn place(&mut self) -> Place {
        let len = 1 + self.below(2) as usize;
        let key = vec![LETTERS[self.below(LETTERS.len() as u64) as usize]; len];
        (self.below(2) as u8, key)
    }

    fn database(&mut self) -> u8 {
        self.below(2) as u8
    }

    fn life(&mut self) -> Life {
        *self
            .random
            .pick(&[Life::Over, Life::Long, Life::Endless, Life::Endless])
    }

    /// Draws an item: mostly a number, which can be incremented.
    fn item(&mut self) -> Shown {
        let number = self.below(1000);
        let data = match self.below(8) {
            0 => Vec::new(),
            1 => vec![b'x'; self.below(60) as usize],
            2 => vec![b'y'; 300],
            3 => b"18446744073709551615".to_vec(),
            _ => number.to_string().into_bytes(),
        };
        Shown {
            flags: self.random.next() as u32,
            data,
            life: self.life(),
        }
    }

    fn remembered(&mut self, place: &Place) -> Token {
        let token = self.random.next();
        self.seen.push((place.clone(), token));
        if self.seen.len() > REMEMBERED {
            self.seen.remove(0);
        }
        token
    }

    /// Draws a command on one item.
    fn single(&mut self) -> Op {
        let place = self.place();
        let token = self.random.next();
        match self.below(10) {
            0..3 => {
                let token = self.remembered(&place);
                Op::Set(place, self.item(), token)
            }
            3 => {
                let how = *self.random.pick(&[
                    Condition::Add,
                    Condition::Replace,
                    Condition::Append,
                    Condition::Prepend,
                ]);
                Op::Store(how, place, self.item(), token)
            }
            4 => Op::Count(place, self.below(200), self.below(2) == 0, token),
            5 => Op::Touch(place, self.life()),
            6 => Op::GetAndTouch(place, self.life()),
            7 => Op::Delete(place),
            _ => {
                let token = self.remembered(&place);
                Op::Read(place, token)
            }
        }
    }

    fn transaction(&mut self) -> Op {
        let ops = 1 + self.below(5);
        let each = |draw: &mut Self| match draw.below(12) {
            0 => Op::Flush(draw.database()),
            1 => Op::Spend(draw.database()),
            _ => draw.single(),
        };
        let ops = (0..ops).map(|_| each(self)).collect();
        Op::Transaction(ops, self.below(5) > 0)
    }

    fn swap(&mut self) -> Op {
        if self.seen.is_empty() {
            return self.single();
        }
        let (place, seen) = self.random.pick(&self.seen).clone();
        let token = self.remembered(&place);
        Op::Store(Condition::Swap(seen), place, self.item(), token)
    }

    fn op(&mut self) -> Op {
        match self.below(24) {
            0..4 => self.transaction(),
            4..7 => {
                let place = self.place();
                let token = self.remembered(&place);
                Op::Put(place, self.item(), token)
            }
            7 | 8 => self.swap(),
            9 => Op::Flush(self.database()),
            10 => Op::FlushLater(self.database(), self.below(3) > 0),
            11 => self.random.pick(&[Op::Sweep(0), Op::Sweep(1)]).clone(),
            12 => Op::Evict(self.place()),
            13 => Op::ItemCount(self.database()),
            14 => match self.below(4) {
                0 => Op::Bury(self.place()),
                1 => Op::CountOn(self.database()),
                2 => Op::Spend(self.database()),
                _ => Op::Recover,
            },
            _ => self.single(),
        }
    }
}

fn draw(random: &mut Random) -> Draw<'_> {
    Draw {
        random,
        seen: Vec::new(),
    }
}

/// Draws a transaction for the judge to execute after recovery.
pub(super) fn after_recovery(random: &mut Random) -> Op {
    draw(random).transaction()
}

/// Returns operations to follow a crash: on the key that was in flight, and a random one.
pub(super) fn follow_up(in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
    let place = in_flight.iter().find_map(|op| op.place()).cloned();
    let mut draw = draw(random);
    let place = place.unwrap_or_else(|| draw.place());
    let (read, token) = (draw.remembered(&place), draw.random.next());
    let swapped = Op::Store(Condition::Swap(read), place.clone(), draw.item(), token);
    vec![
        Op::Read(place.clone(), read),
        swapped,
        Op::ItemCount(place.0),
        draw.op(),
    ]
}

/// Returns a history of `ops` operations by `threads` threads. One in three reopens the databases before its
/// operations, which then run during recovery. One in five runs in a small pool.
pub fn history(seed: u64, ops: usize, threads: u32) -> History<Op> {
    let mut random = Random(seed);
    let mut draw = draw(&mut random);
    let reopened = seed % 3 == 2;
    let mut all = Vec::new();
    if reopened {
        for _ in 0..draw.below(PREPARED) {
            let place = draw.place();
            let token = draw.remembered(&place);
            all.push(Op::Set(place, draw.item(), token));
        }
        for _ in 0..draw.below(10) {
            all.push(draw.op());
        }
    }
    let prepared = all.len() as u32;
    all.extend((0..ops).map(|_| draw.op()));
    History {
        seed,
        ops: all,
        prepared,
        threads,
        reopened,
        legs: None,
        room: match seed % 5 {
            3 => MIN_ROOM + (random.below(EXTRA_PAGES) << 16),
            _ => u64::MAX,
        },
    }
}
