//! `exercise`: calls the whole database as its users do, and checks every answer.
//!
//! `exerciser` makes the calls and judges the answers; this module has the budget, the progress and the report.

use super::output;
use super::torture::time;
use crate::exit::{Failure, Outcome};
use exerciser::{MAX_THREADS, Report, Settings};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;
use wollemi::indexes::IndexKind;

/// The arguments of `exercise`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 0 if every answer was right; 1 if one was wrong: it then keeps the pool, and prints the \
                  command that repeats the run."
)]
pub struct Args {
    /// The index that holds the maps (ablations too); `all`: a random index for each map, but no ablation
    #[arg(long, default_value = "all", value_name = "NAME")]
    index: String,
    /// Number of calling threads; 0: one to four in turn, pool by pool
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u64).range(0..=MAX_THREADS as u64))]
    threads: u64,
    /// Begin no further round after this time: 60s, 5m, 1h
    #[arg(long, default_value = "60s", value_name = "TIME", value_parser = time)]
    budget: Duration,
    /// Begin no further round after this many calls
    #[arg(long, value_name = "N", default_value_t = u64::MAX, hide_default_value = true)]
    calls: u64,
    /// The seed of the first pool; each further pool uses the next seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Directory for the pools [default: a new temporary directory]
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Exercise the server instead, over memcached's and Redis's protocols: `serve` of PROGRAM, or of the `wollemi`
    /// beside this program
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, require_equals = true)]
    server: Option<Option<PathBuf>>,
    /// Exercise only openings: short rounds over maps of thousands of keys, whose threads drop, make, recover, merge,
    /// check and write maps, and give space back. `--threads N`: that many threads do all of this; 0: one thread for
    /// each task
    #[arg(long, conflicts_with = "server")]
    openings: bool,
    /// Exercise hot keys: threads contend for 4 to 16 adversarial keys, in processes that are killed, and each key's
    /// history must be linearizable across the kills. `--threads 0`: two to six in turn, pool by pool
    #[arg(long, conflicts_with_all = ["server", "openings", "no_kills"])]
    hot: bool,
    /// Show and judge again the histories that a failed run of `--hot` left in this directory
    #[arg(long, requires = "hot", value_name = "DIR")]
    look: Option<PathBuf>,
    /// Do not end rounds by killing a process
    #[arg(long, conflicts_with = "server")]
    no_kills: bool,
    /// Report as one JSON object
    #[arg(long)]
    json: bool,
    /// The round of a process that the exerciser will kill
    #[arg(long, hide = true, value_name = "ROUND")]
    be_killed: Option<String>,
}

/// Returns the path of the program that has `serve`, beside this one.
fn wollemi() -> PathBuf {
    let program = std::env::current_exe().unwrap_or_default();
    program.with_file_name("wollemi")
}

/// Returns the command that runs this program as a process that executes a round until it is killed.
fn child(round: &str) -> Command {
    let program = std::env::current_exe().unwrap_or_else(|_| "wollemi-lab".into());
    let mut command = Command::new(program);
    command.args(["exercise", "--be-killed", round]);
    command
}

impl Args {
    /// Exercises until the budget is used up, and reports.
    pub fn run(self) -> Result<Outcome, Failure> {
        if let Some(round) = &self.be_killed {
            return match exerciser::be_killed(round) {
                Ok(()) => Ok(Outcome::Done),
                Err(wrong) => Err(Failure::Exercise(wrong)),
            };
        }
        if let Some(directory) = &self.look {
            let histories = exerciser::look_at_hot_keys(directory).map_err(Failure::Exercise)?;
            let mut out = output();
            write!(out, "{histories}")?;
            out.flush()?;
            return Ok(Outcome::Done);
        }
        let kinds = match &*self.index {
            "all" => IndexKind::ALL
                .iter()
                .copied()
                .filter(|kind| !kind.is_ablation())
                .collect(),
            name => vec![
                name.parse()
                    .map_err(|error: wollemi::indexes::Unknown| Failure::Usage(error.to_string()))?,
            ],
        };
        let directory = match &self.dir {
            Some(directory) => directory.clone(),
            None => std::env::temp_dir().join(format!("wollemi-exercise-{}", std::process::id())),
        };
        let failed = |what: String| Failure::Exercise(format!("{}: {what}", directory.display()));
        std::fs::create_dir_all(&directory).map_err(|error| failed(error.to_string()))?;
        // Locked until the end: two runs in one directory would find each other's pools damaged.
        let lock = File::open(&directory).map_err(|error| failed(error.to_string()))?;
        lock.try_lock().map_err(|error| match error {
            TryLockError::WouldBlock => failed("another exercise is using this directory".into()),
            TryLockError::Error(error) => failed(error.to_string()),
        })?;
        let settings = Settings {
            seed: self.seed,
            threads: usize::try_from(self.threads).unwrap_or(MAX_THREADS),
            kinds,
            budget: self.budget,
            calls: self.calls,
            directory,
            child: (!self.no_kills).then_some(child),
            server: self.server.clone().map(|program| program.unwrap_or_else(wollemi)),
            openings: self.openings,
            hot: self.hot,
        };
        let bar = ProgressBar::new(self.budget.as_secs());
        bar.set_style(
            ProgressStyle::with_template("{bar:30} {pos}/{len} s  {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        let ended = exerciser::run(&settings, |report| {
            bar.set_position(report.seconds as u64);
            bar.set_message(format!(
                "{} calls, {} kills",
                HumanCount(report.calls),
                report.kills
            ));
        });
        bar.finish_and_clear();
        let mut out = output();
        match ended {
            Ok(report) => {
                if self.dir.is_none() {
                    // The run has removed its pools. If the directory holds other files, it stays.
                    let _ = std::fs::remove_dir(&settings.directory);
                }
                self.print(&mut out, &report)?;
                Ok(Outcome::Done)
            }
            Err(failure) => {
                if self.json {
                    writeln!(
                        out,
                        "{}",
                        serde_json::json!({ "failure": failure.to_string(), "seed": failure.seed })
                    )?;
                } else {
                    let (index, threads, seed) = (&self.index, self.threads, failure.seed);
                    writeln!(out, "{failure}")?;
                    let what = match (&self.server, self.openings, self.hot) {
                        (Some(_), ..) => " --server",
                        (None, true, _) => " --openings",
                        (None, false, true) => " --hot",
                        (None, false, false) => "",
                    };
                    writeln!(
                        out,
                        "again: wollemi-lab exercise{what} --index {index} --threads {threads} --seed {seed}"
                    )?;
                }
                out.flush()?;
                Ok(Outcome::Found)
            }
        }
    }

    fn print(&self, out: &mut impl Write, report: &Report) -> std::io::Result<()> {
        let Report {
            calls,
            refused,
            pools,
            openings,
            kills,
            seconds,
            called,
            indexes,
        } = report;
        if self.json {
            let report = serde_json::json!({
                "index": self.index, "seed": self.seed, "calls": calls, "refused": refused, "pools": pools,
                "openings": openings, "kills": kills, "seconds": seconds,
                "called": called.iter().collect::<BTreeMap<_, _>>(),
                "indexes": indexes.iter().collect::<BTreeMap<_, _>>(),
            });
            writeln!(out, "{report}")?;
        } else {
            writeln!(
                out,
                "{} calls ({} refused for lack of room or because a map was in use), {pools} pools, {openings} openings, \
                 {kills} kills in {seconds:.1} s: every answer was right",
                HumanCount(*calls),
                HumanCount(*refused),
            )?;
            let of_index = indexes
                .iter()
                .map(|(index, calls)| format!("{index} {}", HumanCount(calls)));
            writeln!(
                out,
                "calls of maps by index: {}",
                of_index.collect::<Vec<_>>().join(", ")
            )?;
        }
        out.flush()
    }
}
