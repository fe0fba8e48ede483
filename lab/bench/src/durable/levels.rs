//! Measures the cost of level `disk`, beside level `process`, where no write waits for the disk: eventual writes, and
//! gets, each alone. Gets beside a writer are measured in `beside`, with the same databases.

use super::Plan;
use super::beside;
use super::ours::Ours;
use super::pairs::Shape;
use super::report::Record;
use super::timed::{Sample, measure};
use crate::Error;
use crate::peers::kept::{Commits, SyncedStore};
use crate::progress::Progress;
use crate::summary::Summary;
use crate::turns::order;
use std::collections::BTreeMap;
use wollemi::{Durability, Level};

const LEVELS: [(&str, Level); 2] = [("process", Level::Process), ("disk, eventual", Level::Disk)];

/// Operations between two clock readings.
const OPS_PER_TURN: usize = 64;

const OPERATIONS: [&str; 2] = ["upsert", "get"];

/// Measures both levels.
pub fn run(plan: &Plan, progress: &Progress) -> Result<Vec<Record>, Error> {
    let shape = Shape::usual(plan.seed);
    let open = |(name, level)| {
        progress.say(format_args!("filling level {name}"));
        let ours = Ours::open(&plan.place(&format!("level {name}"))?, level)?;
        ours.fill(shape, plan.keys)?;
        ours.db.set_durability(Durability::Eventual);
        Ok::<_, Error>(ours)
    };
    let [process, disk] = LEVELS;
    let sides = [open(process)?, open(disk)?];
    let mut records = alone(plan, progress, shape, &sides)?;
    records.extend(beside::run(plan, progress, shape, &sides)?);
    Ok(records)
}

/// Measures both levels in turn, round by round, one operation at a time.
fn alone(plan: &Plan, progress: &Progress, shape: Shape, sides: &[Ours; 2]) -> Result<Vec<Record>, Error> {
    let mut rounds: BTreeMap<(usize, usize), Vec<Sample>> = BTreeMap::new();
    for round in 0..plan.rounds {
        for (operation, name) in OPERATIONS.into_iter().enumerate() {
            for side in order(round, sides.len()) {
                let level = LEVELS[side].0;
                progress.say(format_args!(
                    "{name}, level {level}, round {} of {}",
                    round + 1,
                    plan.rounds
                ));
                let ours = &sides[side];
                let sample = measure(1, OPS_PER_TURN, plan.time, plan.seed + round as u64, |random| {
                    (0..OPS_PER_TURN).try_for_each(|_| match operation {
                        0 => shape.draw(random, plan.keys, 1, |pairs| ours.commit(pairs)),
                        _ => {
                            let number = random.below(plan.keys as u64);
                            let found = ours.get(&shape.key(number))?;
                            shape.check(level, number, found.as_deref())
                        }
                    })
                })?;
                // Otherwise the writes that are not durable yet would be synced during the next measurement.
                ours.db.sync()?;
                rounds.entry((operation, side)).or_default().push(sample);
            }
        }
    }
    let records = rounds.iter().filter_map(|(&(operation, side), samples)| {
        let process = rounds.get(&(operation, 0)).filter(|_| side > 0);
        let ratio = process.and_then(|process| {
            let both = process.iter().zip(samples);
            Summary::of(both.map(|(process, its)| its.rate / process.rate))
        });
        Some(Record::Level {
            operation: OPERATIONS[operation],
            level: LEVELS[side].0,
            kops: Summary::of(samples.iter().map(|sample| sample.rate))?,
            to_process: ratio,
        })
    });
    Ok(records.collect())
}
