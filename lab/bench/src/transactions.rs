//! `bench transactions`: measures small transactions over two maps, ours beside peers.
//!
//! A transaction reads a key of one map and a key of another, and writes both: it moves one unit from the first value
//! to the second.
//!
//! I1 All engines run the same transactions in the same loop: the same number of threads, the same keys in the same
//!    order, commits that survive `kill -9` and do not wait for the disk. A thread that meets a conflict retries the
//!    transaction until it commits; only commits count.
//! I2 Each round measures all engines in turn, and the engines take turns in going first (`turns`). Ratios are formed
//!    within a round; their median and extremes over the rounds are reported.
//! I3 After each measurement the sums of both maps must match the committed transactions: a lost update, or half a
//!    transaction, is an error.
//! I4 Cache-miss time is measured before and after each round, and a round in which it changed is marked.
//!
//! Not here: the peers (`peers::transactional`), ours (`ours`), the loop (`measure`), the output (`report`).

mod measure;
mod ours;
mod report;

use crate::Error;
use crate::distribution::Distribution;
use crate::keys::nth_u64;
use crate::limit::{Calibrator, Pace};
use crate::peers::transactional::{Ledger, TRANSACTIONAL};
use crate::progress::Progress;
use crate::store::Place;
use crate::turns::order;
use measure::{Sample, Scripts, measure};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wollemi::indexes::IndexKind;

/// Measures transactions over two maps.
#[derive(Debug, clap::Args)]
pub struct TransactionsArgs {
    /// Index of both of our maps
    #[arg(long, default_value_t, value_name = "NAME", value_parser = crate::index())]
    index: IndexKind,
    /// Keys of eight random bytes in each map
    #[arg(long, default_value = "100k", value_parser = crate::count)]
    keys: usize,
    /// Numbers of threads that run transactions
    #[arg(long, value_delimiter = ',', default_value = "1,2,8", value_parser = crate::threads)]
    threads: Vec<usize>,
    /// Distributions of requested keys
    #[arg(long, value_enum, value_delimiter = ',', default_value = "uniform,zipfian")]
    distribution: Vec<Distribution>,
    /// Seconds of each measurement
    #[arg(long, default_value_t = 1.0, value_parser = crate::seconds)]
    seconds: f64,
    /// Rounds
    #[arg(long, default_value_t = 5, value_parser = crate::count)]
    rounds: usize,
    /// Directory for the engines' files, in a folder that is removed afterwards [default: the system's temporary
    /// directory]
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// The seed of the keys and of their order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
}

/// An engine and its name.
type Named = (&'static str, Box<dyn Ledger>);

/// The samples of one engine, number of threads and distribution of keys, one per round.
struct Case {
    engine: &'static str,
    distribution: Distribution,
    threads: usize,
    rounds: Vec<Sample>,
}

/// Runs the rounds and prints their results.
pub fn run(args: &TransactionsArgs) -> Result<(), Error> {
    let progress = Progress::new();
    let keys: Vec<[u8; 8]> = (0..args.keys as u64).map(|i| nth_u64(args.seed, i)).collect();
    let mut cases: Vec<Case> = Vec::new();
    let mut paces = Vec::new();
    for round in 0..args.rounds {
        progress.say(format_args!("round {} of {}", round + 1, args.rounds));
        paces.push(run_round(args, round, &keys, &mut cases)?);
    }
    drop(progress);
    report::print(args, &cases, &paces)
}

/// Loads every engine afresh and measures it in all cases.
fn run_round(
    args: &TransactionsArgs,
    round: usize,
    keys: &[[u8; 8]],
    cases: &mut Vec<Case>,
) -> Result<Pace, Error> {
    let directory = crate::directory(args.dir.as_deref())?;
    let engines = engines(args, directory.path())?;
    for (_, engine) in &engines {
        engine.load(keys)?;
    }
    let beside = Place::File(directory.path().join("beside"));
    let mut calibrator = Calibrator::for_keys(args.keys, &beside, true)?;
    let misses = calibrator.misses()?;
    let time = Duration::from_secs_f64(args.seconds);
    for &distribution in &args.distribution {
        for &threads in &args.threads {
            let seed = args.seed.wrapping_add(round as u64);
            let scripts = Scripts::new(distribution, args.keys, threads, seed);
            for turn in order(round, engines.len()) {
                let (engine, ledger) = &engines[turn];
                let sample = measure(engine, &**ledger, keys, &scripts, time)?;
                let is = |case: &&mut Case| {
                    (case.engine, case.distribution, case.threads) == (*engine, distribution, threads)
                };
                match cases.iter_mut().find(is) {
                    Some(case) => case.rounds.push(sample),
                    None => cases.push(Case {
                        engine,
                        distribution,
                        threads,
                        rounds: vec![sample],
                    }),
                }
            }
        }
    }
    calibrator.since(misses)
}

/// Opens our database and its peers, each empty in its own directory.
fn engines(args: &TransactionsArgs, directory: &Path) -> Result<Vec<Named>, Error> {
    let mut engines: Vec<Named> = vec![(ours::NAME, Box::new(ours::Ours::create(args.index, directory)?))];
    for peer in TRANSACTIONAL {
        let own = directory.join(peer.name);
        std::fs::create_dir(&own).map_err(Error::Directory)?;
        engines.push((peer.name, (peer.open)(&own)?));
    }
    Ok(engines)
}
