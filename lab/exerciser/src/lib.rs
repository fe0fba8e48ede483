//! A seeded program that calls the whole database as its users do, from several threads, and checks every answer.
//!
//! Each thread owns keys, so it knows what they hold although others write beside it. It compares every read, scan,
//! snapshot, watch and backup with that knowledge. Rounds begin by opening the pool with other options, so that all
//! calls meet recovery, and end by closing, copying or restoring the pool, or by `kill -9` of the process. Half of the
//! pools are moved to level `disk` and back. After some of the kills a stop of the machine is simulated too. After each
//! round that does not end by a kill, the exerciser compares the maps' whole content and checks the pool.
//!
//! | file | idea |
//! |---|---|
//! | `keys` | the keys that a thread owns |
//! | `truth` | a thread's knowledge of them |
//! | `op` | the calls, drawn at random, and their changes |
//! | `slots` | the maps that a call uses |
//! | `worker` | makes calls, compares their answers |
//! | `api` | the functions that each call uses |
//! | `round` | opening, threads, comparison, end, and losses of power |
//! | `ledger` | the calls that a killed process has acknowledged |
//! | `power` | losses of power |
//! | `hot` | the opposite of owned keys: threads contend for few keys, and histories across kills are judged |
//! | `openings` | short rounds over large maps, each an opening whose recovery meets every kind of call |
//! | `server` | the same for the server, over its protocols |
//!
//! The calls of a thread are a function of the seed and of the content of its own keys. The interleaving of threads
//! depends on the machine: a seed that has failed is likely to fail again, but need not.

// Only mapped ledgers need unsafe code (`hot::mapped`).
#![deny(unsafe_code)]

mod api;
mod calls;
mod hot;
mod keys;
mod ledger;
mod op;
mod openings;
mod power;
mod random;
mod round;
mod server;
mod slots;
mod truth;
mod worker;

pub use crate::calls::Calls;
pub use crate::hot::look as look_at_hot_keys;
use crate::random::Random;
use crate::round::{End, Exercise};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use wollemi::{Durability, IndexKind};

/// Maximum number of threads.
pub const MAX_THREADS: usize = keys::MAX_THREADS;

/// Settings of a run: what to exercise, and for how long.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Seed of the first pool; it determines all random choices. Each further pool uses the next number.
    pub seed: u64,
    /// Number of threads, at most [`MAX_THREADS`]; 0 draws one to four for each pool.
    pub threads: usize,
    /// The indexes that hold the maps.
    pub kinds: Vec<IndexKind>,
    /// No further round begins after this time.
    pub budget: Duration,
    /// No further round begins after this number of calls.
    pub calls: u64,
    /// Directory of the pools. The run removes them, except a pool that fails.
    pub directory: PathBuf,
    /// Makes the command that runs [`be_killed`] with the given text, for rounds that end by a kill. `None`: no round
    /// ends by a kill.
    pub child: Option<fn(&str) -> Command>,
    /// The program whose `serve` is exercised over its protocols, instead of the database in this process. `threads`
    /// is then the number of users, at most `MAX_THREADS - 1`, and `child` is unused.
    pub server: Option<PathBuf>,
    /// Exercises only openings of large maps: drops, recovery, returned pages, merges, checks and writes at once.
    /// `threads` is then the number of threads that share these acts; 0 gives each act a thread of its own.
    pub openings: bool,
    /// Exercises threads that contend for few hostile keys, in processes that are killed. Requires `child`. 0 `threads`
    /// draws two to six, and `budget` and `calls` are looked at only after a whole pool.
    pub hot: bool,
}

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// Calls whose answers were compared.
    pub calls: u64,
    /// Calls among them that were refused: no room, a map in use, or a conflict.
    pub refused: u64,
    /// Pools created.
    pub pools: u64,
    /// Openings of pools.
    pub openings: u64,
    /// Processes killed.
    pub kills: u64,
    /// Time taken, in seconds.
    pub seconds: f64,
    /// Answered calls of each function, or of each command of the server.
    pub called: Calls,
    /// Calls of the maps of each index, by the index's name. A call of several maps counts once for each of their
    /// indexes; a call of the database as a whole counts for none.
    pub indexes: Calls,
}

/// A wrong answer, or a damaged pool.
#[derive(Debug, thiserror::Error)]
#[error("seed {seed}, round {round}, pool '{}': {what}", pool.display())]
pub struct Failure {
    /// Seed of the pool: a run with this seed begins with this pool.
    pub seed: u64,
    /// Number of the round; with hot keys, of the generation.
    pub round: u64,
    /// Path of the pool, which is kept as it was at the failure.
    pub pool: PathBuf,
    /// What is wrong.
    pub what: String,
}

/// Exercises pool after pool until the time or the number of calls is used up. Calls `progress` after each round, or
/// with hot keys after each pool.
///
/// # Errors
///
/// The first failure.
pub fn run(settings: &Settings, mut progress: impl FnMut(&Report)) -> Result<Report, Failure> {
    if let Some(program) = &settings.server {
        return server::run(settings, program, progress);
    }
    if settings.openings {
        return openings::run(settings, progress);
    }
    if settings.hot {
        return hot::run(settings, progress);
    }
    let started = Instant::now();
    let mut report = Report::default();
    let is_within_budget =
        |report: &Report| report.calls < settings.calls && started.elapsed() < settings.budget;
    for seed in settings.seed.. {
        let mut exercise = exercise(seed, settings.threads, &settings.kinds, &settings.directory);
        let failure = |round, what| Failure {
            seed,
            round,
            pool: exercise_pool(&settings.directory),
            what,
        };
        remove(&settings.directory);
        exercise.create().map_err(|what| failure(0, what))?;
        report.pools += 1;
        let random = &mut Random::new(seed, 4 << 32);
        let rounds = 3 + random.below(12);
        for round in 1..=rounds {
            let kill = settings
                .child
                .filter(|_| random.one_in(3) && round < rounds && exercise.is_settled());
            let calls = match (exercise.plan.openings, exercise.plan.durability) {
                (true, _) => random.pick(&[200, 1000]),
                // Most writes wait for the disk.
                (false, Some(Durability::Immediate)) => random.pick(&[50, 1000, 10_000]),
                (false, _) => random.pick(&[50, 1000, 10_000, 300_000]),
            };
            let end = random.pick(&[End::Close, End::Close, End::WithoutLog, End::Copy, End::Restore]);
            let done = match kill {
                Some(child) => {
                    report.kills += 1;
                    let patience = Duration::from_micros(random.pick(&[3_000, 30_000, 300_000]));
                    let patience = patience.mul_f64(random.below(1000) as f64 / 500.0);
                    let spec = spec(seed, round, settings);
                    exercise.killed(round, patience, child(&spec))
                }
                None => exercise.round(round, calls, end),
            };
            let done = done.map_err(|what| failure(round, what))?;
            report.openings += 1;
            report.calls += done.calls;
            report.refused += done.refused;
            report.called.join(&done.called);
            report.indexes.join(&done.indexes);
            report.seconds = started.elapsed().as_secs_f64();
            progress(&report);
            if !is_within_budget(&report) {
                remove(&settings.directory);
                return Ok(report);
            }
        }
    }
    Ok(report)
}

fn exercise(seed: u64, threads: usize, kinds: &[IndexKind], directory: &Path) -> Exercise {
    let threads = match threads {
        0 => 1 + Random::new(seed, 5 << 32).index(4),
        threads => threads.min(MAX_THREADS),
    };
    Exercise::new(seed, threads, kinds, directory)
}

fn exercise_pool(directory: &Path) -> PathBuf {
    directory.join("exercise.pool")
}

/// Removes the files of earlier rounds.
fn remove(directory: &Path) {
    for name in ["exercise.pool", "exercise.other", "exercise.checked"] {
        round::remove_pool(&directory.join(name));
    }
    // It may not exist.
    let _ = std::fs::remove_file(directory.join("exercise.truth"));
    ledger::Written::remove(directory, MAX_THREADS);
}

/// Describes a round as text, for the process that is to be killed. [`be_killed`] parses it.
fn spec(seed: u64, round: u64, settings: &Settings) -> String {
    let kinds: Vec<_> = settings.kinds.iter().map(|kind| kind.name()).collect();
    let directory = settings.directory.display();
    format!(
        "{seed} {round} {} {} {directory}",
        settings.threads,
        kinds.join(",")
    )
}

/// Runs the round that `spec` describes until the process is killed. A process that [`Settings::child`] starts calls
/// this.
///
/// # Errors
///
/// A wrong answer, or a malformed `spec`.
pub fn be_killed(spec: &str) -> Result<(), String> {
    if let Some((openings::SPEC, spec)) = spec.split_once(' ') {
        return openings::be_killed(spec);
    }
    if let Some((hot::SPEC, spec)) = spec.split_once(' ') {
        return hot::be_killed(spec);
    }
    let mut words = spec.splitn(5, ' ');
    let mut word = || words.next().ok_or_else(|| format!("not a round: '{spec}'"));
    let number = |word: &str| word.parse::<u64>().map_err(|error| format!("{word}: {error}"));
    let (seed, round, threads) = (number(word()?)?, number(word()?)?, number(word()?)?);
    let kinds: Result<Vec<IndexKind>, _> = word()?.split(',').map(str::parse).collect();
    let kinds = kinds.map_err(|error| error.to_string())?;
    let directory = Path::new(word()?);
    exercise(seed, threads as usize, &kinds, directory).be_killed(round)
}
