//! `bench restart`: measures the time from the start of a process to its first answer after a kill, for our indexes and
//! for peers.
//!
//! For each round, size and engine a child process fills a fresh directory and is killed with it open; then a second
//! child opens the directory, looks up one key and reports the answer. The time includes all of that, from the start of
//! the second process. Our pools have the default options, with only the write-backs and fences that their level needs.
//!
//! I1 Each round measures all engines in turn at each size; their order rotates from round to round (`turns`).
//! I2 Cache-miss time is measured before and after each size of a round, and a round in which it changed is marked.
//! I3 After the first answer is timed, the last writes before the kill are read: it is an error if an engine that
//!    promises to keep them has lost one.

use crate::child::{self, Child};
use crate::engine::{Engine, Ours};
use crate::keys::{KeyKind, Keys, nth_u64};
use crate::limit::{Calibrator, Pace};
use crate::machine::Machine;
use crate::peers::Promise;
use crate::progress::Progress;
use crate::store::{self, Place};
use crate::summary::Summary;
use crate::turns::order;
use crate::{Error, pass, peers, records};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use pmem::Hardware;
use serde::Serialize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;
use wollemi::indexes::IndexKind;

/// Restarts engines after a kill.
#[derive(Debug, clap::Args)]
pub struct RestartArgs {
    /// Our indexes and peers [default: the default index and all peers]
    #[arg(long, value_delimiter = ',', value_name = "NAME", value_parser = engine())]
    engine: Vec<&'static str>,
    /// Numbers of keys of eight random bytes
    #[arg(long, value_delimiter = ',', default_value = "10k,100k,1M", value_parser = crate::count)]
    keys: Vec<usize>,
    /// Directory for the engines' files, in a folder that is removed afterwards [default: the system's temporary
    /// directory]
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Number of restarts of each engine
    #[arg(long, default_value_t = 3, value_parser = crate::count)]
    rounds: usize,
    /// The seed of the keys
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
    /// In the child process: its role, the engine, the directory and the number of keys.
    #[arg(long, hide = true, num_args = 4)]
    role: Option<Vec<String>>,
}

const FILL: &str = "fill";
const FILLED: &str = "filled";
const ANSWERED: &str = "answered";

/// The restarts of one engine at one size.
#[derive(Debug, Serialize)]
struct Report {
    engine: &'static str,
    setting: &'static str,
    keys: usize,
    rounds: usize,
    /// From the start of the process to its first answer.
    first_get_ms: Summary,
    /// Cache-miss time before and after each round's restarts at this size, in a file beside the engines'.
    pace: Vec<Pace>,
    machine: Machine,
}

impl Report {
    /// Creates the report of the rounds' times; `None` if there are none.
    fn new(engine: &'static str, keys: usize, times: &[f64], pace: &[Pace]) -> Option<Report> {
        Some(Report {
            engine,
            setting: peer(engine).map_or(OURS, |peer| peer.setting),
            keys,
            rounds: times.len(),
            first_get_ms: Summary::of(times.iter().copied())?,
            pace: pace.to_vec(),
            machine: Machine::detect(),
        })
    }
}

const OURS: &str = "as an ordinary pool: survives a kill (at level process without write-backs and fences)";

/// Fills, kills and restarts the engines, then prints a line for each engine and size.
pub fn run(args: &RestartArgs) -> Result<(), Error> {
    if let Some([role, engine, directory, keys]) = args.role.as_deref() {
        let keys = keys
            .parse()
            .map_err(|_| Error::Wrong("--role has no valid number of keys".into()))?;
        return run_child(args, role, engine, Path::new(directory), keys);
    }
    let progress = Progress::new();
    let engines = match &*args.engine {
        [] => default_engines(),
        some => some.to_vec(),
    };
    let mut times = vec![vec![Vec::with_capacity(args.rounds); engines.len()]; args.keys.len()];
    let mut paces = vec![Vec::with_capacity(args.rounds); args.keys.len()];
    let mut reports = Vec::new();
    for round in 0..args.rounds {
        for (size, &keys) in args.keys.iter().enumerate() {
            let beside = crate::directory(args.dir.as_deref())?;
            let place = Place::File(beside.path().join("pool"));
            let mut calibrator = Calibrator::for_keys(keys, &place, true)?;
            let misses = calibrator.misses()?;
            for i in order(round, engines.len()) {
                let engine = engines[i];
                progress.say(format_args!(
                    "{engine}, {keys} keys, round {} of {}",
                    round + 1,
                    args.rounds
                ));
                times[size][i].push(restart(args, engine, keys)?);
            }
            paces[size].push(calibrator.since(misses)?);
            if round + 1 < args.rounds {
                continue;
            }
            // The last round completes the results of this size.
            for (engine, times) in engines.iter().zip(&times[size]) {
                let Some(report) = Report::new(engine, keys, times, &paces[size]) else {
                    continue;
                };
                reports.push(report);
            }
        }
    }
    drop(progress);
    records::print(args.json, &reports)
}

/// Returns the persistent peer of this name.
fn peer(name: &str) -> Option<&'static peers::Durable> {
    peers::DURABLE.iter().find(|peer| peer.name == name)
}

/// Returns the default index and every persistent peer.
pub fn default_engines() -> Vec<&'static str> {
    let peers = peers::DURABLE.iter().map(|peer| peer.name);
    std::iter::once(IndexKind::default().name())
        .chain(peers)
        .collect()
}

/// Parses the name of an index or a peer.
fn engine() -> impl TypedValueParser<Value = &'static str> {
    let ours = IndexKind::ALL.iter().map(|index| index.name());
    let all: Vec<_> = ours.chain(peers::DURABLE.iter().map(|peer| peer.name)).collect();
    PossibleValuesParser::new(all.clone()).try_map(move |name| {
        let found = all.iter().find(|one| **one == name);
        found
            .copied()
            .ok_or_else(|| format!("no engine is called '{name}'"))
    })
}

/// Fills, kills and restarts an engine in a fresh directory. Returns the milliseconds from the second process's start
/// to its answer.
fn restart(args: &RestartArgs, engine: &str, keys: usize) -> Result<f64, Error> {
    let directory = crate::directory(args.dir.as_deref())?;
    let role = |role: &str| {
        let place = directory.path().as_os_str().to_owned();
        [
            "--role".into(),
            role.into(),
            engine.into(),
            place,
            keys.to_string().into(),
        ]
    };
    Child::start(role(FILL), FILLED)?.kill()?;
    let start = Instant::now();
    let child = Child::start(role("ask"), ANSWERED)?;
    let ms = start.elapsed().as_secs_f64() * 1e3;
    child.end()?;
    Ok(ms)
}

/// Runs the child process, for any engine.
fn run_child(
    args: &RestartArgs,
    role: &str,
    engine: &str,
    directory: &Path,
    keys: usize,
) -> Result<(), Error> {
    let fill = role == FILL;
    if let Ok(index) = engine.parse::<IndexKind>() {
        let (place, media) = (Place::File(directory.join("pool")), Hardware::detect());
        let heap = if fill {
            place.create(media)?
        } else {
            place.open(media, 1)?
        };
        let index = if fill {
            store::create(index, &heap)?
        } else {
            store::open(index, &heap)?
        };
        return fill_or_ask(args, fill, &Ours(&*index), true, keys);
    }
    let peer = peer(engine).ok_or_else(|| Error::Wrong(format!("no engine is called '{engine}'")))?;
    fill_or_ask(
        args,
        fill,
        &*(peer.open)(directory, Promise::Kill)?,
        peer.survives_kill,
        keys,
    )
}

/// Fills the engine, or reads from it, and waits until the parent kills this process or closes its standard input.
fn fill_or_ask(
    args: &RestartArgs,
    fill: bool,
    engine: &dyn Engine,
    survives: bool,
    keys: usize,
) -> Result<(), Error> {
    let expected = Expected {
        keys: keys as u64,
        seed: args.seed,
    };
    if fill {
        pass::load(engine, Keys::generate(KeyKind::U64, keys, args.seed).all(), 1)?;
        engine.settle()?;
        expected.change(engine)?;
        child::ready(FILLED)?;
    } else {
        expected.ask(engine, keys as u64 / 2, survives)?;
        child::ready(ANSWERED)?;
        expected.check(engine, survives)?;
    }
    child::wait_for_end()
}

/// The expected content: key number `i` with the value `i`, except for the keys changed just before the kill.
struct Expected {
    keys: u64,
    seed: u64,
}

impl Expected {
    /// Returns the numbers of the keys changed last.
    fn changed(&self) -> Range<u64> {
        0..self.keys.min(100)
    }

    /// Changes those keys to values that no key was loaded with.
    fn change(&self, engine: &dyn Engine) -> Result<(), Error> {
        for number in self.changed() {
            if !engine.update(&nth_u64(self.seed, number), number + self.keys)? {
                return Err(Error::Wrong(format!(
                    "key {number} is missing and cannot be updated"
                )));
            }
        }
        Ok(())
    }

    /// Looks up one key. An engine that may lose its last writes may return an earlier value.
    fn ask(&self, engine: &dyn Engine, number: u64, survives: bool) -> Result<(), Error> {
        let found = engine.get(&nth_u64(self.seed, number))?;
        let changed = self.changed().contains(&number);
        let last = number + if changed { self.keys } else { 0 };
        if found == Some(last) || !survives && found == Some(number) {
            return Ok(());
        }
        Err(Error::Wrong(format!(
            "after the kill key {number} has the value {found:?}"
        )))
    }

    /// Looks up all changed keys and the key loaded last.
    fn check(&self, engine: &dyn Engine, survives: bool) -> Result<(), Error> {
        let last = self.keys.saturating_sub(1);
        let mut asked = self.changed().chain([last]);
        asked.try_for_each(|number| self.ask(engine, number, survives))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lost key is always found, and a lost change unless the engine may lose it.
    #[test]
    fn losses_are_found() {
        let expected = Expected { keys: 300, seed: 7 };
        let loaded = |keys: u64| {
            let (_, engine) = peers::in_memory(KeyKind::U64).remove(2);
            for number in 0..keys {
                engine.insert(&nth_u64(expected.seed, number), number).unwrap();
            }
            engine
        };
        let engine = loaded(300);
        assert!(expected.check(&*engine, true).is_err());
        expected.check(&*engine, false).unwrap();
        expected.change(&*engine).unwrap();
        expected.check(&*engine, true).unwrap();
        // One change is undone.
        engine.update(&nth_u64(expected.seed, 99), 99).unwrap();
        assert!(expected.check(&*engine, true).is_err());
        // The last key was never inserted.
        let engine = loaded(299);
        expected.change(&*engine).unwrap();
        assert!(expected.check(&*engine, true).is_err() && expected.check(&*engine, false).is_err());
        expected.ask(&*engine, 298, true).unwrap();
    }
}
