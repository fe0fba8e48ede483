//! `bench open`: measures the time from opening a pool to the first answer, by number of keys.
//!
//! For each size a child process fills a new pool and is killed with the pool open; then this process opens the pool
//! and looks up one key. The time from the opening to the answer should not depend on the number of keys. The rest of
//! recovery, the trace of live objects, runs in the background and is timed separately. After one more kill the pool is
//! used until recovery has ended, which shows the effect of recovery on latencies. Pools have the default options.

use crate::child::{self, Child};
use crate::keys::{self, KeyKind, Keys};
use crate::latency::{Recorder, Timeline};
use crate::limit::{Calibrator, Pace};
use crate::pass;
use crate::progress::Progress;
use crate::random::Random;
use crate::store::{self, Place, RemoveOnDrop};
use crate::{Error, engine::Engine, engine::Ours, machine::Machine, records};
use heap::RecoveryStage;
use pmem::Hardware;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wollemi::indexes::IndexKind;

/// Opens pools of growing size, after a kill and after a close.
#[derive(Debug, clap::Args)]
pub struct OpenArgs {
    /// Index
    #[arg(long, default_value_t, value_name = "NAME", value_parser = crate::index())]
    index: IndexKind,
    /// Numbers of keys
    #[arg(long, value_delimiter = ',', default_value = "10k,100k,1M,10M", value_parser = crate::count)]
    keys: Vec<usize>,
    /// Path of the new file for each size (removed afterwards)
    #[arg(long, value_name = "PATH")]
    pool: PathBuf,
    /// Openings after a kill for each size; the figures are medians
    #[arg(long, default_value_t = 5, value_parser = crate::count)]
    rounds: usize,
    /// Threads that fill the pools
    #[arg(long, default_value_t = 1, value_parser = crate::threads)]
    threads: usize,
    /// Threads that recover in the background; DPTree first replays its log with as many before it answers
    #[arg(long, default_value_t = 1, value_parser = recovery_threads)]
    recovery_threads: usize,
    /// The seed of the keys
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
    /// Fill the pool with this many keys, or open it, then wait to be killed.
    #[arg(long, hide = true)]
    fill: Option<usize>,
}

/// Parses a number of threads that a heap can recover with.
fn recovery_threads(text: &str) -> Result<usize, String> {
    const MAX: usize = 256;
    match crate::threads(text) {
        Ok(threads) if threads <= MAX => Ok(threads),
        _ => Err(format!("not a number of threads from 1 to {MAX}")),
    }
}

/// How the previous process left the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum After {
    Kill,
    Close,
}

/// The openings of one size.
#[derive(Debug, Serialize)]
struct Report {
    index: &'static str,
    keys: usize,
    after: After,
    recovery_threads: usize,
    rounds: usize,
    /// From the call that opens the pool until the index can be used.
    open_ms: f64,
    /// From the same call to the first answer.
    first_get_ms: f64,
    /// The slowest round.
    first_get_max_ms: f64,
    /// From the same call until recovery has ended.
    recovered_ms: f64,
    /// After one more kill: alternating gets and updates by one thread, from the opening until recovery has ended. All
    /// calls are timed.
    timeline: Option<Timeline>,
    pool_bytes: u64,
    /// Cache-miss time before and after all openings of this size, in a file beside the pool's.
    pace: Pace,
    machine: Machine,
}

struct Opening {
    open: Duration,
    first_get: Duration,
    recovered: Duration,
    pool_bytes: u64,
}

/// Fills, kills, opens, and prints a line for each size.
pub fn run(args: &OpenArgs) -> Result<(), Error> {
    if let Some(keys) = args.fill {
        return fill_and_wait(args, keys);
    }
    let progress = Progress::new();
    let mut reports = Vec::new();
    for &keys in &args.keys {
        if args.pool.exists() {
            return Err(Error::Exists(args.pool.clone()));
        }
        let _remove = RemoveOnDrop(&args.pool);
        let mut calibrator = Calibrator::for_keys(keys, &Place::File(args.pool.clone()), true)?;
        let misses = calibrator.misses()?;
        let (mut killed, mut closed) = (Vec::new(), Vec::new());
        for round in 1..=args.rounds {
            progress.say(format_args!("{keys} keys, round {round} of {}", args.rounds));
            Child::start(["--fill".to_owned(), keys.to_string()], FILLED)?.kill()?;
            killed.push(open(args, keys, round)?);
            closed.push(open(args, keys, round)?);
        }
        // After all timed openings, because the writes that follow would add to the next one.
        Child::start(["--fill".to_owned(), keys.to_string()], FILLED)?.kill()?;
        let timeline = Some(use_while_recovering(args, keys)?);
        let pace = calibrator.since(misses)?;
        for (after, openings, timeline) in [(After::Kill, killed, timeline), (After::Close, closed, None)] {
            let report = Report::new(args, keys, after, &openings, timeline, pace);
            reports.push(report);
        }
    }
    drop(progress);
    records::print(args.json, &reports)
}

/// Opens the pool, looks up one key, waits for recovery to end, and closes the pool.
fn open(args: &OpenArgs, keys: usize, round: usize) -> Result<Opening, Error> {
    let start = Instant::now();
    let heap = Place::File(args.pool.clone()).open(Hardware::detect(), args.recovery_threads)?;
    let wanted = (round * 7919 % keys) as u64;
    let index = store::open(args.index, &heap)?;
    let open = start.elapsed();
    let found = Ours(&*index).get(&keys::nth_u64(args.seed, wanted))?;
    let first_get = start.elapsed();
    if found != Some(wanted) {
        return Err(Error::Wrong(format!("key {wanted} has the value {found:?}")));
    }
    if let RecoveryStage::Failed(why) = heap.wait_recovered() {
        return Err(Error::Wrong(format!("recovery: {why}")));
    }
    Ok(Opening {
        open,
        first_get,
        recovered: start.elapsed(),
        pool_bytes: heap.pool().len(),
    })
}

/// Opens the pool, then reads and updates random keys until recovery has ended.
fn use_while_recovering(args: &OpenArgs, keys: usize) -> Result<Timeline, Error> {
    /// Calls between two checks whether recovery has ended.
    const CALLS: usize = 64;
    let heap = Place::File(args.pool.clone()).open(Hardware::detect(), args.recovery_threads)?;
    let index = store::open(args.index, &heap)?;
    let (engine, mut random) = (Ours(&*index), Random::new(args.seed));
    let mut recorder = Recorder::new();
    recorder.begin(Instant::now());
    loop {
        for call in 0..CALLS {
            let number = random.below(keys as u64);
            let key = keys::nth_u64(args.seed, number);
            let start = Instant::now();
            let right = match call % 2 {
                0 => engine.get(&key)? == Some(number),
                _ => engine.update(&key, number)?,
            };
            recorder.note(start, 1);
            if !right {
                return Err(Error::Wrong(format!("key {number}: wrong value or missing")));
            }
        }
        match heap.recovery().state {
            RecoveryStage::Running => {}
            RecoveryStage::Failed(why) => return Err(Error::Wrong(format!("recovery: {why}"))),
            RecoveryStage::Idle | RecoveryStage::Done => return Ok(recorder.timeline),
        }
    }
}

impl Report {
    fn new(
        args: &OpenArgs,
        keys: usize,
        after: After,
        openings: &[Opening],
        timeline: Option<Timeline>,
        pace: Pace,
    ) -> Report {
        let sorted = |time: fn(&Opening) -> Duration| {
            let mut times: Vec<f64> = openings
                .iter()
                .map(|opening| time(opening).as_secs_f64() * 1e3)
                .collect();
            times.sort_by(f64::total_cmp);
            times
        };
        let median = |time| sorted(time).get(openings.len() / 2).copied().unwrap_or_default();
        Report {
            index: args.index.name(),
            keys,
            after,
            recovery_threads: args.recovery_threads,
            rounds: openings.len(),
            open_ms: median(|opening| opening.open),
            first_get_ms: median(|opening| opening.first_get),
            first_get_max_ms: sorted(|opening| opening.first_get)
                .last()
                .copied()
                .unwrap_or_default(),
            recovered_ms: median(|opening| opening.recovered),
            timeline: timeline.map(|timeline| timeline.coarser(100)),
            pool_bytes: openings.last().map_or(0, |opening| opening.pool_bytes),
            pace,
            machine: Machine::detect(),
        }
    }
}

const FILLED: &str = "filled";

/// Fills a new pool, or opens and changes an existing one, and holds it open until this process is killed or its parent
/// is gone.
fn fill_and_wait(args: &OpenArgs, keys: usize) -> Result<(), Error> {
    let place = Place::File(args.pool.clone());
    if Path::exists(&args.pool) {
        let heap = place.open(Hardware::detect(), args.recovery_threads)?;
        let index = store::open(args.index, &heap)?;
        for number in 0..100.min(keys as u64) {
            Ours(&*index).update(&keys::nth_u64(args.seed, number), number)?;
        }
        child::ready(FILLED)?;
        child::wait_for_end()
    } else {
        let loading = Keys::generate(KeyKind::U64, keys, args.seed);
        let heap = place.create(Hardware::detect())?;
        let index = store::create(args.index, &heap)?;
        pass::load(&Ours(&*index), loading.part(0, 1), args.threads)?;
        child::ready(FILLED)?;
        child::wait_for_end()
    }
}
