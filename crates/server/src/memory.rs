//! How much the items may take, and who goes when that is too much.
//!
//! An item takes what its key and its value take, and [`ITEM`] bytes for its place in the index. A write says beforehand
//! by how much items may grow by it ([`Memory::reserve`]), and is carried out when that fits beside all that is there.
//!
//! I1 While nobody lowers the limit and all items are counted, `used + reserved` is at most the limit whenever a write
//!    has been let in, and no write takes more than it has reserved: what is used never exceeds the limit.
//! I2 `reserved` alone never exceeds it either: who would reserve beyond it waits for writes that are under way, so that no
//!    two of them need more room between them than there can be. These never wait for who reserves.
//!
//! Who goes: a hand goes round all items in key order, [`STEP`] at a time. Of those that it comes to, dead ones go, and of
//! the others the quarter that was asked for least (`frequency`); of equals, those stored first. Where live ones may not
//! go, a write that finds no room has the hand look at [`LOOK`] items; the next write goes on from there.

use crate::config::Config;
use crate::databases::Databases;
use crate::frequency::Sketch;
use crate::store::{Failure, Usage};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What an item takes beside its key and its value, in bytes.
pub const ITEM: u64 = 64;

/// Items that the hand looks at in one step.
const STEP: usize = 32;

/// Items that the hand looks at for one write where live ones may not go: some tens of microseconds.
const LOOK: usize = 16 * STEP;

/// The limit, and what is needed to keep it.
#[derive(Debug)]
pub struct Memory {
    /// In bytes; 0: none.
    limit: AtomicU64,
    /// Whether items go when there are too many; or else writes are refused.
    evicts: AtomicBool,
    usage: Arc<Usage>,
    /// By how much those writes may let items grow that are under way.
    reserved: AtomicU64,
    evicted: AtomicU64,
    refused: AtomicU64,
    hand: Mutex<Hand>,
}

/// Where the hand is: behind this key of this database.
#[derive(Debug, Default)]
struct Hand {
    database: usize,
    key: Vec<u8>,
}

/// Room for a write, until it is dropped.
#[derive(Debug)]
pub struct Room<'m> {
    memory: &'m Memory,
    bytes: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.reserved.fetch_sub(self.bytes, Ordering::SeqCst);
        }
    }
}

impl Memory {
    pub fn new(limit: u64, evicts: bool) -> Memory {
        let memory = Memory {
            limit: AtomicU64::new(0),
            evicts: AtomicBool::new(evicts),
            usage: Arc::default(),
            reserved: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            hand: Mutex::default(),
        };
        memory.set_limit(limit);
        memory
    }

    /// Takes the limit over, and whether items go.
    pub fn take_over(&self, config: &Config) {
        self.set_limit(config.memory_limit.unwrap_or(0));
        self.set_evicts(config.evicts);
    }

    /// What the stores count into.
    pub fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    /// The limit in bytes; 0: none.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit. Where more is there, the next write that needs room makes it.
    pub fn set_limit(&self, bytes: u64) {
        if bytes > 0 {
            self.usage.sketch.get_or_init(|| Sketch::new(bytes));
        }
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Whether items go when there are too many.
    pub fn evicts(&self) -> bool {
        self.evicts.load(Ordering::Relaxed)
    }

    /// Changes whether items go when there are too many.
    pub fn set_evicts(&self, evicts: bool) {
        self.evicts.store(evicts, Ordering::Relaxed);
    }

    /// Bytes that the items take, as far as they are counted.
    pub fn used(&self) -> u64 {
        self.usage.bytes()
    }

    /// Items that had to go.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Writes refused for want of room.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Makes room for items to grow by so many bytes, or says that there is none. The caller may write, holds back no
    /// edits, and has no other room.
    pub fn reserve(&self, databases: &Databases, bytes: u64, now: u64) -> Result<Room<'_>, Failure> {
        let limit = self.limit();
        if limit == 0 || bytes == 0 {
            return Ok(Room {
                memory: self,
                bytes: 0,
            });
        }
        if bytes > limit {
            return Err(self.refuse());
        }
        while !self.take(bytes, limit) {
            std::thread::yield_now();
        }
        let room = Room { memory: self, bytes };
        while self.is_full(limit) {
            if !self.make_room(databases, limit, now)? {
                return Err(self.refuse());
            }
        }
        Ok(room)
    }

    fn refuse(&self) -> Failure {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Failure::NoRoom
    }

    /// Reserves so many bytes, if with all others that are reserved they are within the limit.
    fn take(&self, bytes: u64, limit: u64) -> bool {
        let within = |reserved: u64| reserved.checked_add(bytes).filter(|&sum| sum <= limit);
        self.reserved
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, within)
            .is_ok()
    }

    fn is_full(&self, limit: u64) -> bool {
        self.used().saturating_add(self.reserved.load(Ordering::SeqCst)) > limit
    }

    /// Moves the hand until it has found somebody to go; `false` if there are no items, or, where live ones may not go, none
    /// that is dead among those that it comes to.
    fn make_room(&self, databases: &Databases, limit: u64, now: u64) -> Result<bool, Failure> {
        let evicts = self.evicts();
        let mut looks = if evicts { usize::MAX } else { LOOK };
        // What a panic leaves is a place like any other.
        let mut hand = self.hand.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_full(limit) {
            return Ok(true); // Another thread was faster.
        }
        let stores = databases.all();
        // Once more than there are databases, as the hand may have begun amid one.
        for _ in 0..=stores.len() {
            let place = stores.iter().position(|&(number, _)| number >= hand.database);
            let (number, store) = &stores[place.unwrap_or(0)];
            if *number != hand.database {
                *hand = Hand {
                    database: *number,
                    key: Vec::new(),
                };
            }
            while looks > 0 {
                looks = looks.saturating_sub(STEP);
                let (seen, gone) = store.evict(&mut hand.key, STEP, evicts, now)?;
                self.evicted.fetch_add(gone.evicted, Ordering::Relaxed);
                if seen < STEP {
                    hand.database = number + 1;
                }
                if gone.evicted + gone.dead > 0 {
                    return Ok(true);
                }
                if seen < STEP {
                    break;
                }
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memcached::Verb;
    use index::model::Model;
    use std::collections::{HashSet, VecDeque};
    use std::sync::atomic::AtomicUsize;

    const NOW: u64 = 1_800_000_000_000;
    const DATA: usize = 100;
    /// What an item of these tests takes: a key of ten bytes, a header, the data.
    const EACH: u64 = ITEM + 10 + 24 + DATA as u64;

    fn open(index: &Model, items: u64, evicts: bool) -> Databases {
        let config = Config {
            memory_limit: Some(items * EACH),
            evicts,
            ..Config::default()
        };
        let databases = Databases::open(
            Arc::new(index.clone()),
            &config,
            Arc::new(AtomicUsize::new(1 << 20)),
        )
        .expect("empty, or a server's");
        while !databases.first().count_on(1000).expect("the model does not fail") {}
        databases
    }

    fn key(i: usize) -> String {
        // Neighbours in rank are none in order.
        format!(
            "k{:09}",
            (i as u64).wrapping_mul(2_654_435_761) % 1_000_000_007 % 1_000_000_000
        )
    }

    fn get(databases: &Databases, key: &str) -> bool {
        let found = databases.first().read(key.as_bytes(), NOW, |_| ());
        found.expect("the model does not fail").is_some()
    }

    fn set(databases: &Databases, key: &str) -> Result<(), Failure> {
        let _room = databases.room(EACH, NOW)?;
        let data = [b'x'; DATA];
        let mut scratch = Vec::new();
        let store = databases.first();
        store.store(Verb::Set, key.as_bytes(), (0, 0), &data, NOW, &mut scratch)?;
        assert!(databases.memory().used() <= databases.memory().limit());
        Ok(())
    }

    /// Ranks by Zipf's law.
    fn zipf(keys: usize, requests: usize, seed: u64) -> impl Iterator<Item = usize> {
        let mut sums: Vec<f64> = Vec::new();
        for rank in 1..=keys {
            sums.push(sums.last().unwrap_or(&0.0) + 1.0 / (rank as f64).powf(0.99));
        }
        let mut random = seed;
        (0..requests).map(move |_| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let place = (random >> 11) as f64 / (1u64 << 53) as f64 * sums[sums.len() - 1];
            sums.partition_point(|&sum| sum < place)
        })
    }

    /// Of requests by Zipf's law, more are answered than would be if the oldest went; also while keys that are asked for
    /// once pass through, and after a restart, which forgets who was asked for.
    #[test]
    fn what_is_asked_for_stays() {
        const KEYS: usize = 10_000;
        const ITEMS: usize = 1000;
        let index = Model::new();
        let mut databases = open(&index, ITEMS as u64, true);
        let (mut hits, mut fifo_hits, mut passing) = (0, 0, KEYS);
        let (mut order, mut there) = (VecDeque::new(), HashSet::new());
        let requests = 120_000;
        for (n, rank) in zipf(KEYS, requests, 0x2545_f491_4f6c_dd1d).enumerate() {
            if n == requests / 2 {
                drop(databases);
                databases = open(&index, ITEMS as u64, true);
            }
            // One in four is a key that nobody asks for again.
            let id = match n % 4 {
                0 => {
                    passing += 1;
                    passing
                }
                _ => rank,
            };
            hits += usize::from(get(&databases, &key(id)));
            set(&databases, &key(id)).expect("room is made");
            if !there.insert(id) {
                fifo_hits += 1;
                continue;
            }
            order.push_back(id);
            if order.len() > ITEMS {
                order.pop_front().map(|gone| there.remove(&gone));
            }
        }
        println!("of {requests} requests {hits} are answered, {fifo_hits} if the oldest go");
        assert!(hits * 100 > fifo_hits * 115, "{hits} against {fifo_hits}");
        assert!(databases.memory().evicted() > 0);
    }

    /// Without eviction writes are refused when all is full, and let in again when something is removed.
    #[test]
    fn writes_are_refused_where_nothing_may_go() {
        let index = Model::new();
        let databases = open(&index, 10, false);
        (0..10).for_each(|i| set(&databases, &key(i)).expect("room"));
        assert!(matches!(set(&databases, &key(10)), Err(Failure::NoRoom)));
        assert!((0..10).all(|i| get(&databases, &key(i))));
        databases.first().delete(key(3).as_bytes(), NOW).expect("removed");
        set(&databases, &key(10)).expect("room");
        assert_eq!(
            (databases.memory().refused(), databases.memory().evicted()),
            (1, 0)
        );
        databases.memory().set_evicts(true);
        set(&databases, &key(11)).expect("room is made");
        assert!(databases.memory().evicted() > 0);
        // More than the whole limit is never let in.
        assert!(matches!(databases.room(11 * EACH, NOW), Err(Failure::NoRoom)));
        databases.memory().set_limit(0);
        assert!(databases.room(1 << 40, NOW).is_ok(), "no limit");
    }

    /// Where live items may not go, dead ones do, expired or flushed: at once if they are among those that are looked at for
    /// one write, and else for a later one.
    #[test]
    fn the_dead_go_where_nothing_else_may() {
        let index = Model::new();
        let databases = open(&index, 10, false);
        let store = |key: &str, expiry| {
            let stored = databases.first().store(
                Verb::Set,
                key.as_bytes(),
                (0, expiry),
                &[b'x'; DATA],
                NOW - 2,
                &mut Vec::new(),
            );
            stored.expect("the model does not fail");
        };
        (0..10).for_each(|i| store(&key(i), if i < 4 { NOW - 1 } else { 0 }));
        (10..14).for_each(|i| set(&databases, &key(i)).expect("room of the dead"));
        assert!(matches!(set(&databases, &key(14)), Err(Failure::NoRoom)));
        assert!((4..14).all(|i| get(&databases, &key(i))));
        databases.first().flush(None).expect("the model does not fail");
        (0..10).for_each(|i| set(&databases, &key(i)).expect("room of the flushed"));
        assert!(matches!(set(&databases, &key(10)), Err(Failure::NoRoom)));
        assert_eq!(databases.memory().evicted(), 0);

        let index = Model::new();
        let databases = open(&index, 3 * LOOK as u64, false);
        let store = |i: usize, expiry| {
            let (key, data) = (format!("k{i:09}"), [b'x'; DATA]);
            let place = databases.first();
            let stored = place.store(
                Verb::Set,
                key.as_bytes(),
                (0, expiry),
                &data,
                NOW - 2,
                &mut Vec::new(),
            );
            stored.expect("the model does not fail");
        };
        let last = 3 * LOOK - 1;
        (0..last).for_each(|i| store(i, 0));
        store(last, NOW - 1);
        let tries = (0..4).map(|_| set(&databases, "k999999999").is_ok());
        assert_eq!(tries.collect::<Vec<_>>(), [false, false, true, false]);
    }

    /// Writes that are large need room one after the other: not more goes than one of them needs.
    #[test]
    fn large_writes_do_not_empty_the_memory() {
        let index = Model::new();
        let databases = open(&index, 100, true);
        (0..100).for_each(|i| set(&databases, &key(i)).expect("room"));
        let barrier = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    barrier.wait();
                    for _ in 0..20 {
                        let room = databases.room(60 * EACH, NOW).expect("room");
                        let reserved = databases.memory().reserved.load(Ordering::SeqCst);
                        assert_eq!(reserved, 60 * EACH, "nobody else has any");
                        drop(room);
                    }
                });
            }
        });
        let left = databases.memory().used() / EACH;
        // A step removes up to a quarter of what it looks at.
        assert!((40 - STEP as u64 / 4..=40).contains(&left), "{left}");
        assert_eq!(databases.memory().refused(), 0);
    }

    /// Dead items go first.
    #[test]
    fn the_dead_go_first() {
        let index = Model::new();
        let databases = open(&index, 100, true);
        let mut scratch = Vec::new();
        for i in 0..100 {
            let expiry = if i % 2 == 0 { NOW - 1 } else { 0 };
            let store = databases.first();
            let stored = store.store(
                Verb::Set,
                key(i).as_bytes(),
                (0, expiry),
                &[b'x'; DATA],
                NOW - 2,
                &mut scratch,
            );
            stored.expect("the model does not fail");
        }
        (100..130).for_each(|i| set(&databases, &key(i)).expect("room is made"));
        assert_eq!(databases.memory().evicted(), 0);
        assert!((0..100).filter(|i| i % 2 == 1).all(|i| get(&databases, &key(i))));
    }
}
