//! Measures the cost of checkpoints: writes beside one, and write amplification.

use super::Plan;
use super::ours::Ours;
use super::pairs::Shape;
use super::report::Record;
use super::timed::{Sample, measure, repeat_beside};
use crate::Error;
use crate::peers::kept::Commits;
use crate::progress::Progress;
use crate::summary::Summary;
use crate::turns::order;
use std::time::Instant;
use wollemi::{Durability, Level};

/// Numbers of threads that write beside a checkpoint.
const THREADS: [usize; 2] = [1, 8];

/// Rounds of the steady load, each with as many writes as there are keys.
const STEADY_ROUNDS: usize = 16;

/// Measures writes beside checkpoints, and write amplification.
pub fn run(plan: &Plan, progress: &Progress) -> Result<Vec<Record>, Error> {
    let shape = Shape::usual(plan.seed);
    let place = plan.place("upkeep")?;
    let ours = Ours::open(&place, Level::Disk)?;
    progress.say("filling wollemi");
    ours.fill(shape, plan.keys)?;
    let mut records = Vec::new();
    for threads in THREADS {
        records.extend(beside(plan, progress, shape, &ours, threads)?);
    }
    records.push(steady(plan, progress, shape, &ours)?);
    Ok(records)
}

/// Measures immediate writes, without and beside consecutive full checkpoints.
fn beside(
    plan: &Plan,
    progress: &Progress,
    shape: Shape,
    ours: &Ours,
    threads: usize,
) -> Result<Option<Record>, Error> {
    let (mut rounds, mut checkpoints) = ([Vec::new(), Vec::new()], 0);
    for round in 0..plan.rounds {
        for side in order(round, 2) {
            let beside = ["without", "beside"][side];
            progress.say(format_args!(
                "{threads} writers {beside} checkpoints, round {} of {}",
                round + 1,
                plan.rounds
            ));
            let before = ours.log().checkpoints;
            let write = || {
                measure(threads, 1, plan.time, plan.seed + round as u64, |random| {
                    shape.draw(random, plan.keys, 1, |pairs| ours.commit(pairs))
                })
            };
            let sample = if side == 0 {
                write()?
            } else {
                let checkpoint = || {
                    ours.db.checkpoint(true)?;
                    Ok(())
                };
                repeat_beside(checkpoint, write)?.0
            };
            if side == 1 {
                checkpoints += ours.log().checkpoints - before;
            }
            rounds[side].push(sample);
        }
    }
    let [without, beside] = &rounds;
    let of = |samples: &[Sample], figure: fn(&Sample) -> f64| Summary::of(samples.iter().map(figure));
    let ratio = |figure: fn(&Sample) -> f64| {
        let both = without.iter().zip(beside);
        Summary::of(both.map(|(without, beside)| figure(beside) / figure(without)))
    };
    let record = || {
        Some(Record::Checkpoint {
            threads,
            checkpoints,
            krps_without: of(without, |sample| sample.rate)?,
            krps_beside: of(beside, |sample| sample.rate)?,
            ratio: ratio(|sample| sample.rate)?,
            p50_us_beside: of(beside, |sample| sample.p50_us)?,
            p99_us_without: of(without, |sample| sample.p99_us)?,
            p99_us_beside: of(beside, |sample| sample.p99_us)?,
            p99_ratio: ratio(|sample| sample.p99_us)?,
        })
    };
    Ok(record())
}

/// Measures eventual writes of random keys, with checkpoints when they are due.
fn steady(plan: &Plan, progress: &Progress, shape: Shape, ours: &Ours) -> Result<Record, Error> {
    ours.db.checkpoint(true)?;
    ours.db.set_durability(Durability::Eventual);
    let device = Device::under(&plan.directory);
    let (before, written, begun) = (ours.log(), device.written(), Instant::now());
    let mut random = crate::random::Random::new(plan.seed);
    let mut pairs = 0;
    for round in 0..STEADY_ROUNDS {
        progress.say(format_args!("steady load, {} of {STEADY_ROUNDS}", round + 1));
        for _ in 0..plan.keys {
            shape.draw(&mut random, plan.keys, 1, |pairs| ours.commit(pairs))?;
            pairs += 1;
        }
    }
    ours.db.sync()?;
    let (after, seconds) = (ours.log(), begun.elapsed().as_secs_f64());
    ours.db.set_durability(Durability::Immediate);
    let given = (pairs * (shape.key + shape.value)) as f64;
    let (log, checkpoints) = (
        after.bytes - before.bytes,
        after.checkpoint_bytes - before.checkpoint_bytes,
    );
    Ok(Record::Amplification {
        pairs,
        krps: pairs as f64 / seconds / 1e3,
        checkpoints: after.checkpoints - before.checkpoints,
        log: log as f64 / given,
        checkpoint: checkpoints as f64 / given,
        both: (log + checkpoints) as f64 / given,
        device: device
            .written()
            .zip(written)
            .map(|(after, before)| (after - before) as f64 / given),
    })
}

/// The disk that holds a directory: its statistics file, if known.
struct Device(Option<std::path::PathBuf>);

impl Device {
    fn under(directory: &std::path::Path) -> Device {
        let number = rustix::fs::stat(directory).ok().map(|stat| stat.st_dev);
        Device(number.map(|number| {
            let (major, minor) = (rustix::fs::major(number), rustix::fs::minor(number));
            format!("/sys/dev/block/{major}:{minor}/stat").into()
        }))
    }

    /// Returns the bytes that the disk has written, for any process, if the system reports them.
    fn written(&self) -> Option<u64> {
        let stat = std::fs::read_to_string(self.0.as_ref()?).ok()?;
        let sectors: u64 = stat.split_whitespace().nth(6)?.parse().ok()?;
        Some(sectors * 512)
    }
}
