//! `bench run`: measures one index and prints a line for each workload.
//!
//! The timed run issues every write-back and fence of the requested media. Unless that media counts itself, the persist
//! counts come from a second run of the same workloads on the counting media, so that counting does not slow the timed
//! run.

mod measure;
mod report;

use crate::distribution::{Distribution, THETA};
use crate::keys::KeyKind;
use crate::limit::Calibrator;
use crate::media::{Delay, MediaKind};
use crate::pass::Pace;
use crate::progress::Progress;
use crate::store::Place;
use crate::workload::{ScanLength, Workload};
use crate::{Error, records};
use clap::builder::ArgPredicate;
use measure::Input;
use pmem::{Delaying, Hardware, Observed};
use report::Report;
use std::path::PathBuf;
use std::time::Duration;
use wollemi::indexes::IndexKind;

/// Runs workloads on one index.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// Index
    #[arg(long, default_value_t, value_name = "NAME", value_parser = crate::index())]
    index: IndexKind,
    /// The workloads, separated by commas; they run one after the other on the same index
    #[arg(long, required = true, value_delimiter = ',', value_parser = Workload::parser())]
    workload: Vec<&'static Workload>,
    /// Keys in the index
    #[arg(long, default_value_t = 1_000_000, value_parser = crate::count)]
    keys: usize,
    /// The kind of keys
    #[arg(long, value_enum, default_value_t = KeyKind::U64, default_value_if("keys_from", ArgPredicate::IsPresent, "file"))]
    key_kind: KeyKind,
    /// A file with one key per line, for `--key-kind file` (the default with it); keys beyond `--keys` serve for
    /// inserts and misses
    #[arg(long, value_name = "PATH", required_if_eq("key_kind", "file"))]
    keys_from: Option<PathBuf>,
    /// The distribution of requested keys [default: the workload's own]
    #[arg(long, value_enum)]
    distribution: Option<Distribution>,
    /// The exponent of zipfian and latest
    #[arg(long, default_value_t = THETA, value_parser = exponent)]
    theta: f64,
    /// Number of keys that each scan reads: 100, 1..100, or 0.001% of all [default: the workload's own]
    #[arg(long, value_name = "KEYS")]
    scan_length: Option<ScanLength>,
    /// Number of operations [default: the number of keys; for scans a fiftieth of it]
    #[arg(long, value_parser = crate::count)]
    ops: Option<usize>,
    /// End each workload except the load after this time; a workload that only reads or updates repeats until then, one
    /// that inserts or removes ends early once its operations are done
    #[arg(long, value_parser = seconds)]
    seconds: Option<f64>,
    /// Open loop: this many operations per second are due, and latencies count from the due time
    #[arg(long, value_name = "OPS_A_SECOND", value_parser = positive)]
    rate: Option<f64>,
    /// Untimed reads before each workload except the load
    #[arg(long, default_value_t = 0, value_parser = crate::count_or_zero)]
    warm_up: usize,
    /// Threads that run the workload
    #[arg(long, default_value_t = 1, value_parser = crate::threads)]
    threads: usize,
    /// `anon` for memory, or the path of a new file (removed afterwards)
    #[arg(long, default_value = "anon", value_name = "anon|PATH")]
    pool: Place,
    /// The seed of the keys and their order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The media of the timed run
    #[arg(long, value_enum, default_value_t = MediaKind::Native)]
    media: MediaKind,
    /// With `--media delay`: the additional time of each fence, a preset or fence=NS,line=NS,block=NS [default: optane]
    #[arg(long, long_help = delay_help())]
    delay: Option<Delay>,
    /// Compare lookups with the limits of this memory: traces the lines they touch, and measures cache misses over as
    /// many bytes as the pool has
    #[arg(long, conflicts_with = "rate")]
    limit: bool,
    /// Do not run a second time to count write-backs and fences
    #[arg(long)]
    no_counts: bool,
    /// Print a line of JSON for each workload
    #[arg(long)]
    json: bool,
}

fn delay_help() -> String {
    format!(
        "With `--media delay`: the additional time of each fence, as fence=NS,line=NS,block=NS or\n{}\n[default: optane]",
        Delay::presets()
    )
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && number > 0.0 => Ok(number),
        _ => Err("not a positive number".into()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    const DAY: f64 = 86_400.0;
    positive(text).and_then(|seconds| {
        if seconds <= DAY {
            Ok(seconds)
        } else {
            Err("longer than a day".into())
        }
    })
}

fn exponent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(theta) if (0.0..=10.0).contains(&theta) => Ok(theta),
        _ => Err("not an exponent from 0 to 10".into()),
    }
}

impl RunArgs {
    /// Rejects options that would be ignored.
    fn check(&self) -> Result<(), Error> {
        let what = if self.keys_from.is_some() && self.key_kind != KeyKind::File {
            "--keys-from applies only to '--key-kind file'"
        } else if self.delay.is_some() && self.media != MediaKind::Delay {
            "--delay applies only to '--media delay'"
        } else {
            return Ok(());
        };
        Err(Error::Options(what))
    }

    /// Returns the additional time of each fence, on media that delay.
    fn delay(&self) -> Option<Delay> {
        let delay = || self.delay.clone().unwrap_or_default();
        (self.media == MediaKind::Delay).then(delay)
    }

    fn pace(&self, workload: &Workload) -> Pace {
        Pace {
            time: self.seconds.map(Duration::from_secs_f64),
            repeat: workload.repeats(),
            rate: self.rate,
        }
    }
}

/// Runs the workloads and prints a line for each.
pub fn run(args: &RunArgs) -> Result<(), Error> {
    records::print(args.json, &reports(args)?)
}

fn reports(args: &RunArgs) -> Result<Vec<Report>, Error> {
    args.check()?;
    Progress::new().say(format_args!("making {} keys", args.keys));
    let input = &Input::new(args)?;
    let (paths, reserved) = match args.limit {
        true => args
            .paths(input)
            .map(|(paths, space)| (paths, Some(space.reserved)))?,
        false => (vec![None; args.workload.len()], None),
    };
    let calibrator = match reserved {
        Some(reserved) => Calibrator::new(reserved, &args.pool, true)?,
        None => Calibrator::for_keys(args.keys, &args.pool, true)?,
    };
    let (place, calibrator) = (&args.pool, Some(calibrator));
    let mut timed = match args.media {
        MediaKind::Native => args.measure(Hardware::as_persistent(), place, input, None, calibrator)?,
        MediaKind::Process => args.measure(Hardware::detect(), place, input, None, calibrator)?,
        MediaKind::Counting => args.counted(place, input, calibrator)?,
        MediaKind::Delay => {
            let latency = args.delay().unwrap_or_default().latency;
            let media = Observed::Delaying(Delaying::new(Hardware::as_persistent(), latency));
            args.measure(media, place, input, None, calibrator)?
        }
    };
    let phases = std::mem::take(&mut timed.phases);
    let counts: Vec<_> = match args.media {
        MediaKind::Counting => phases
            .iter()
            .map(|phase| Some((phase.counts, phase.pass.ops)))
            .collect(),
        _ if args.no_counts => phases.iter().map(|_| None).collect(),
        _ => {
            let counted = args.counted(&Place::Anonymous, input, None)?.phases;
            counted
                .iter()
                .map(|phase| Some((phase.counts, phase.pass.ops)))
                .collect()
        }
    };
    let reports = phases.into_iter().zip(counts).zip(paths);
    Ok(reports
        .map(|((phase, counts), path)| Report::new(args, &timed, phase, counts, path))
        .collect())
}

#[cfg(test)]
mod tests;
