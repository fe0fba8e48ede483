//! `torture --index log` and `--index disk`: the log of level `disk`, and the database, on a disk that loses data and
//! fails.

use super::target::Target;
use super::{Args, output};
use crate::exit::{Failure, Outcome};
use ::torture::bounds::{Bounds, Report};
use ::torture::log::Damaged;
use ::torture::syncs::{SyncFate, hunt};
use ::torture::{disk, log};
use std::io::Write;
use std::time::{Duration, Instant};

/// The number of judged states per damaged file.
const STATES_PER_DAMAGE: u64 = 10;

impl Args {
    /// Tortures the log or the database, damages its files, and reports.
    pub(super) fn torture_files(&self, target: Target) -> Result<Outcome, Failure> {
        let (torture, damage): (Torture, Damage) = match target {
            Target::Disk => (disk::torture, disk::damage),
            _ => (log::torture, log::damage),
        };
        let bounds = Bounds {
            seed: self.history.unwrap_or(self.seed),
            steps: self.ops.min(60),
            histories: if self.history.is_some() { 1 } else { u64::MAX },
            states: self.states.unwrap_or(u64::MAX),
            // As for the other targets, a number of states has no time limit.
            budget: if self.states.is_some() {
                Duration::MAX
            } else {
                self.time()
            },
            ..Bounds::default()
        };
        let started = Instant::now();
        let tortured = torture(&bounds);
        let seconds = started.elapsed().as_secs_f64();
        let states = tortured.as_ref().map_or(0, |report| report.states);
        let damaged = damage(bounds.seed, self.damage.unwrap_or(states / STATES_PER_DAMAGE));
        let mut out = output();
        if !self.json {
            print(&mut out, target, &tortured, &damaged, seconds)?;
            out.flush()?;
        }
        let mut written = Ok(());
        let hunted = match self.mutants && tortured.is_ok() {
            // Reports each outcome as it becomes known, since each run may use the whole budget.
            true => hunt(&bounds, torture, |fate| {
                if !self.json && written.is_ok() {
                    written = write_fate(&mut out, fate);
                }
            }),
            false => Ok(Vec::new()),
        };
        written?;
        let (hunted, unsound) = match hunted {
            Ok(hunted) => (hunted, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        if let (Some(failure), false) = (&unsound, self.json) {
            writeln!(out, "{target} FAILS: {failure}")?;
        }
        let tortured = unsound.map_or(tortured, Err);
        if self.json {
            write_json(&mut out, target, &tortured, &damaged, &hunted, seconds)?;
        }
        out.flush()?;
        let missed = hunted.iter().any(|fate| fate.found.is_none());
        Ok(match tortured.is_err() || damaged.is_err() || missed {
            true => Outcome::Found,
            false => Outcome::Done,
        })
    }
}

/// Explores histories within bounds.
type Torture = fn(&Bounds) -> Result<Report, String>;

/// Damages files: takes a seed and the number of mutations.
type Damage = fn(u64, u64) -> Result<Damaged, String>;

type Tortured = Result<Report, String>;
type Judged = Result<Damaged, String>;

fn print(
    out: &mut impl Write,
    target: Target,
    tortured: &Tortured,
    damaged: &Judged,
    seconds: f64,
) -> std::io::Result<()> {
    match tortured {
        Ok(report) => writeln!(out, "{target}: {report}, in {seconds:.0} s")?,
        Err(failure) => writeln!(out, "{target} FAILS: {failure}")?,
    }
    match damaged {
        Ok(report) => writeln!(
            out,
            "{target}, damaged: {} files changed or exchanged, {} refused with an error, {} opened with their whole content",
            report.mutations, report.refused, report.whole
        )?,
        Err(failure) => writeln!(out, "{target}, damaged, FAILS: {failure}")?,
    }
    Ok(())
}

/// Writes the outcome of omitting a sync.
fn write_fate(out: &mut impl Write, fate: &SyncFate) -> std::io::Result<()> {
    let (what, found) = match &fate.found {
        Some(found) => ("killed", found.lines().next().unwrap_or_default()),
        None => ("SURVIVED", ""),
    };
    writeln!(out, "  {what:<8}  without the sync at {}: {found}", fate.site)?;
    out.flush()
}

fn write_json(
    out: &mut impl Write,
    target: Target,
    tortured: &Tortured,
    damaged: &Judged,
    hunted: &[SyncFate],
    seconds: f64,
) -> std::io::Result<()> {
    let report = tortured.as_ref().cloned().unwrap_or_default();
    let counts = damaged.as_ref().copied().unwrap_or_default();
    let survivors = hunted.iter().filter(|fate| fate.found.is_none());
    let line = serde_json::json!({
        "index": target.to_string(),
        "histories": report.histories,
        "crash_points": report.crash_points,
        "states": report.states,
        "kills": report.kills,
        "again": report.again,
        "faults": report.faults,
        "seconds": seconds,
        "counterexample": tortured.as_ref().err(),
        "damaged": counts.mutations,
        "damaged_refused": counts.refused,
        "damaged_whole": counts.whole,
        "damaged_counterexample": damaged.as_ref().err(),
        "mutants": hunted.len(),
        "survivors": survivors.map(|fate| fate.site.to_string()).collect::<Vec<_>>(),
    });
    serde_json::to_writer(&mut *out, &line)?;
    writeln!(out)
}
