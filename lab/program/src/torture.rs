//! `torture`: judges the images that crashes may leave of an index or another target.
//!
//! `crashkit` explores and judges; this module has the budget, the report (`report`) and the names of targets
//! (`target`). `disk` tortures the log and the database of level `disk`, which write files.

mod disk;
mod report;
mod target;

use super::output;
use crate::exit::{Failure, Outcome};
use ::torture::batches;
use ::torture::history;
use ::torture::items::{self, Items};
use ::torture::map::OfIndex;
use clap::ValueEnum;
use crashkit::blobs::{self, Blobs};
use crashkit::{Explorer, History, MemoryModel, Mode, Report, Settings, Subject};
use indicatif::{ProgressBar, ProgressStyle};
use report::{Counterexample, Finding, LeftOut};
use std::io::Write;
use std::time::{Duration, Instant};
use target::Target;

/// The maximum number of explorations to shrink a failing history.
const TRIES: usize = 300;

/// The maximum number of images of one mutant judged in one history.
const IMAGES: u64 = 2000;

/// The arguments of `torture`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code: 0 if no failure was found; 1 if one was found (printed shrunk), or if --mutants left a \
                  mutant alive without a known reason."
)]
pub struct Args {
    /// An index (ablations too), `heap` for the heap alone, `kv` for the database with its batches
    /// (`kv:ONE,TWO,EXPIRING` selects the indexes of its three maps; entries of the third expire), `items` for the
    /// server's items, `log` for the log of level disk, `disk` for the database of that level, or `all`
    #[arg(long, default_value = "all", value_name = "NAME")]
    index: Target,
    /// Operations per history, not counting its preparation; `log` and `disk` use at most 60
    #[arg(long, default_value_t = 100, value_name = "N")]
    ops: usize,
    /// Logical threads per history; 0: one to four in turn. `log` and `disk` ignore this
    #[arg(long, default_value_t = 0, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=4))]
    threads: u32,
    /// The memory model: which stores a crash may lose
    #[arg(long, value_enum, default_value_t = ModelArg::Power)]
    model: ModelArg,
    /// Time for each index and model: 60s, 5m, 1h [default: 60s]. Shrinking a failure may take another minute. With
    /// --mutants, `log` and `disk` use the whole time again for each omitted sync
    #[arg(long, value_name = "TIME", value_parser = time, conflicts_with = "states")]
    budget: Option<Duration>,
    /// Begin no further history of an index and model after this many distinct states were judged
    #[arg(long, value_name = "N")]
    states: Option<u64>,
    /// Seed of all random choices
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Run only the history of this seed, as named by a counterexample
    #[arg(long, value_name = "SEED")]
    history: Option<u64>,
    /// Also omit each write-back and each fence in turn, swap publications, and report the mutants that no check
    /// detects (model process excluded: it loses no store). With `log` and `disk`: omit each sync in turn
    #[arg(long)]
    mutants: bool,
    /// Extra runs of each history of several threads, with preemptions aimed at the words that its threads share
    #[arg(long, default_value_t = 8, value_name = "N")]
    aimed: u32,
    /// With `log` and `disk`: number of mutations of closed files to try, opening the result after each [default: one
    /// for each ten states]
    #[arg(long, value_name = "N")]
    damage: Option<u64>,
    /// Report as JSON, one object per line and per index and model
    #[arg(long)]
    json: bool,
}

/// A memory model on the command line.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum ModelArg {
    /// Loss of power: any prefix of the stores to each line is durable
    Power,
    /// Stricter than any hardware: any prefix of the stores to each word is durable
    Word,
    /// Death of the process: every store survives
    Process,
    /// All of these, one after the other
    All,
}

impl ModelArg {
    /// Returns the models that it stands for.
    fn modes(self) -> &'static [Mode] {
        match self {
            ModelArg::Power => &[Mode::Power],
            ModelArg::Word => &[Mode::Word],
            ModelArg::Process => &[Mode::Process],
            ModelArg::All => &[Mode::Power, Mode::Word, Mode::Process],
        }
    }
}

/// Parses a duration: a number of seconds, or a number followed by s, m or h.
pub fn time(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(['s', 'm', 'h']);
    let unit = match &text[digits.len()..] {
        "" | "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err("the unit must be s, m or h".into()),
    };
    let number: u64 = digits.parse().map_err(|_| "not a time such as 60s, 5m or 1h")?;
    let seconds = number.checked_mul(unit).ok_or("too long")?;
    Ok(Duration::from_secs(seconds))
}

/// Targets, each with a model, and the combinations left out.
type Runs = (Vec<(Target, Mode)>, Vec<LeftOut>);

impl Args {
    /// Returns the targets with their models, and the combinations left out with the reason.
    fn runs(&self) -> Result<Runs, Failure> {
        let (mut runs, mut left_out) = (Vec::new(), Vec::new());
        for target in self.index.each() {
            for &mode in self.model.modes() {
                let reason = match mode {
                    Mode::Word if !target.claims_word() => {
                        "it relies on the order of stores to one cache line, which the model word does not keep: \
                         docs/crash-model.md lists each target's models"
                    }
                    Mode::Process if self.mutants => {
                        "the model process loses no store, so omitting a persist has no effect: --mutants needs \
                         the model power or word"
                    }
                    _ => {
                        runs.push((target, mode));
                        continue;
                    }
                };
                left_out.push(LeftOut { target, mode, reason });
            }
        }
        match left_out.first() {
            Some(first) if runs.is_empty() && self.index.with_files().is_empty() => {
                Err(Failure::Usage(format!("{}: {}", first.target, first.reason)))
            }
            _ => Ok((runs, left_out)),
        }
    }

    /// Tortures the targets one after the other, and reports.
    pub fn run(self) -> Result<Outcome, Failure> {
        let (runs, left_out) = self.runs()?;
        crashkit::silence_findings();
        let mut found = false;
        for &target in self.index.with_files() {
            found |= matches!(self.torture_files(target)?, Outcome::Found);
        }
        let mut findings = Vec::new();
        for (target, mode) in runs {
            let finding = match target {
                Target::Index(kind) => {
                    let history = if self.mutants {
                        history::of_hunt
                    } else {
                        history::of_map
                    };
                    self.torture(target, mode, OfIndex::listed(kind), history)
                }
                Target::Database(batches) => self.torture(target, mode, batches, batches::history),
                Target::Items => self.torture(target, mode, Items::default(), items::history),
                Target::Heap | Target::All | Target::Log | Target::Disk => {
                    self.torture(target, mode, Blobs, blobs::history)
                }
            };
            let finding = finding.map_err(Failure::Torture)?;
            found |= finding.is_bad();
            if self.json {
                let mut out = output();
                finding.write_json(&mut out)?;
                out.flush()?;
            }
            findings.push(finding);
        }
        let mut out = output();
        if findings.is_empty() && left_out.is_empty() {
            // Only targets that write files were requested; `torture_files` has reported on them.
        } else if self.json {
            for one in &left_out {
                one.write_json(&mut out)?;
            }
        } else {
            report::print(&mut out, &findings, &left_out)?;
        }
        out.flush()?;
        Ok(if found { Outcome::Found } else { Outcome::Done })
    }

    fn torture<S: Subject>(
        &self,
        target: Target,
        mode: Mode,
        subject: S,
        history: impl Fn(u64, usize, u32) -> History<S::Op>,
    ) -> Result<Finding, String> {
        let settings = Settings {
            model: MemoryModel::from(mode),
            seed: self.seed,
            aimed: self.aimed,
            ..Settings::default()
        };
        let bar = self.bar(&subject.name());
        let started = Instant::now();
        let more = |report: &Report| {
            let done = match self.states {
                Some(_) => report.states + report.mutant_states,
                None => started.elapsed().as_millis() as u64,
            };
            bar.set_position(done);
            bar.set_message(bar_message(report));
            // A history requested by its seed is run to its end.
            self.history.is_some() || done < self.limit()
        };
        let threads = |number: u64| match self.threads {
            0 => 1 + (number % 4) as u32,
            threads => threads,
        };
        let nth = |number: u64| history(self.seed.wrapping_add(number), self.ops, threads(number));
        let histories = match self.history {
            Some(seed) => seed.wrapping_sub(self.seed)..=seed.wrapping_sub(self.seed),
            None => 0..=u64::MAX,
        };
        let mut explorer = Explorer::new(subject, settings)?;
        if self.states.is_none() && self.history.is_none() {
            explorer.stop_at(started + self.time());
        }
        let mut hunted = None;
        let failed = if self.mutants {
            match explorer.hunt(histories.map(nth), IMAGES, more) {
                Ok(all) => {
                    hunted = Some(all);
                    None
                }
                Err(failure) => Some((nth(failure.seed.wrapping_sub(self.seed)), failure)),
            }
        } else {
            let mut failed = None;
            for history in histories.map(nth) {
                if !more(explorer.report()) {
                    break;
                }
                if let Err(failure) = explorer.explore(&history) {
                    failed = Some((history, failure));
                    break;
                }
            }
            failed
        };
        let counterexample = failed.map(|(history, failure)| {
            bar.set_message("shrinking the counterexample");
            let shrunk = explorer.shrink(&history, failure, TRIES).1;
            self.counterexample(target, mode, history.threads, shrunk)
        });
        bar.finish_and_clear();
        Ok(Finding {
            report: explorer.into_report(),
            threads: self.threads,
            counterexample,
            hunted,
        })
    }

    /// Returns the failure with the command that reproduces it: its history alone, with as many threads.
    fn counterexample(
        &self,
        target: Target,
        mode: Mode,
        threads: u32,
        failure: Box<crashkit::Failure>,
    ) -> Counterexample {
        let mutants = if self.mutants { " --mutants" } else { "" };
        Counterexample {
            again: format!(
                "wollemi-lab torture --index {target} --model {mode} --seed {} --ops {} --threads {threads} --aimed {} --history {}{mutants}",
                self.seed, self.ops, self.aimed, failure.seed,
            ),
            failure,
        }
    }

    /// Returns the limit, in states or in milliseconds.
    fn limit(&self) -> u64 {
        self.states.unwrap_or(self.time().as_millis() as u64)
    }

    fn time(&self) -> Duration {
        self.budget.unwrap_or(Duration::from_secs(60))
    }

    /// Makes a progress bar, which shows on a terminal only.
    fn bar(&self, name: &str) -> ProgressBar {
        let bar = ProgressBar::new(self.limit());
        if let Ok(style) = ProgressStyle::with_template("{prefix} {wide_bar} {msg} [{elapsed}]") {
            bar.set_style(style);
        }
        bar.with_prefix(name.to_owned())
    }
}

/// Returns the progress bar's message.
fn bar_message(report: &Report) -> String {
    let states = report.states + report.mutant_states;
    let hunted = match report.mutants {
        (0, _) => String::new(),
        (mutants, killed) => format!(", {killed} of {mutants} mutants killed"),
    };
    format!("{states} states, {} histories{hunted}", report.histories)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Durations are parsed, and other texts refused.
    #[test]
    fn times() {
        assert_eq!(time("90"), Ok(Duration::from_secs(90)));
        assert_eq!(time("60s"), Ok(Duration::from_secs(60)));
        assert_eq!(time("5m"), Ok(Duration::from_secs(300)));
        assert_eq!(time("1h"), Ok(Duration::from_secs(3600)));
        for text in ["", "s", "5ms", "-1", "99999999999999999h", "1\u{e9}"] {
            time(text).expect_err(text);
        }
    }

    /// The bar shows the number of judged states, and the progress of a hunt.
    #[test]
    fn the_bar_shows_progress() {
        let mut explorer = Explorer::new(Blobs, Settings::default()).expect("memory");
        assert_eq!(bar_message(explorer.report()), "0 states, 0 histories");
        let histories = || std::iter::once(blobs::history(1, 2, 1));
        let mut messages = Vec::new();
        let more = |report: &Report| {
            messages.push(bar_message(report));
            messages.len() < 40
        };
        explorer.hunt(histories(), IMAGES, more).expect("no failure");
        let last = messages.last().expect("asked");
        assert!(
            last.contains(" 1 histories, ") && last.ends_with(" mutants killed"),
            "{last}"
        );
        let report = explorer.report();
        assert!(report.mutants.1 > 0, "{last}");
        // `more` returns false from the 40th call on.
        assert!(messages.len() <= 41, "the hunt ends when `more` returns false");
    }
}
