//! `bench open`: from opening a pool to the first answer, by number of keys.
//!
//! For each size another process fills a new pool and is killed with the pool open; then this process opens it and
//! asks for one key. The time from the opening to the answer should not depend on the number of keys; what remains to
//! be done, tracing what is alive, goes on in the background and is timed on its own.

use crate::keys::{self, KeyKind, Keys};
use crate::progress::Progress;
use crate::store::{self, Place, Remove};
use crate::workload::{self, Workload};
use crate::{Error, engine::Engine, engine::Ours, machine::Machine, table};
use heap::{Heap, State};
use index::Index;
use indexes::{IndexKind, WithIndex};
use pmem::Hardware;
use serde::Serialize;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Opens pools of growing size, after a kill and after a close.
#[derive(Debug, clap::Args)]
pub struct OpenArgs {
    /// The index
    #[arg(long, default_value_t, value_name = "NAME", value_parser = crate::index())]
    index: IndexKind,
    /// Numbers of keys
    #[arg(long, value_delimiter = ',', default_value = "10k,100k,1M,10M", value_parser = crate::count)]
    keys: Vec<usize>,
    /// The file to make for each size (and remove afterwards)
    #[arg(long, value_name = "PATH")]
    pool: PathBuf,
    /// Openings after a kill for each size; the figures are medians
    #[arg(long, default_value_t = 5, value_parser = crate::count)]
    rounds: usize,
    /// Threads that fill the pools
    #[arg(long, default_value_t = 1, value_parser = crate::threads)]
    threads: usize,
    /// The seed of the keys
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print lines of JSON
    #[arg(long)]
    json: bool,
    /// Fill the pool with so many keys, or open it, then wait to be killed.
    #[arg(long, hide = true)]
    fill: Option<usize>,
}

/// How the pool was left.
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
    rounds: usize,
    /// From the call that opens the pool until the index can be asked.
    open_ms: f64,
    /// From the same call to the first answer.
    first_get_ms: f64,
    /// The slowest of the rounds.
    first_get_max_ms: f64,
    /// From the same call until what the crash left is cleared up.
    recovered_ms: f64,
    pool_bytes: u64,
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
        let _remove = Remove(&args.pool);
        let (mut killed, mut closed) = (Vec::new(), Vec::new());
        for round in 1..=args.rounds {
            progress.say(format_args!("{keys} keys, round {round} of {}", args.rounds));
            Filler::start(keys)?.kill()?;
            killed.push(open(args, keys, round)?);
            closed.push(open(args, keys, round)?);
        }
        for (after, openings) in [(After::Kill, killed), (After::Close, closed)] {
            let report = Report::new(args, keys, after, &openings);
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

/// Opens the pool, asks for one key, waits for the recovery, and closes the pool.
fn open(args: &OpenArgs, keys: usize, round: usize) -> Result<Opening, Error> {
    let start = Instant::now();
    let heap = Place::File(args.pool.clone()).open(Hardware::detect())?;
    let wanted = (round * 7919 % keys) as u64;
    store::open(
        args.index,
        &heap,
        FirstGet {
            heap: &heap,
            start,
            seed: args.seed,
            wanted,
        },
    )
}

struct FirstGet<'h> {
    heap: &'h Heap<Hardware>,
    start: Instant,
    seed: u64,
    wanted: u64,
}

impl WithIndex for FirstGet<'_> {
    type Out = Result<Opening, Error>;
    fn with<I: Index + 'static>(self, index: I) -> Self::Out {
        let open = self.start.elapsed();
        let found = Ours(&index).get(&keys::nth_u64(self.seed, self.wanted))?;
        let first_get = self.start.elapsed();
        if found != Some(self.wanted) {
            return Err(Error::Wrong(format!(
                "key {} has the value {found:?}",
                self.wanted
            )));
        }
        if let State::Failed(why) = self.heap.wait_recovered() {
            return Err(Error::Wrong(format!("recovery: {why}")));
        }
        Ok(Opening {
            open,
            first_get,
            recovered: self.start.elapsed(),
            pool_bytes: self.heap.pool().len(),
        })
    }
}

impl Report {
    fn new(args: &OpenArgs, keys: usize, after: After, openings: &[Opening]) -> Report {
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
            rounds: openings.len(),
            open_ms: median(|opening| opening.open),
            first_get_ms: median(|opening| opening.first_get),
            first_get_max_ms: sorted(|opening| opening.first_get)
                .last()
                .copied()
                .unwrap_or_default(),
            recovered_ms: median(|opening| opening.recovered),
            pool_bytes: openings.last().map_or(0, |opening| opening.pool_bytes),
            machine: Machine::detect(),
        }
    }
}

fn render(reports: &[Report]) -> String {
    let header = [
        "index",
        "keys",
        "after",
        "open ms",
        "first get ms",
        "at most",
        "recovered ms",
        "pool MiB",
    ];
    let rows: Vec<Vec<String>> = reports
        .iter()
        .map(|report| {
            vec![
                report.index.to_owned(),
                report.keys.to_string(),
                format!("{:?}", report.after).to_lowercase(),
                format!("{:.2}", report.open_ms),
                format!("{:.2}", report.first_get_ms),
                format!("{:.2}", report.first_get_max_ms),
                format!("{:.0}", report.recovered_ms),
                (report.pool_bytes >> 20).to_string(),
            ]
        })
        .collect();
    format!("{}{}", table::render(&header, &rows), Machine::detect())
}

/// The other process: this program with the same arguments and `--fill`.
struct Filler(Child);

const FILLED: &str = "filled";

impl Filler {
    /// Starts it and waits until the pool holds what it should.
    fn start(keys: usize) -> Result<Filler, Error> {
        let mut child = Command::new(std::env::current_exe().map_err(Error::Filler)?)
            .args(std::env::args_os().skip(1))
            .args(["--fill".into(), keys.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(Error::Filler)?;
        let stdout = child.stdout.take();
        let filler = Filler(child);
        let mut line = String::new();
        if let Some(stdout) = stdout {
            BufReader::new(stdout)
                .read_line(&mut line)
                .map_err(Error::Filler)?;
        }
        if line.trim_end() == FILLED {
            Ok(filler)
        } else {
            Err(Error::Filler(std::io::Error::other(
                "it ended before the pool was full",
            )))
        }
    }

    /// Kills it as `kill -9` does.
    fn kill(mut self) -> Result<(), Error> {
        self.0
            .kill()
            .and_then(|()| self.0.wait())
            .map(drop)
            .map_err(Error::Filler)
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Fills a new pool, or opens the one that is there and changes it, and holds it open until killed, or until the
/// process that waits for it is gone.
fn fill_and_wait(args: &OpenArgs, keys: usize) -> Result<(), Error> {
    struct Fill<'f>(&'f Keys, usize);
    impl WithIndex for Fill<'_> {
        type Out = Result<(), Error>;
        fn with<I: Index + 'static>(self, index: I) -> Self::Out {
            workload::pass(&Ours(&index), Workload::Load, &workload::share(self.0, self.1))?;
            wait_for_end()
        }
    }
    struct Touch(u64);
    impl WithIndex for Touch {
        type Out = Result<(), Error>;
        fn with<I: Index + 'static>(self, index: I) -> Self::Out {
            for number in 0..100 {
                Ours(&index).update(&keys::nth_u64(self.0, number), number)?;
            }
            wait_for_end()
        }
    }
    let place = Place::File(args.pool.clone());
    if Path::exists(&args.pool) {
        let heap = place.open(Hardware::detect())?;
        store::open(args.index, &heap, Touch(args.seed))
    } else {
        let loading = Keys::generate(KeyKind::U64, keys, args.seed);
        let heap = place.create(Hardware::detect())?;
        store::create(args.index, &heap, Fill(&loading, args.threads))
    }
}

fn wait_for_end() -> Result<(), Error> {
    let mut out = std::io::stdout();
    writeln!(out, "{FILLED}")
        .and_then(|()| out.flush())
        .map_err(Error::Output)?;
    std::io::stdin()
        .read_to_end(&mut Vec::new())
        .map(drop)
        .map_err(Error::Filler)
}
