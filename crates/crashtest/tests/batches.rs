//! Batches of the embedded database survive every crash that is looked at: each is there whole or not at all, over two
//! maps held by different indexes, beside writes of single keys.

use pmem::Pool;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use wollemi::{Db, IndexKind, Map, Options};
use wollemi_crashtest::{
    Crash, Depth, Explorer, History, Mode, Model, Random, Report, Settings, Subject, Verdict,
};

/// A map's number and a key.
type Place = (u8, Vec<u8>);

/// What a key shall hold, or is expected to.
type Entry = (Place, Option<Vec<u8>>);

#[derive(Clone, Debug)]
enum Op {
    /// All of these, if that is there.
    Batch(Vec<Entry>, Option<Entry>),
    /// One key.
    Write(Entry),
    Get(Place),
}

#[derive(Clone, Debug, PartialEq)]
enum Answer {
    /// Whether it was carried out.
    Done(bool),
    Value(Option<Vec<u8>>),
}

type State = BTreeMap<Place, Vec<u8>>;

struct Live {
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

#[derive(Debug, Default)]
struct Batches {
    /// Openings that had a batch to carry out.
    carried_out: AtomicUsize,
}

const NAMES: [(&str, IndexKind); 2] = [("one", IndexKind::Roart), ("two", IndexKind::Part)];

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
        "kv batches".into()
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
        if db.carried_out() > 0 {
            self.carried_out.fetch_add(1, Relaxed);
        }
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
    match random.below(6) {
        0 if reads => Op::Get(place(random)),
        0 | 1 => Op::Write(entry(random)),
        2 => Op::Batch(entries(random), Some((place(random), None))),
        _ => Op::Batch(entries(random), None),
    }
}

/// Threads do not read: while a batch is carried out, readers see some of it.
fn history(seed: u64, ops: usize, threads: u32) -> History<Op> {
    let mut random = Random(seed);
    History {
        seed,
        ops: (0..ops).map(|_| op(&mut random, threads == 1)).collect(),
        prepared: 0,
        threads,
    }
}

fn explore(mode: Mode, histories: impl Iterator<Item = History<Op>>) -> Report {
    let settings = Settings {
        model: Model::from(mode),
        again_share: 40,
        kill_share: 20,
        ..Settings::default()
    };
    let subject = Arc::<Batches>::default();
    let mut explorer = Explorer::new(subject.clone(), settings).expect("memory");
    for history in histories {
        if let Err(failure) = explorer.explore(&history) {
            panic!("{failure}\n{}", explorer.report());
        }
    }
    let report = explorer.into_report();
    let carried_out = subject.carried_out.load(Relaxed);
    println!("{report}\nopenings that carried a batch out: {carried_out}");
    assert!(carried_out > 20, "{carried_out}");
    report
}

/// Whatever a crash leaves, amid a batch, its publication, its making or the making of the root; and crashes amid the
/// opening that carries it out.
#[test]
fn a_batch_is_there_or_not() {
    for (mode, least) in [(Mode::Power, 1000), (Mode::Word, 1000), (Mode::Process, 200)] {
        let report = explore(mode, (0..6).map(|seed| history(seed, 12, 1)));
        assert!(report.states > least, "{report}");
        assert!(report.again > 0, "{report}");
    }
}

/// The same with several threads: no acknowledged write of a single key is undone by a batch that is made once more.
#[test]
fn batches_and_single_writes_come_one_after_the_other() {
    let report = explore(
        Mode::Power,
        (0..8).map(|seed| history(seed, 16, 2 + seed as u32 % 2)),
    );
    assert!(report.states > 300, "{report}");
}
