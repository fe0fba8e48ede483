//! Measures gets of one thread beside another thread that writes at its full pace.
//!
//! Beside immediate writes, a get waits if its key has a write that is not durable yet. The log counts the waits of all
//! threads, and each write waits once: the others are those of gets, but for a few of the database's own threads. To
//! show what these waits cost, the gets are also of a few keys, of which either all are written or none is.

use super::Plan;
use super::ours::Ours;
use super::pairs::Shape;
use super::report::Record;
use super::timed::{measure, repeat_beside};
use crate::Error;
use crate::peers::kept::{Commits, SyncedStore};
use crate::progress::Progress;
use crate::random::Random;
use crate::summary::Summary;
use crate::turns::order;
use std::time::Instant;
use wollemi::{Durability, LogStats};

/// Keys that are written in the cases of few keys.
const FEW: usize = 64;

/// Gets between two clock readings.
const GETS_PER_TURN: usize = 64;

/// The keys that the two threads draw from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keys {
    /// Both draw from all keys.
    All,
    /// The writer draws from [`FEW`] keys, the reader from as many others, whose gets wait for none of its writes.
    Unwritten,
    /// Both draw from the same [`FEW`] keys.
    Written,
}

impl Keys {
    fn name(self) -> &'static str {
        match self {
            Keys::All => "all",
            Keys::Unwritten => "64 not written",
            Keys::Written => "64 written",
        }
    }

    /// The number of keys that are written.
    fn written(self, keys: usize) -> usize {
        if self == Keys::All { keys } else { FEW }
    }

    /// Draws the number of a key to read.
    fn draw(self, random: &mut Random, keys: usize, unwritten: &[u64]) -> u64 {
        match self {
            Keys::All => random.below(keys as u64),
            Keys::Unwritten => unwritten[random.below(unwritten.len() as u64) as usize],
            Keys::Written => random.below(FEW as u64),
        }
    }
}

/// The level and the durability of the writes, and the keys.
struct Case {
    level: &'static str,
    /// `None` at level process.
    durability: Option<Durability>,
    keys: Keys,
}

impl Case {
    const fn new(level: &'static str, durability: Option<Durability>, keys: Keys) -> Case {
        Case {
            level,
            durability,
            keys,
        }
    }
}

const CASES: [Case; 7] = {
    const EVENTUAL: Option<Durability> = Some(Durability::Eventual);
    const IMMEDIATE: Option<Durability> = Some(Durability::Immediate);
    [
        Case::new("process", None, Keys::All),
        Case::new("disk, eventual", EVENTUAL, Keys::All),
        Case::new("disk, immediate", IMMEDIATE, Keys::All),
        Case::new("process", None, Keys::Unwritten),
        Case::new("disk, immediate", IMMEDIATE, Keys::Unwritten),
        Case::new("process", None, Keys::Written),
        Case::new("disk, immediate", IMMEDIATE, Keys::Written),
    ]
};

/// The result of a round.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// Thousands of gets and of writes per second.
    gets: f64,
    writes: f64,
    /// Beside immediate writes.
    waits: Option<Waits>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Waits {
    /// The share of the gets that waited.
    share: f64,
    /// The mean duration of a sync, in microseconds.
    sync_us: f64,
}

impl Waits {
    /// Returns the waits between two statistics of the log, by this many gets and immediate writes.
    fn between(before: &LogStats, after: &LogStats, gets: u64, writes: u64) -> Waits {
        let syncs = (after.syncs - before.syncs).max(1);
        let by_gets = (after.waits - before.waits).saturating_sub(writes);
        Waits {
            share: by_gets as f64 / gets.max(1) as f64,
            sync_us: (after.sync_seconds - before.sync_seconds) * 1e6 / syncs as f64,
        }
    }
}

impl Round {
    /// Returns the microseconds that these gets lost, compared with those of keys that are not written, for each of
    /// them that waited; `None` if no more of them waited.
    fn lost_us_a_wait(&self, unwritten: &Round) -> Option<f64> {
        let more = self.waits?.share - unwritten.waits?.share;
        let lost = 1e3 / self.gets - 1e3 / unwritten.gets;
        (more > 0.0).then_some(lost / more)
    }
}

/// Measures all cases in turn, round by round, with a database of level process and one of level disk.
pub fn run(
    plan: &Plan,
    progress: &Progress,
    shape: Shape,
    [process, disk]: &[Ours; 2],
) -> Result<Vec<Record>, Error> {
    disk.db.set_durability(Durability::Immediate);
    let unwritten = keys_without_waits(disk, shape, FEW, plan.keys)?;
    if unwritten.len() < FEW {
        return Err(Error::Options(
            "--keys is too small for the part `levels`, which reads 64 keys beside 64 that are written",
        ));
    }
    let mut rounds: [Vec<Round>; CASES.len()] = Default::default();
    for round in 0..plan.rounds {
        for number in order(round, CASES.len()) {
            let case = &CASES[number];
            progress.say(format_args!(
                "gets beside a writer, level {}, keys: {}, round {} of {}",
                case.level,
                case.keys.name(),
                round + 1,
                plan.rounds
            ));
            let ours = if case.durability.is_some() { disk } else { process };
            let seed = plan.seed + round as u64;
            rounds[number].push(case.measure(plan, shape, ours, &unwritten, seed)?);
        }
    }
    Ok((0..CASES.len())
        .filter_map(|number| record(number, &rounds))
        .collect())
}

impl Case {
    fn measure(
        &self,
        plan: &Plan,
        shape: Shape,
        ours: &Ours,
        unwritten: &[u64],
        seed: u64,
    ) -> Result<Round, Error> {
        if let Some(durability) = self.durability {
            ours.db.set_durability(durability);
        }
        let (before, begun) = (ours.log(), Instant::now());
        let mut random = Random::new(!seed);
        let write = || {
            shape.draw(&mut random, self.keys.written(plan.keys), 1, |pairs| {
                ours.commit(pairs)
            })
        };
        let get = |random: &mut Random| {
            let number = self.keys.draw(random, plan.keys, unwritten);
            let found = ours.get(&shape.key(number))?;
            shape.check(self.level, number, found.as_deref())
        };
        let (sample, writes) = repeat_beside(write, || {
            measure(1, GETS_PER_TURN, plan.time, seed, |random| {
                (0..GETS_PER_TURN).try_for_each(|_| get(random))
            })
        })?;
        let (after, seconds) = (ours.log(), begun.elapsed().as_secs_f64());
        // Otherwise the writes that are not durable yet would be synced during the next measurement.
        ours.db.sync()?;
        let gets = sample.turns * GETS_PER_TURN as u64;
        let waits = || Waits::between(&before, &after, gets, writes);
        Ok(Round {
            gets: sample.rate,
            writes: writes as f64 / seconds / 1e3,
            waits: (self.durability == Some(Durability::Immediate)).then(waits),
        })
    }
}

/// Returns the numbers of `few` keys, or fewer if there are no more, whose gets wait for no write of the first `few`
/// keys. (A get may wait for the write of another key: keys share stripes, and a reader waits for its stripe's last
/// write.)
fn keys_without_waits(ours: &Ours, shape: Shape, few: usize, keys: usize) -> Result<Vec<u64>, Error> {
    // In a turn they do not wait, so they are not durable yet when the gets come.
    let writes = ours.db.turn();
    shape.all(few, 1, |pairs| ours.commit(pairs))?;
    let mut numbers = Vec::new();
    for number in few as u64..keys as u64 {
        if numbers.len() == few {
            break;
        }
        let get = ours.db.turn();
        ours.get(&shape.key(number))?;
        if ours.db.is_turn_durable() {
            numbers.push(number);
        }
        get.end()?;
    }
    writes.end()?;
    Ok(numbers)
}

/// Makes the record of a case.
fn record(number: usize, rounds: &[Vec<Round>; CASES.len()]) -> Option<Record> {
    let (case, its) = (&CASES[number], &rounds[number]);
    // Pairs each round with the same one of another case.
    let paired = |wanted: &dyn Fn(&Case) -> bool| {
        let other = CASES.iter().position(wanted).filter(|&other| other != number);
        other.map(|other| its.iter().zip(&rounds[other]))
    };
    let process = paired(&|other| other.keys == case.keys && other.durability.is_none());
    let unwritten = paired(&|other| {
        case.keys == Keys::Written && other.keys == Keys::Unwritten && other.durability == case.durability
    });
    let waits = || its.iter().filter_map(|round| round.waits);
    Some(Record::BesideWriter {
        level: case.level,
        keys: case.keys.name(),
        kops: Summary::of(its.iter().map(|round| round.gets))?,
        writer_kops: Summary::of(its.iter().map(|round| round.writes))?,
        to_process: process.and_then(|both| Summary::of(both.map(|(its, process)| its.gets / process.gets))),
        waited_percent: Summary::of(waits().map(|waits| waits.share * 100.0)),
        sync_us: Summary::of(waits().map(|waits| waits.sync_us)),
        lost_us_a_wait: unwritten
            .and_then(|both| Summary::of(both.filter_map(|(its, unwritten)| its.lost_us_a_wait(unwritten)))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use wollemi::Level;

    /// The waits of writes are not counted as those of gets, and what gets lose is divided among those that waited.
    #[test]
    fn waits_explain_lost_time() {
        let mut before = LogStats::default();
        (before.waits, before.syncs, before.sync_seconds) = (10, 10, 1.0);
        let mut after = before.clone();
        (after.waits, after.syncs, after.sync_seconds) = (10 + 500 + 20, 10 + 500, 1.05);
        let waits = Waits::between(&before, &after, 1000, 500);
        assert_eq!(waits.share, 0.02);
        assert!((waits.sync_us - 100.0).abs() < 1e-6, "{waits:?}");
        let round = |gets, share| Round {
            gets,
            writes: 1.0,
            waits: Some(Waits { share, ..waits }),
        };
        // 1 µs a get and 2, of which 2% wait.
        let (unwritten, written) = (round(1000.0, 0.0), round(500.0, 0.02));
        let lost = written.lost_us_a_wait(&unwritten).expect("more waits");
        assert!((lost - 50.0).abs() < 1e-9, "{lost}");
        assert_eq!(unwritten.lost_us_a_wait(&unwritten), None);
    }

    /// No get of the keys found waits for a write of the first ones, though both have stripes in common with many.
    #[test]
    fn gets_of_other_keys_do_not_wait() {
        const KEYS: usize = 2000;
        let directory = tempfile::tempdir().expect("a directory");
        let ours = Ours::open(directory.path(), Level::Disk).expect("a database");
        // No sync but those that are waited for.
        ours.db.set_sync_within(None);
        let shape = Shape::usual(1);
        ours.fill(shape, KEYS).expect("room");
        let few = KEYS / 4;
        let numbers = keys_without_waits(&ours, shape, few, KEYS).expect("no error");
        assert_eq!(numbers.len(), few);
        let turn = ours.db.turn();
        shape.all(few, 1, |pairs| ours.commit(pairs)).expect("room");
        let waits = |number| {
            let get = ours.db.turn();
            ours.get(&shape.key(number)).expect("no error");
            let is_durable = ours.db.is_turn_durable();
            get.end().expect("no error");
            !is_durable
        };
        assert!((0..few as u64).all(waits));
        assert!(!numbers.into_iter().any(waits));
        turn.end().expect("no error");
    }
}
