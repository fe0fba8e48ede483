//! The embedded database as a subject: batches that are there whole or not at all, over two maps held by different
//! indexes, beside writes of single keys.

use crashtest::{Crash, Depth, History, Random, Subject, Verdict};
use pmem::Pool;
use std::collections::BTreeMap;
use wollemi::{Db, IndexKind, Map, Options};

/// A map's number and a key.
pub type Place = (u8, Vec<u8>);

/// What a key shall hold, or is expected to.
pub type Entry = (Place, Option<Vec<u8>>);

/// An operation of the database.
#[derive(Clone, Debug)]
pub enum Op {
    /// All of these, if that is there.
    Batch(Vec<Entry>, Option<Entry>),
    /// One key.
    Write(Entry),
    /// One key, if it holds what is expected (the second).
    Swap(Entry, Option<Vec<u8>>),
    /// Look what a key holds.
    Get(Place),
}

/// What an operation answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Whether it was carried out.
    Done(bool),
    /// What was read.
    Value(Option<Vec<u8>>),
}

/// What all maps hold.
pub type State = BTreeMap<Place, Vec<u8>>;

/// The database in use.
pub struct Live {
    db: Db<Crash>,
    maps: [Map; 2],
}

impl Live {
    fn map(&self, number: u8) -> &Map {
        &self.maps[usize::from(number % 2)]
    }

    fn commit(&self, changes: &[Entry], expected: Option<&Entry>) -> Result<bool, wollemi::Error> {
        let mut batch = self.db.batch();
        if let Some(((map, key), value)) = expected {
            batch.expect(self.map(*map), key, value.as_ref());
        }
        for ((map, key), value) in changes {
            match value {
                Some(value) => batch.upsert(self.map(*map), key, value),
                None => batch.remove(self.map(*map), key),
            };
        }
        batch.commit()
    }

    fn entries(&self) -> Result<State, wollemi::Error> {
        let mut state = State::new();
        for (number, map) in (0..).zip(&self.maps) {
            for entry in map {
                let (key, value) = entry?;
                state.insert((number, key), value);
            }
        }
        Ok(state)
    }
}

/// The embedded database, with a map held by one index and a map held by another.
#[derive(Debug, Default)]
pub struct Batches;

impl Batches {
    /// Whether the database claims the model `word`: it keeps maps in a ROART, which does not.
    pub const CLAIMS_WORD: bool = false;
}

/// A root's short name shares a line with its link, and a long one does not.
const NAMES: [(&str, IndexKind); 2] = [
    ("one", IndexKind::Roart),
    (
        "two, by a name that goes on in the line after that of the link",
        IndexKind::Part,
    ),
];

fn open(pool: Pool<Crash>) -> Result<Db<Crash>, String> {
    let options = Options::new().recovery_threads(0);
    options.open_pool(pool).map_err(|error| error.to_string())
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
        let db = open(pool)?;
        db.recover();
        let make = |(name, kind)| db.map_with(name, kind).map_err(|error| error.to_string());
        let maps = [make(NAMES[0])?, make(NAMES[1])?];
        Ok(Live { db, maps })
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<Live>, String> {
        let db = open(pool)?;
        let find = |name| db.find_map(name).map_err(|error| error.to_string());
        Ok(match (find(NAMES[0].0)?, find(NAMES[1].0)?) {
            (Some(one), Some(two)) => Some(Live { db, maps: [one, two] }),
            _ => None,
        })
    }

    fn recover(&self, live: &Live) -> Result<(), String> {
        match live.db.recover().state {
            wollemi::RecoveryState::Done => Ok(()),
            state => Err(format!("recovery is {state}")),
        }
    }

    fn apply(&self, live: &Live, op: &Op) -> Result<Answer, String> {
        let done = match op {
            Op::Batch(changes, expected) => live.commit(changes, expected.as_ref()).map(Answer::Done),
            Op::Write(((map, key), Some(value))) => {
                live.map(*map).upsert(key, value).map(|()| Answer::Done(true))
            }
            Op::Write(((map, key), None)) => live.map(*map).remove(key).map(Answer::Done),
            Op::Swap(((map, key), new), expected) => live
                .map(*map)
                .compare_and_swap(key, expected.as_ref(), new.as_ref())
                .map(Answer::Done),
            Op::Get((map, key)) => live.map(*map).get(key).map(Answer::Value),
        };
        done.map_err(|error| error.to_string())
    }

    fn specify(&self, state: &mut State, op: &Op) -> Answer {
        match op {
            Op::Write(entry) => Answer::Done(set(state, entry)),
            Op::Batch(_, Some((place, value))) if state.get(place) != value.as_ref() => Answer::Done(false),
            Op::Batch(changes, _) => {
                changes.iter().for_each(|entry| _ = set(state, entry));
                Answer::Done(true)
            }
            Op::Swap(entry, expected) if state.get(&entry.0) == expected.as_ref() => {
                set(state, entry);
                Answer::Done(true)
            }
            Op::Swap(..) => Answer::Done(false),
            Op::Get(place) => Answer::Value(state.get(place).cloned()),
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
            let op = Op::Batch(entries(&mut verdict.random), None);
            self.apply(live, &op)?;
            self.specify(&mut state, &op);
        }
        if live.entries().map_err(failed)? != state {
            return Err("after recovery, something is not what a batch has put there".into());
        }
        if verdict.depth == Depth::Deep {
            let check = live.db.check().map_err(failed)?;
            if !check.is_clean() {
                return Err(format!("after recovery and use, the check says {check:?}"));
            }
        }
        Ok(which)
    }

    fn follow_up(&self, _state: &State, in_flight: &[&Op], random: &mut Random) -> Vec<Op> {
        // What a batch in flight had to change is what somebody might look at or change now.
        let touched = in_flight.iter().find_map(|op| match op {
            Op::Batch(changes, _) => changes.first().map(|(place, _)| place.clone()),
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

fn op(random: &mut Random, reads: bool) -> Op {
    match random.below(7) {
        6 => {
            let entry = entry(random);
            let expected = match random.below(3) {
                0 => None,
                _ => self::entry(random).1,
            };
            Op::Swap(entry, expected)
        }
        0 if reads => Op::Get(place(random)),
        0 | 1 => Op::Write(entry(random)),
        2 => Op::Batch(entries(random), Some((place(random), None))),
        _ => Op::Batch(entries(random), None),
    }
}

/// Threads do not read: while a batch is carried out, readers see some of it.
pub fn history(seed: u64, ops: usize, threads: u32) -> History<Op> {
    let mut random = Random(seed);
    History {
        seed,
        ops: (0..ops).map(|_| op(&mut random, threads == 1)).collect(),
        prepared: 0,
        threads,
    }
}
