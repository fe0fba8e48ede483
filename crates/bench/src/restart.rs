//! `bench restart`: from the start of a process to its first answer, after a kill, for our indexes and for peers.
//!
//! For each engine, size and round another process fills a directory of its own and is killed with it open; then a process is started
//! that opens it, asks for one key and says so. What is timed is all of that, the start of the process included. Ours is
//! what a user gets, with the write-backs and fences that the pool's level needs and no others.

use crate::child::{self, Child};
use crate::engine::{Engine, Ours};
use crate::keys::{KeyKind, Keys, nth_u64};
use crate::limit::{Calibrator, Pace};
use crate::machine::Machine;
use crate::progress::Progress;
use crate::store::{self, Place};
use crate::summary::Summary;
use crate::{Error, pass, peers, table};
use indexes::IndexKind;
use pmem::Hardware;
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Restarts engines after a kill.
#[derive(Debug, clap::Args)]
pub struct RestartArgs {
    /// Our indexes
    #[arg(long, value_delimiter = ',', default_values_t = [IndexKind::default()], value_name = "NAME", value_parser = crate::index())]
    index: Vec<IndexKind>,
    /// Numbers of keys of eight random bytes
    #[arg(long, value_delimiter = ',', default_value = "10k,100k,1M", value_parser = crate::count)]
    keys: Vec<usize>,
    /// Where the engines' files go, in a directory that is removed afterwards [default: the system's for such]
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Restarts of each
    #[arg(long, default_value_t = 3, value_parser = crate::count)]
    rounds: usize,
    /// The seed of the keys
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
    /// In the other process: what it does, on which engine, where, with how many keys.
    #[arg(long, hide = true, num_args = 4)]
    role: Option<Vec<String>>,
}

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
    /// What a miss took before and after all rounds, in a file beside the engine's.
    pace: Pace,
    machine: Machine,
}

const OURS: &str = "as an ordinary pool: survives a kill (at level process without write-backs and fences)";

/// Fills, kills, restarts, and prints a line for each engine and size.
pub fn run(args: &RestartArgs) -> Result<(), Error> {
    if let Some([role, engine, directory, keys]) = args.role.as_deref() {
        let keys = keys
            .parse()
            .map_err(|_| Error::Wrong("a number of keys".into()))?;
        return other(args, role, engine, Path::new(directory), keys);
    }
    let progress = Progress::new();
    let engines: Vec<_> = args.index.iter().map(|index| (index.name(), OURS)).collect();
    let engines = engines
        .into_iter()
        .chain(peers::DURABLE.iter().map(|peer| (peer.name, peer.setting)));
    let mut reports = Vec::new();
    for (engine, setting) in engines {
        for &keys in &args.keys {
            let beside = crate::directory(args.dir.as_deref())?;
            let place = Place::File(beside.path().join("pool"));
            let mut calibrator = Calibrator::for_keys(keys, &place, true)?;
            let misses = calibrator.misses()?;
            let mut times = Vec::new();
            for round in 1..=args.rounds {
                let directory = crate::directory(args.dir.as_deref())?;
                progress.say(format_args!(
                    "{engine}, {keys} keys, round {round} of {}",
                    args.rounds
                ));
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
                Child::start(role("fill"), FILLED)?.kill()?;
                let start = Instant::now();
                let child = Child::start(role("ask"), ANSWERED)?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
                child.end()?;
            }
            let Some(first_get_ms) = Summary::of(times) else {
                continue;
            };
            let (rounds, pace, machine) = (args.rounds, calibrator.since(misses)?, Machine::detect());
            let report = Report {
                engine,
                setting,
                keys,
                rounds,
                first_get_ms,
                pace,
                machine,
            };
            if args.json {
                crate::print(&serde_json::to_string(&report)?)?;
            }
            reports.push(report);
        }
    }
    drop(progress);
    if args.json {
        Ok(())
    } else {
        crate::print(&render(&reports))
    }
}

fn render(reports: &[Report]) -> String {
    let rows: Vec<Vec<String>> = reports
        .iter()
        .map(|report| {
            let Summary { median, least, most } = report.first_get_ms;
            vec![
                report.engine.to_owned(),
                report.keys.to_string(),
                format!("{median:.1}"),
                format!("{least:.1}-{most:.1}"),
                if report.pace.drifted { "DRIFTED" } else { "" }.to_owned(),
                report.setting.to_owned(),
            ]
        })
        .collect();
    let header = [
        "engine",
        "keys",
        "process start to first get, ms",
        "spread",
        "",
        "setting",
    ];
    format!("{}{}", table::render(&header, &rows), Machine::detect())
}

/// The other process, whatever the engine.
fn other(args: &RestartArgs, role: &str, engine: &str, directory: &Path, keys: usize) -> Result<(), Error> {
    if let Ok(index) = engine.parse::<IndexKind>() {
        let path = directory.join("pool");
        let (place, new) = (Place::File(path.clone()), !path.exists());
        let media = Hardware::detect();
        let heap = if new {
            place.create(media)?
        } else {
            place.open(media)?
        };
        let index = if new {
            store::create(index, &heap)?
        } else {
            store::open(index, &heap)?
        };
        return play(args, role, &Ours(&*index), new, keys);
    }
    let peer = peers::DURABLE.iter().find(|peer| peer.name == engine);
    let peer = peer.ok_or_else(|| Error::Wrong(format!("no engine is called '{engine}'")))?;
    let new = std::fs::read_dir(directory)
        .map_err(Error::Directory)?
        .next()
        .is_none();
    play(args, role, &*(peer.open)(directory)?, new, keys)
}

fn play(args: &RestartArgs, role: &str, engine: &dyn Engine, new: bool, keys: usize) -> Result<(), Error> {
    if role == "fill" {
        if new {
            pass::load(engine, Keys::generate(KeyKind::U64, keys, args.seed).all(), 1)?;
        }
        for number in 0..100.min(keys as u64) {
            engine.update(&nth_u64(args.seed, number), number)?;
        }
        engine.settle()?;
        child::ready(FILLED)?;
    } else {
        let wanted = keys as u64 / 2;
        let found = engine.get(&nth_u64(args.seed, wanted))?;
        if found != Some(wanted) {
            return Err(Error::Wrong(format!("key {wanted} has the value {found:?}")));
        }
        child::ready(ANSWERED)?;
    }
    child::wait_for_end()
}
