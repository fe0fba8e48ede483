//! The embedded database as a subject: batches and transactions that are there whole or not at all, over two maps held by
//! different indexes, beside writes of single keys, snapshots, a map that comes and goes, and one whose entries end.

mod live;

use crashtest::{Crash, Depth, History, Random, Subject, Verdict};
pub use live::Live;
use live::{COMES_AND_GOES, ENDING, is_full};
use pmem::Pool;
use std::collections::BTreeMap;
use wollemi::Event;

/// A map's number and a key.
pub type Place = (u8, Vec<u8>);

/// What a key shall hold, or is expected to.
pub type Entry = (Place, Option<Vec<u8>>);

/// An operation of the database.
#[derive(Clone, Debug)]
pub enum Op {
    /// All of these, if that is there.
    Batch(Vec<Entry>, Option<Entry>),
    /// In a transaction: look at these keys, and at all keys of a map from a number on, in this order or from the end;
    /// then make the changes, and look at that map again.
    Transaction(Vec<Place>, Option<(Place, bool)>, Vec<Entry>),
    /// One key.
    Write(Entry),
    /// One key, if it holds what is expected (the second).
    Swap(Entry, Option<Vec<u8>>),
    /// Look what a key holds.
    Get(Place),
    /// Give a key of the map whose entries end a value with a life; of two such, the second only if it is absent.
    Put(Vec<u8>, Vec<u8>, Life),
    /// See [`Put`](Op::Put).
    Add(Vec<u8>, Vec<u8>, Life),
    /// Give a key of that map another life.
    Touch(Vec<u8>, Life),
    /// Remove what has ended.
    Sweep,
    /// Drop the map that comes and goes.
    Drop,
    /// Read the two maps of the batches in a snapshot.
    Snapshot,
}

/// How long an entry lives: lives that end by the clock would make runs differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It is over as it begins.
    Over,
    /// Longer than any run.
    Long,
    /// It has no end.
    Endless,
}

/// What an operation answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Whether it was carried out.
    Done(bool),
    /// What was read.
    Value(Option<Vec<u8>>),
    /// What a snapshot shows.
    Shown(State),
    /// What a transaction has seen.
    Seen(Seen),
    /// The pool is full; nothing was changed.
    Full,
    /// A snapshot keeps the map from being dropped; nothing was changed.
    InUse,
}

/// What a transaction has seen: the values of keys, and the entries of a map before its changes and after them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    values: Vec<Option<Vec<u8>>>,
    before: Vec<(Vec<u8>, Vec<u8>)>,
    after: Vec<(Vec<u8>, Vec<u8>)>,
}

/// What all maps hold.
pub type State = BTreeMap<Place, Vec<u8>>;

/// The embedded database, with a map held by one index and a map held by another.
#[derive(Debug, Default)]
pub struct Batches;

impl Batches {
    /// Whether the database claims the model `word`: it keeps maps in a ROART, which does not.
    pub const CLAIMS_WORD: bool = false;
}

impl Subject for Batches {
    type Op = Op;
    type Answer = Answer;
    type State = State;
    type Live = Live;

    fn name(&self) -> String {
        "kv".into()
    }

    fn create(&self, pool: Pool<Crash>) -> Result<Live, String> {
        Live::create(pool)
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Live>, String> {
        Live::open(pool)
    }

    fn recover(&self, live: &Live) -> Result<(), String> {
        match live.recover().state {
            wollemi::RecoveryState::Done => Ok(()),
            state => Err(format!("recovery is {state}")),
        }
    }

    fn apply(&self, live: &Live, op: &Op) -> Result<Answer, String> {
        match live.apply(op) {
            Err(error) if is_full(&error) && live.is_tight() => Ok(Answer::Full),
            Err(wollemi::Error::MapInUse(_)) => Ok(Answer::InUse),
            done => done.map_err(|error| error.to_string()),
        }
    }

    fn is_refusal(&self, answer: &Answer) -> bool {
        matches!(answer, Answer::Full | Answer::InUse)
    }

    fn check_end(&self, live: &Live) -> Result<(), String> {
        // What was retired comes back, so that what was retired twice is known.
        (0..4).for_each(|_| heap::pin().flush());
        let check = live.check().map_err(|error| error.to_string())?;
        if check.is_clean() {
            return Ok(());
        }
        Err(format!("the check says {check:?}"))
    }

    fn specify(&self, state: &mut State, op: &Op) -> Answer {
        match op {
            Op::Write(entry) => Answer::Done(set(state, entry)),
            Op::Batch(_, Some((place, value))) if state.get(place) != value.as_ref() => Answer::Done(false),
            Op::Batch(changes, _) => {
                changes.iter().for_each(|entry| _ = set(state, entry));
                Answer::Done(true)
            }
            Op::Transaction(places, range, changes) => {
                let values = places.iter().map(|place| state.get(place).cloned());
                let mut seen = Seen {
                    values: values.collect(),
                    before: range_of(state, range.as_ref()),
                    ..Seen::default()
                };
                changes.iter().for_each(|entry| _ = set(state, entry));
                seen.after = range_of(state, range.as_ref());
                Answer::Seen(seen)
            }
            Op::Swap(entry, expected) if state.get(&entry.0) == expected.as_ref() => {
                set(state, entry);
                Answer::Done(true)
            }
            Op::Swap(..) => Answer::Done(false),
            Op::Get(place) => Answer::Value(state.get(place).cloned()),
            Op::Put(key, value, life) => Answer::Done(live_on(state, key, value, *life)),
            Op::Add(key, value, life) => {
                let absent = !state.contains_key(&(ENDING, key.clone()));
                Answer::Done(absent && live_on(state, key, value, *life))
            }
            Op::Touch(key, life) => {
                let place = (ENDING, key.clone());
                let touched = state.get(&place).cloned();
                Answer::Done(touched.is_some_and(|value| live_on(state, key, &value, *life)))
            }
            Op::Sweep => Answer::Done(true),
            Op::Drop => {
                state.retain(|(map, _), _| *map != COMES_AND_GOES);
                Answer::Done(true)
            }
            Op::Snapshot => {
                let shown = state.iter().filter(|((map, _), _)| *map < COMES_AND_GOES);
                Answer::Shown(
                    shown
                        .map(|(place, value)| (place.clone(), value.clone()))
                        .collect(),
                )
            }
        }
    }

    fn judge(&self, live: &Live, mut verdict: Verdict<'_, Self>) -> Result<usize, String> {
        let failed = |error: wollemi::Error| error.to_string();
        let found = live.entries().map_err(failed)?;
        let Some(which) = verdict.allowed.iter().position(|state| **state == found) else {
            return Err(format!(
                "it holds {found:?} instead of one of {:?}",
                verdict.allowed
            ));
        };
        let mut state = found;
        for _ in 0..if verdict.depth == Depth::Deep { 20 } else { 1 } {
            let changes = entries(&mut verdict.random);
            let op = Op::Batch(changes.clone(), None);
            let mut watch = live.watch_first().map_err(failed)?;
            let mut expected = Vec::new();
            if !self.is_refusal(&self.apply(live, &op)?) {
                for (i, entry) in changes.iter().enumerate() {
                    let ((map, key), value) = entry;
                    // Of several changes of a key a batch makes the last one alone.
                    if changes[i + 1..].iter().any(|later| later.0 == entry.0) {
                        continue;
                    }
                    if set(&mut state, entry) && *map == 0 {
                        let (key, value) = (key.clone(), value.clone());
                        expected.push(Event::Changed { key, value });
                    }
                }
            }
            let told: Vec<Event> = std::iter::from_fn(|| watch.try_next()).collect();
            if told != expected {
                return Err(format!(
                    "after recovery, a watch tells {told:?} instead of {expected:?}"
                ));
            }
        }
        if live.entries().map_err(failed)? != state {
            return Err("after recovery, something is not what a batch has put there".into());
        }
        if verdict.depth == Depth::Deep {
            self.check_end(live)
                .map_err(|wrong| format!("after recovery and use, {wrong}"))?;
        }
        Ok(which)
    }

    fn follow_up(&self, _state: &State, in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        // What a batch in flight had to change is what somebody might look at or change now.
        let touched = in_flight.iter().find_map(|op| match op {
            Op::Batch(changes, _) | Op::Transaction(_, _, changes) => {
                changes.first().map(|(place, _)| place.clone())
            }
            _ => None,
        });
        let place = touched.unwrap_or_else(|| place(random));
        let value = Some(vec![9; 8]);
        vec![
            Op::Get(place.clone()),
            Op::Write((place, value)),
            op(random, true),
        ]
    }
}

/// The entries of a map from a key on, or from the end down to it.
fn range_of(state: &State, range: Option<&(Place, bool)>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let Some(((map, from), reverse)) = range else {
        return Vec::new();
    };
    let entries = state.iter().filter(|((of, key), _)| of == map && key >= from);
    let mut entries: Vec<_> = entries
        .map(|((_, key), value)| (key.clone(), value.clone()))
        .collect();
    if *reverse {
        entries.reverse();
    }
    entries
}

/// Gives a key of the map whose entries end a value and a life.
fn live_on(state: &mut State, key: &[u8], value: &[u8], life: Life) -> bool {
    let place = (ENDING, key.to_vec());
    match life {
        Life::Over => state.remove(&place),
        Life::Long | Life::Endless => state.insert(place, value.to_vec()),
    };
    true
}

/// Makes a change; `false` if it was to remove what is not there.
fn set(state: &mut State, (place, value): &Entry) -> bool {
    match value {
        Some(value) => {
            state.insert(place.clone(), value.clone());
            true
        }
        None => state.remove(place).is_some(),
    }
}

fn place(random: &mut Random) -> Place {
    let len = random.below(3) as usize;
    (random.below(2) as u8, vec![random.below(5) as u8; len])
}

fn entry(random: &mut Random) -> Entry {
    let place = place(random);
    let len = match random.below(10) {
        0..3 => return (place, None),
        3..7 => 8,
        _ => random.below(40) as usize,
    };
    (place, Some(vec![random.below(256) as u8; len]))
}

fn entries(random: &mut Random) -> Vec<Entry> {
    (0..1 + random.below(5)).map(|_| entry(random)).collect()
}

fn transaction(random: &mut Random) -> Op {
    let places = (0..random.below(3)).map(|_| place(random)).collect();
    let range = (random.below(3) == 0).then(|| (place(random), random.below(2) == 0));
    let changes = match random.below(4) {
        0 => Vec::new(),
        _ => entries(random),
    };
    Op::Transaction(places, range, changes)
}

fn op(random: &mut Random, reads: bool) -> Op {
    match random.below(16) {
        0 => {
            let entry = entry(random);
            let expected = match random.below(3) {
                0 => None,
                _ => self::entry(random).1,
            };
            Op::Swap(entry, expected)
        }
        1 if reads => Op::Get(place(random)),
        1 | 2 => Op::Write(entry(random)),
        3 => Op::Batch(entries(random), Some((place(random), None))),
        4 => other(random),
        5 => of_ending(random),
        6 => Op::Snapshot,
        7..11 => transaction(random),
        _ => Op::Batch(entries(random), None),
    }
}

/// Of the map that comes and goes.
fn other(random: &mut Random) -> Op {
    let ((_, key), value) = entry(random);
    let place = (COMES_AND_GOES, key);
    match random.below(6) {
        0 => Op::Drop,
        1 => Op::Get(place),
        _ => Op::Write((place, value)),
    }
}

/// Of the map whose entries end.
fn of_ending(random: &mut Random) -> Op {
    let ((_, key), value) = entry(random);
    let life = *random.pick(&[Life::Over, Life::Long, Life::Endless]);
    match (random.below(6), value) {
        (0, _) => Op::Get((ENDING, key)),
        (1, _) => Op::Touch(key, life),
        (2, _) => Op::Sweep,
        (3, value) => Op::Write(((ENDING, key), value)),
        (4, Some(value)) => Op::Add(key, value, life),
        (_, value) => Op::Put(key, value.unwrap_or_default(), life),
    }
}

/// Keys of the map that comes and goes, before a history that is opened again.
const KEYS: u64 = 40;

/// Bytes of a pool that is to be full soon: the least, and what may come to it.
const LITTLE: u64 = 14 << 16;
const MORE: u64 = 12;

/// Threads read the maps of the batches in transactions and snapshots only: while a batch is carried out, other readers
/// see some of it.
///
/// One history in three is opened again before its operations, and the map that comes and goes is dropped beside
/// recovery; one in five has little room.
pub fn history(seed: u64, ops: usize, threads: u32) -> History<Op> {
    let mut random = Random(seed);
    let reopened = seed % 3 == 2;
    let mut all = Vec::new();
    if reopened {
        let keys = random.below(KEYS);
        all.extend((0..keys).map(|number| {
            let place = (COMES_AND_GOES, vec![number as u8; 1 + number as usize % 3]);
            let value = entry(&mut random).1.unwrap_or_else(|| vec![1; 20]);
            Op::Write((place, Some(value)))
        }));
        all.extend((0..random.below(10)).map(|_| op(&mut random, true)));
    }
    let prepared = all.len();
    all.extend((0..ops).map(|_| op(&mut random, threads == 1)));
    if reopened {
        let at = prepared + random.below(6) as usize;
        all.insert(at.min(all.len()), Op::Drop);
    }
    History {
        seed,
        ops: all,
        prepared: prepared as u32,
        threads,
        reopened,
        room: match seed % 5 {
            3 => LITTLE + (random.below(MORE) << 16),
            _ => u64::MAX,
        },
    }
}
