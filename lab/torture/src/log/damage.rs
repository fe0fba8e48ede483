//! Damaged bits, lengths and files: opening returns a clear error or the right data, never a wrong record.

use super::truth::{BEGIN, Content, ID, LONGEST, Trouble, Truth, Written, options};
use crashkit::Random;
use crashkit::disk::{CrashDisk, Medium};
use log::{Error, Log, Needs};
use std::sync::Arc;

/// The damage done, and the outcomes.
#[derive(Clone, Copy, Debug, Default)]
pub struct Damaged {
    /// Mutations: a file was changed, or two were exchanged.
    pub mutations: u64,
    /// Mutations after which opening returned an error.
    pub refused: u64,
    /// Mutations after which opening succeeded with the whole content.
    pub whole: u64,
}

/// Damages cleanly closed logs at random, and opens them.
///
/// # Errors
///
/// A record that is missing or wrong, with the mutation that caused it.
pub fn damage(seed: u64, mutations: u64) -> Result<Damaged, String> {
    let mut random = Random(seed);
    let mut report = Damaged::default();
    while report.mutations < mutations {
        let (medium, truth) = log_of(&mut random).map_err(|trouble| trouble.to_string())?;
        for _ in 0..500.min(mutations - report.mutations) {
            report.mutations += 1;
            let (damaged, how) = mutate(&medium, &medium.names(), &mut random);
            match judge(damaged, &truth, &mut random) {
                Ok(true) => report.whole += 1,
                Ok(false) => report.refused += 1,
                Err(what) => {
                    return Err(format!(
                        "seed {seed}, mutation {}: {how}: {what}",
                        report.mutations
                    ));
                }
            }
        }
    }
    Ok(report)
}

/// Writes and syncs a log of several segments with spares, and closes it.
fn log_of(random: &mut Random) -> Result<(Medium, Truth), Trouble> {
    let disk = CrashDisk::new(Medium::new());
    let log = Log::create(Arc::new(disk.clone()), ID, options())?;
    let mut truth = Truth {
        exists: true,
        ..Truth::nothing()
    };
    for number in 0..10 + random.below(30) {
        let max = *random.pick(&[20, 200, 600, 3000, LONGEST as u64 / 2]);
        let content = Content {
            number,
            len: random.below(max) as usize,
        };
        let end = match content.with(|changes| log.append(changes)) {
            Ok(end) => end,
            Err(Error::LogFull { .. }) => break,
            Err(error) => return Err(error.into()),
        };
        if random.below(4) == 0 {
            log.sync()?;
        }
        truth.records.push(Written {
            content,
            end,
            begun: 0,
            done: 0,
        });
    }
    log.sync()?;
    if random.below(2) == 0 {
        let gone = random.below(truth.records.len() as u64) as usize;
        truth.keep = gone.checked_sub(1).map_or(BEGIN, |last| truth.records[last].end);
        truth.records.drain(..gone);
        log.drop_below(truth.keep)?;
    }
    truth.durable = truth.records.len();
    truth.there = truth.records.len();
    Ok((disk.medium(), truth))
}

/// Changes one of the named files, or exchanges two. Returns the result and a description.
pub fn mutate(medium: &Medium, names: &[String], random: &mut Random) -> (Medium, String) {
    let mut damaged = medium.clone();
    let name = random.pick(names);
    let mut bytes = medium.contents(name).unwrap_or_default();
    let at = random.below(bytes.len() as u64) as usize;
    let how = match random.below(8) {
        0..4 => {
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            format!("bit {bit} of byte {at} of {name}")
        }
        4 => {
            bytes.truncate(at);
            format!("{name} is {at} bytes long")
        }
        5 => {
            let at = at / 512 * 512;
            let noise = random.below(2) == 0;
            let end = bytes.len().min(at + 512);
            for byte in &mut bytes[at..end] {
                *byte = if noise { random.next() as u8 } else { 0 };
            }
            format!(
                "the sector at {at} of {name} is {}",
                if noise { "noise" } else { "zeros" }
            )
        }
        6 => {
            bytes.resize(bytes.len() + 1 + at, 0);
            format!("{name} is {} bytes long", bytes.len())
        }
        _ => {
            let other = random.pick(names);
            let others = medium.contents(other).unwrap_or_default();
            damaged.put(other, &bytes);
            bytes = others;
            format!("{name} and {other} are exchanged")
        }
    };
    damaged.put(name, &bytes);
    (damaged, how)
}

/// Opens the log as a caller that knows its end. Returns whether it opened, with all its records.
fn judge(medium: Medium, truth: &Truth, random: &mut Random) -> Result<bool, String> {
    let all = truth.records.len();
    let check = truth.end(random.below(all as u64 + 1) as usize);
    let needs = Needs {
        keep: truth.keep,
        check,
        reach: truth.end(all),
        durable: truth.end(all),
    };
    let Ok(log) = Log::open(Arc::new(CrashDisk::new(medium)), ID, needs, options()) else {
        return Ok(false);
    };
    match truth.compare(&log) {
        Ok(found) if found == all => Ok(true),
        Ok(found) => Err(format!("found {found} records, expected {all}")),
        // Damage below `check` shows only when the records are read.
        Err(Trouble::Refused(_)) => Ok(false),
        Err(Trouble::Wrong(what)) => Err(what),
    }
}
