//! Measures the time to the first answer after a kill, and after power loss.
//!
//! A child process fills a directory and is killed; then, in each round, another child opens the directory, looks up a
//! key, and is killed with the directory open. The time runs from the start of that child to its answer. After a *kill*
//! the files are in the page cache. To simulate the loss of *power* they are evicted from it, and our pool is removed,
//! so that it is rebuilt from the checkpoint and the log; a real power cut leaves a pool that the opening ignores.
//!
//! Redis is a process of its own instead: it is started, asked, and killed. Its time includes a run of its program that
//! prints the version, and up to 10 ms between two attempts to connect.

use super::loading::{Persistence, Redis};
use super::ours::{self, LOAD_BATCH, Ours};
use super::pairs::Shape;
use super::report::Record;
use super::{DurableArgs, Plan, ours::POOL};
use crate::Error;
use crate::child::{self, Child};
use crate::peers::kept::SyncedStore;
use crate::peers::syncing::SYNCING;
use crate::progress::Progress;
use crate::summary::Summary;
use crate::turns::order;
use rustix::fs::{Advice, fadvise};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use wollemi::Level;

const FILL: &str = "fill";
const FILLED: &str = "filled";
const ASK: &str = "ask";
const ANSWERED: &str = "answered";

/// The simulated failure before an opening.
const AFTER: [&str; 2] = ["kill", "power"];

/// Measures both shapes.
pub fn run(args: &DurableArgs, plan: &Plan, progress: &Progress) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    for (key, value, keys) in [(8, 8, plan.restart_keys), (16, 100, plan.restart_keys / 2)] {
        let shape = Shape {
            key,
            value,
            seed: plan.seed,
        };
        records.extend(restart(args, plan, progress, shape, keys)?);
    }
    Ok(records)
}

/// Fills every engine, then opens each in turn, round by round.
fn restart(
    args: &DurableArgs,
    plan: &Plan,
    progress: &Progress,
    shape: Shape,
    keys: usize,
) -> Result<Vec<Record>, Error> {
    let mut records = Vec::new();
    let mut engines = vec![Engine::Embedded(ours::NAME)];
    engines.extend(SYNCING.iter().map(|peer| Engine::Embedded(peer.name)));
    engines.extend([Persistence::Aof, Persistence::Rdb].map(Engine::Redis));
    let mut places = Vec::new();
    let mut filled = Vec::new();
    for engine in engines {
        let name = engine.name();
        progress.say(format_args!(
            "filling {name}, {keys} pairs of {} and {} bytes",
            shape.key, shape.value
        ));
        let place = plan.place(&format!("restart {name} {}", shape.key))?;
        if engine.fill(args, &place, shape, keys)? {
            places.push(place);
            filled.push(engine);
        } else {
            let why = "no such program (--redis)";
            records.push(Record::LeftOut { what: name, why });
        }
    }
    let engines = filled;
    let mut times: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
    for round in 0..plan.rounds {
        for (after, what) in AFTER.into_iter().enumerate() {
            for side in order(round, engines.len()) {
                let (engine, place) = (engines[side], &places[side]);
                let name = engine.name();
                progress.say(format_args!(
                    "{name}, {keys} pairs, after {what}, round {} of {}",
                    round + 1,
                    plan.rounds
                ));
                if what == "power" {
                    lose_power(place)?;
                }
                let ms = engine.first_answer(args, place, shape, keys)?.as_secs_f64() * 1e3;
                times.entry((after, side)).or_default().push(ms);
            }
        }
    }
    places
        .iter()
        .try_for_each(std::fs::remove_dir_all)
        .map_err(Error::Directory)?;
    let figures = times.iter().filter_map(|(&(after, side), times)| {
        Some(Record::Restart {
            engine: engines[side].name(),
            after: AFTER[after],
            pairs: keys,
            key: shape.key,
            value: shape.value,
            first_get_ms: Summary::of(times.iter().copied())?,
        })
    });
    records.extend(figures);
    Ok(records)
}

/// What is filled and opened.
#[derive(Clone, Copy)]
enum Engine {
    /// An engine in a child process: ours, or the peer with this name.
    Embedded(&'static str),
    Redis(Persistence),
}

impl Engine {
    fn name(self) -> &'static str {
        match self {
            Engine::Embedded(name) => name,
            Engine::Redis(persistence) => persistence.name(),
        }
    }

    /// Fills the directory and kills the process. Returns false if the program is not installed.
    fn fill(self, args: &DurableArgs, place: &Path, shape: Shape, keys: usize) -> Result<bool, Error> {
        match self {
            Engine::Embedded(name) => {
                Child::start(role(FILL, name, place, shape, keys), FILLED)?.kill()?;
                Ok(true)
            }
            Engine::Redis(persistence) => match Redis::start(persistence, &args.redis, place)? {
                Some(mut redis) => redis.fill(persistence, shape, keys).map(|()| true),
                None => Ok(false),
            },
        }
    }

    /// Starts the process, and returns the time until it has answered; kills it.
    fn first_answer(
        self,
        args: &DurableArgs,
        place: &Path,
        shape: Shape,
        keys: usize,
    ) -> Result<Duration, Error> {
        let start = Instant::now();
        match self {
            Engine::Embedded(name) => {
                let child = Child::start(role(ASK, name, place, shape, keys), ANSWERED)?;
                let time = start.elapsed();
                child.kill()?;
                Ok(time)
            }
            Engine::Redis(persistence) => {
                let started = Redis::start(persistence, &args.redis, place)?;
                let mut redis = started.ok_or_else(|| Error::Wrong("Redis was removed".into()))?;
                check_some(self.name(), keys, shape, |key| redis.get(key))?;
                Ok(start.elapsed())
            }
        }
    }
}

/// Returns the arguments of the child process.
fn role(role: &str, engine: &str, place: &Path, shape: Shape, keys: usize) -> Vec<std::ffi::OsString> {
    let numbers = [keys, shape.key, shape.value].map(|number| number.to_string().into());
    let words = ["--role".into(), role.into(), engine.into(), place.into()];
    words.into_iter().chain(numbers).collect()
}

/// Evicts the files from the page cache and removes our pool.
fn lose_power(place: &Path) -> Result<(), Error> {
    let pool = place.join(POOL);
    let lose = || {
        if pool.exists() {
            std::fs::remove_file(&pool)?;
        }
        files(place)?.iter().try_for_each(|file| {
            let file = std::fs::File::open(file)?;
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed).map_err(std::io::Error::from)
        })
    };
    lose().map_err(Error::Directory)
}

/// Returns all files below a directory.
fn files(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => found.extend(files(&entry.path())?),
            false => found.push(entry.path()),
        }
    }
    Ok(found)
}

/// Runs the child process.
pub fn run_child(role: &[String], seed: u64) -> Result<(), Error> {
    let wrong = || Error::Wrong("--role is invalid".into());
    let [role, engine, place, numbers @ ..] = role else {
        return Err(wrong());
    };
    let numbers: Result<Vec<usize>, _> = numbers.iter().map(|number| number.parse()).collect();
    let [keys, key, value] = numbers.map_err(|_| wrong())?[..] else {
        return Err(wrong());
    };
    let (place, shape) = (Path::new(place), Shape { key, value, seed });
    if engine == ours::NAME {
        let ours = Ours::open(place, Level::Disk)?;
        if role == FILL {
            ours.fill(shape, keys)?;
        }
        return answer(role, engine, &ours, shape, keys);
    }
    let peer = SYNCING
        .iter()
        .find(|peer| peer.name == engine)
        .ok_or_else(wrong)?;
    let database = (peer.open)(place)?;
    if role == FILL {
        shape.all(keys, LOAD_BATCH, |pairs| database.commit(pairs))?;
    }
    answer(role, engine, &*database, shape, keys)
}

/// Looks up a key in the middle, then the first and the last.
fn check_some(
    engine: &str,
    keys: usize,
    shape: Shape,
    mut get: impl FnMut(&[u8]) -> Result<Option<Vec<u8>>, Error>,
) -> Result<(), Error> {
    let keys = keys as u64;
    let mut numbers = [keys / 2, 0, keys - 1].into_iter();
    numbers.try_for_each(|number| shape.check(engine, number, get(&shape.key(number))?.as_deref()))
}

/// Looks up some keys, and reports the answer.
fn answer(
    role: &str,
    engine: &str,
    database: &dyn SyncedStore,
    shape: Shape,
    keys: usize,
) -> Result<(), Error> {
    check_some(engine, keys, shape, |key| database.get(key))?;
    child::ready(if role == FILL { FILLED } else { ANSWERED })?;
    child::wait_for_end()
}
