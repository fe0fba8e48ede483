//! Bugs of implementations of DPTree, each seeded into a small structure of its kind, and found.
//!
//! The structure holds the values of sixteen keys: a front in memory with a log, and a base of two halves, one of which
//! counts. A full front is merged: the merge writes the other half, with the values of the half that counts and the
//! front's changes. Then one store to the state makes the other half count and ends the log, whose page the log after
//! the next reuses. A key that is not in the front is updated in place.

#[path = "common/seeded.rs"]
mod seeded;

use pmem::{
    GenerationLock, Locked, Media, Offset, PWord, PersistBatch, Pool, Purpose, persist_scope, persistent,
};
use seeded::Expected;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard, PoisonError};
use wollemi_crashkit::{Crash, Random, Subject, Verdict};

/// The seeded bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bug {
    Nothing,
    /// A merge writes back only the first line of the other half, and ends the log that could repair the rest.
    FlushStridesByOne,
    /// Replay accepts records that a page holds from an earlier use.
    StaleRecords,
    /// The thread that writes the half does not fence; the thread that makes it count fences only its own stores.
    FencedByAccident,
    /// An update in place does not wait for a merge that has already copied the value.
    InPlaceBesideMerge,
}

const KEYS: usize = 16;
/// Number of records that fill the front; a page has room for a line of them.
const FULL: usize = 6;
const PAGE: usize = 8;

persistent! {
    struct Root [size: 128 + 8 * (2 * KEYS + 2 * PAGE), align: 64] {
        /// `number of the last log that was merged:63 | half`
        state: PWord,
        rest: [PWord; 7],
        lock: GenerationLock,
        rest_1: [PWord; 7],
        halves: [[PWord; KEYS]; 2],
        /// `1 | 0:8 | number of its log:15 | key:8 | value:32`
        pages: [[PWord; PAGE]; 2],
    }
}

const PRESENT: u64 = 1 << 32;

struct Tree(Bug);

#[derive(Default)]
struct Front {
    values: BTreeMap<u8, u32>,
    records: usize,
    /// The number of its log.
    number: u64,
    half: usize,
    /// Whether a merge has written the other half and not made it count.
    written: bool,
}

impl Front {
    /// Returns the number of its log, the half that counts, and the position of the next record.
    fn place(&self) -> (u64, usize, usize) {
        (self.number, self.half, self.records)
    }
}

struct Live {
    pool: Pool<Crash>,
    front: Mutex<Front>,
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Put(u8, u32),
    Update(u8, u32),
    Get(u8),
}

type State = BTreeMap<u8, u32>;

impl Live {
    fn root(&self) -> Result<&Root, String> {
        let offset = Offset::new(64 << 10).ok_or("nowhere")?;
        // SAFETY: there are no drafts here.
        unsafe { self.pool.at(offset) }.map_err(|fault| fault.to_string())
    }

    /// Locks the front. Not held during uses of the media, as threads may switch there.
    fn front(&self) -> MutexGuard<'_, Front> {
        self.front.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn media(&self) -> &Crash {
        self.pool.media()
    }

    fn persist<'p>(&'p self, change: impl FnOnce(&PersistBatch<'_, 'p, Crash>)) {
        persist_scope(self.media(), Purpose::Node, |batch| {
            change(&batch);
            let _durable = batch.fence().durable();
        });
    }

    fn base(&self, half: usize, key: u8) -> Result<Option<u32>, String> {
        let word = self.root()?.halves[half][usize::from(key) % KEYS].load(self.media());
        Ok((word & PRESENT != 0).then_some(word as u32))
    }
}

impl Tree {
    fn lock<'l>(&self, live: &'l Live) -> Result<Locked<'l, Crash>, String> {
        let locked = live.root()?.lock.lock(live.media(), live.pool.generation());
        let mut locked = locked.map_err(|obsolete| format!("{obsolete:?}"))?;
        if locked.is_stale() {
            locked.repaired();
        }
        if live.front().written {
            self.flip(live)?;
        }
        Ok(locked)
    }

    fn get(&self, live: &Live, key: u8) -> Result<Option<u32>, String> {
        let buffered = live.front().values.get(&key).copied();
        if buffered.is_some() {
            return Ok(buffered);
        }
        let (_, half, _) = live.front().place();
        live.base(half, key)
    }

    fn put(&self, live: &Live, key: u8, value: u32) -> Result<(), String> {
        let (number, _, position) = live.front().place();
        let record = 1 << 63 | (number & 0x7fff) << 40 | u64::from(key) << 32 | u64::from(value);
        let page = &live.root()?.pages[number as usize % 2];
        live.persist(|batch| page[position].store(record, batch));
        let records = {
            let mut front = live.front();
            front.values.insert(key, value);
            front.records += 1;
            front.records
        };
        if records == FULL {
            self.merge(live)?;
        }
        Ok(())
    }

    fn merge(&self, live: &Live) -> Result<(), String> {
        let (values, half) = {
            let front = live.front();
            (front.values.clone(), front.half)
        };
        let (media, root) = (live.media(), live.root()?);
        let mut words = Vec::new();
        for key in 0..KEYS as u8 {
            let value = match values.get(&key) {
                Some(&value) => Some(value),
                None => live.base(half, key)?,
            };
            words.push(value.map_or(0, |value| PRESENT | u64::from(value)));
        }
        let other = root.halves[1 - half].iter().zip(words);
        match self.0 {
            Bug::FlushStridesByOne => live.persist(|batch| {
                for (key, (word, value)) in other.enumerate() {
                    if key < 8 {
                        word.store(value, batch);
                    } else {
                        persist_scope(media, Purpose::Node, |forgotten| word.store(value, &forgotten));
                    }
                }
            }),
            Bug::FencedByAccident => {
                for (word, value) in other {
                    persist_scope(media, Purpose::Node, |forgotten| word.store(value, &forgotten));
                }
                for word in root.halves[1 - half].iter().step_by(8) {
                    // SAFETY: a word is an atomic one, and all access to it is atomic.
                    let word = unsafe { AtomicU64::from_ptr(std::ptr::from_ref(word).cast_mut().cast()) };
                    media.write_back(word, Purpose::Node);
                }
                live.front().written = true;
                return Ok(());
            }
            _ => live.persist(|batch| other.for_each(|(word, value)| word.store(value, batch))),
        }
        self.flip(live)
    }

    /// Makes the other half count.
    fn flip(&self, live: &Live) -> Result<(), String> {
        let (number, half, _) = live.front().place();
        let half = 1 - half;
        let state = &live.root()?.state;
        live.persist(|batch| state.store(number << 1 | half as u64, batch));
        *live.front() = Front {
            number: number + 1,
            half,
            ..Front::default()
        };
        Ok(())
    }

    fn update(&self, live: &Live, key: u8, value: u32) -> Result<bool, String> {
        let locked = match self.0 {
            Bug::InPlaceBesideMerge => None,
            _ => Some(self.lock(live)?),
        };
        let buffered = live.front().values.contains_key(&key);
        if buffered {
            let _locked = match locked {
                None => self.lock(live)?,
                Some(locked) => locked,
            };
            self.put(live, key, value)?;
            return Ok(true);
        }
        if self.get(live, key)?.is_none() {
            return Ok(false);
        }
        let half = live.front().half;
        let word = &live.root()?.halves[half][usize::from(key) % KEYS];
        live.persist(|batch| word.store(PRESENT | u64::from(value), batch));
        Ok(true)
    }

    fn all(&self, live: &Live) -> Result<State, String> {
        let _locked = self.lock(live)?;
        let mut state = State::new();
        for key in 0..KEYS as u8 {
            let buffered = live.front().values.get(&key).copied();
            let (_, half, _) = live.front().place();
            let value = match buffered {
                Some(value) => Some(value),
                None => live.base(half, key)?,
            };
            state.extend(value.map(|value| (key, value)));
        }
        Ok(state)
    }
}

impl Subject for Tree {
    type Op = Op;
    type Answer = Option<u32>;
    type State = State;
    type Live = Live;

    fn name(&self) -> String {
        format!("differential tree with {:?} wrong", self.0)
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Live, String> {
        match self.open(pool)? {
            Some(live) => Ok(live),
            None => Err("open returned `None`".into()),
        }
    }

    /// Zeros are an empty structure.
    fn open(&self, pool: Pool<Crash>) -> Result<Option<Live>, String> {
        let live = Live {
            pool,
            front: Mutex::default(),
        };
        let (media, root) = (live.media(), live.root()?);
        let state = root.state.load(media);
        let (number, half) = ((state >> 1) + 1, (state & 1) as usize);
        let page = &root.pages[number as usize % 2];
        let mut front = Front {
            number,
            half,
            ..Front::default()
        };
        for record in page.iter().take(FULL).map(|record| record.load(media)) {
            let is_of = (record >> 40 & 0x7fff) == number & 0x7fff;
            if record != 0 && (is_of || self.0 == Bug::StaleRecords) {
                front.values.insert((record >> 32) as u8, record as u32);
                front.records += 1;
            }
        }
        // A killed process may have left stores that are not durable, on which the structure acts from now on.
        live.persist(|batch| {
            root.state.persist_seen(batch);
            let words = page.iter().chain(&root.halves[half]);
            words.for_each(|word| word.persist_seen(batch));
        });
        let full = front.records == FULL;
        *live.front() = front;
        if full {
            self.merge(&live)?;
        }
        Ok(Some(live))
    }

    fn apply(&self, live: &Live, op: &Op) -> Result<Option<u32>, String> {
        match *op {
            Op::Put(key, value) => {
                let _locked = self.lock(live)?;
                self.put(live, key, value)?;
                Ok(None)
            }
            Op::Update(key, value) => Ok(self.update(live, key, value)?.then_some(1)),
            Op::Get(key) => {
                let _locked = self.lock(live)?;
                self.get(live, key)
            }
        }
    }

    fn specify(&self, state: &mut State, op: &Op) -> Option<u32> {
        match *op {
            Op::Put(key, value) => {
                state.insert(key, value);
                None
            }
            Op::Update(key, value) => state.get_mut(&key).map(|place| {
                *place = value;
                1
            }),
            Op::Get(key) => state.get(&key).copied(),
        }
    }

    fn judge(&self, live: &Live, verdict: Verdict<'_, Tree>) -> Result<usize, String> {
        let mut found = self.all(live)?;
        let which = verdict.allowed.iter().position(|state| **state == found);
        let which = which.ok_or_else(|| format!("{found:?} instead of {:?}", verdict.allowed))?;
        let mut random = verdict.random;
        for _ in 0..FULL {
            let (key, value) = (random.below(KEYS as u64) as u8, random.next() as u32);
            self.apply(live, &Op::Put(key, value))?;
            found.insert(key, value);
        }
        let now = self.all(live)?;
        if now != found {
            return Err(format!("after more puts {now:?} instead of {found:?}"));
        }
        Ok(which)
    }

    fn follow_up(&self, _state: &State, _in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        (0..4).map(|_| op(random)).collect()
    }
}

fn op(random: &mut Random) -> Op {
    let (key, value) = (random.below(KEYS as u64) as u8, random.next() as u32);
    match random.below(5) {
        0..3 => Op::Put(key, value),
        3 => Op::Update(key, value),
        _ => Op::Get(key),
    }
}

/// Maximum number of histories to find a bug.
const HISTORIES: u64 = 200;

/// The kit finds nothing in the structure without a bug.
#[test]
fn the_whole_one_passes() {
    seeded::is_whole(Tree(Bug::Nothing), HISTORIES, op);
}

/// The kit finds each bug, by its effect.
#[test]
fn each_is_found() {
    for (bug, crashes, states) in [
        (Bug::FlushStridesByOne, 1, 5000),
        (Bug::StaleRecords, 1, 5000),
        (Bug::FencedByAccident, 1, 5000),
        // Shows only beside another thread.
        (Bug::InPlaceBesideMerge, 0, 200_000),
    ] {
        let expected = Expected {
            says: "instead of",
            crashes,
            states,
        };
        seeded::is_found(Tree(bug), HISTORIES, op, expected);
    }
}
