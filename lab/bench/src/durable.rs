//! `bench durable`: measures writes to a disk that survive power loss: the database at level `disk`, the raw loop that
//! bounds it, and peers that sync each commit.
//!
//! I1 Within a part, each round measures all engines in turn, and the engines take turns in going first (`turns`).
//!    Ratios are formed within a round; their median and extremes over the rounds are reported.
//! I2 All engines write pairs of the same size: keys drawn at random among the existing ones, with incompressible
//!    values (except in `server`). A commit that has returned survives power loss, unless the part says otherwise.
//! I3 A missing key, or another key's value, is an error: `writes` checks a sample of keys after the last round, the
//!    other parts check each value that they read.
//! I4 The files are on a disk: a directory on a memory file system is refused.
//!
//! Not here: the peers (`peers::kept`), the bound (`raw`), the parts (`writes`, `levels` and its `beside`, `upkeep`,
//! `server`, `restart`), Redis in the latter (`loading`), the output (`report`).

mod beside;
mod levels;
mod loading;
mod ours;
mod pairs;
mod raw;
mod report;
mod restart;
mod server;
mod timed;
mod upkeep;
mod writes;

use crate::progress::Progress;
use crate::{Error, machine};
use clap::ValueEnum;
use report::Record;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measures writes that survive power loss.
#[derive(Debug, clap::Args)]
pub struct DurableArgs {
    /// Parts to measure [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PART")]
    part: Vec<Part>,
    /// Directory for the files, in a folder that is removed afterwards [default: beside this program]
    #[arg(long, value_name = "DIRECTORY")]
    dir: Option<PathBuf>,
    /// Run a small version as a smoke test: fewer keys, shorter measurements, two rounds
    #[arg(long)]
    quick: bool,
    /// Number of 16-byte keys with 100-byte values loaded beforehand [default: 1M]
    #[arg(long, value_parser = crate::count)]
    keys: Option<usize>,
    /// Pairs of 8-byte keys and values in `restart`, and half as many of 16 and 100 bytes [default: 10M]
    #[arg(long, value_parser = crate::count)]
    restart_keys: Option<usize>,
    /// Seconds of each measurement [default: 1]
    #[arg(long, value_parser = crate::seconds)]
    seconds: Option<f64>,
    /// Rounds [default: 5]
    #[arg(long, value_parser = crate::count)]
    rounds: Option<usize>,
    /// Connections in `server`
    #[arg(long, default_value_t = 64, value_parser = crate::threads)]
    connections: usize,
    /// Wollemi's server program [default: the `wollemi` beside this program]
    #[arg(long, value_name = "PROGRAM")]
    wollemi: Option<PathBuf>,
    /// Redis's server program
    #[arg(long, value_name = "PROGRAM", default_value = "redis-server")]
    redis: OsString,
    /// The seed of the keys and of their order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
    /// In the child process: its role, the engine, the directory, the number of pairs and their sizes.
    #[arg(long, hide = true, num_args = 6)]
    role: Option<Vec<String>>,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Synced commits by 1, 8 and 64 threads and of 64 pairs, beside the raw loop and peers
    Writes,
    /// Eventual writes and gets, each alone, and gets beside a writer; at levels process and disk
    Levels,
    /// Writes beside a checkpoint, and write amplification
    Upkeep,
    /// The server beside Redis
    Server,
    /// The first answer after a kill and after power loss
    Restart,
}

/// The size of the measurement.
#[derive(Clone, Debug)]
struct Plan {
    directory: PathBuf,
    keys: usize,
    restart_keys: usize,
    time: Duration,
    rounds: usize,
    seed: u64,
}

impl Plan {
    fn new(args: &DurableArgs, directory: &Path) -> Plan {
        let or = |given: Option<usize>, full, quick| given.unwrap_or(if args.quick { quick } else { full });
        let seconds = args.seconds.unwrap_or(if args.quick { 0.05 } else { 1.0 });
        Plan {
            directory: directory.to_owned(),
            keys: or(args.keys, 1_000_000, 2_000),
            restart_keys: or(args.restart_keys, 10_000_000, 4_000),
            time: Duration::from_secs_f64(seconds),
            rounds: or(args.rounds, 5, 2),
            seed: args.seed,
        }
    }

    /// Creates an empty directory.
    fn place(&self, name: &str) -> Result<PathBuf, Error> {
        let place = self.directory.join(name);
        std::fs::create_dir(&place).map_err(Error::Directory)?;
        Ok(place)
    }
}

/// Measures the requested parts and prints a record for each figure.
pub fn run(args: &DurableArgs) -> Result<(), Error> {
    if let Some(role) = &args.role {
        return restart::run_child(role, args.seed);
    }
    let parent = parent(args)?;
    let directory = crate::directory(Some(&parent))?;
    let file_system = machine::file_system(&directory.path().join("file")).unwrap_or_default();
    if ["tmpfs", "ramfs"].contains(&&*file_system) {
        return Err(Error::Options(
            "--dir is on a memory file system, which loses everything with the power: name a directory on a disk",
        ));
    }
    let plan = Plan::new(args, directory.path());
    let progress = Progress::new();
    let mut records = Vec::new();
    for part in Part::value_variants() {
        if args.part.is_empty() || args.part.contains(part) {
            records.extend(match part {
                Part::Writes => writes::run(&plan, &progress)?,
                Part::Levels => levels::run(&plan, &progress)?,
                Part::Upkeep => upkeep::run(&plan, &progress)?,
                Part::Server => server::run(args, &plan, &progress)?,
                Part::Restart => restart::run(args, &plan, &progress)?,
            });
        }
    }
    drop(progress);
    records.push(Record::conditions(&plan, file_system));
    crate::records::print(args.json, &records)
}

/// Returns the directory in which to create the temporary one.
fn parent(args: &DurableArgs) -> Result<PathBuf, Error> {
    if let Some(directory) = &args.dir {
        return Ok(directory.clone());
    }
    let program = std::env::current_exe().map_err(Error::Filler)?;
    Ok(program.parent().map_or_else(|| ".".into(), Path::to_owned))
}
