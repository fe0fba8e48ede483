//! `torture --index log`: the log of level `disk` on a disk that loses and fails.

use super::{Args, output};
use crate::exit::{Failure, Outcome};
use ::torture::log::{Bounds, Damaged, Fate, Report, damage, hunt, torture};
use std::io::Write;
use std::time::Instant;

/// Damaged files for each ten judged states.
const DAMAGE: u64 = 1;

impl Args {
    /// Tortures the log, damages it, and reports.
    pub(super) fn torture_log(&self) -> Result<Outcome, Failure> {
        let bounds = Bounds {
            seed: self.history.unwrap_or(self.seed),
            steps: self.ops.min(60),
            histories: if self.history.is_some() { 1 } else { u64::MAX },
            states: self.states.unwrap_or(u64::MAX),
            budget: self.time(),
            ..Bounds::default()
        };
        let started = Instant::now();
        let tortured = torture(&bounds);
        let seconds = started.elapsed().as_secs_f64();
        let mutations = tortured.as_ref().map_or(0, |report| report.states / 10 * DAMAGE);
        let damaged = damage(bounds.seed, mutations);
        let hunted = match self.mutants {
            true => hunt(&bounds).unwrap_or_default(),
            false => Vec::new(),
        };
        let mut out = output();
        match self.json {
            true => write_json(&mut out, &tortured, &damaged, &hunted, seconds)?,
            false => print(&mut out, &tortured, &damaged, &hunted, seconds)?,
        }
        out.flush()?;
        let missed = hunted.iter().any(|fate| fate.found.is_none());
        Ok(match tortured.is_err() || damaged.is_err() || missed {
            true => Outcome::Found,
            false => Outcome::Done,
        })
    }
}

type Tortured = Result<Report, String>;
type Judged = Result<Damaged, String>;

fn print(
    out: &mut impl Write,
    tortured: &Tortured,
    damaged: &Judged,
    hunted: &[Fate],
    seconds: f64,
) -> std::io::Result<()> {
    match tortured {
        Ok(report) => writeln!(out, "log: {report}, in {seconds:.0} s")?,
        Err(failure) => writeln!(out, "log FAILS: {failure}")?,
    }
    match damaged {
        Ok(report) => writeln!(
            out,
            "damaged logs: {} files changed or exchanged, {} refused with an error, {} opened with all their records",
            report.mutations, report.refused, report.whole
        )?,
        Err(failure) => writeln!(out, "damaged log FAILS: {failure}")?,
    }
    for fate in hunted {
        let (what, found) = match &fate.found {
            Some(found) => ("killed", found.lines().next().unwrap_or_default()),
            None => ("SURVIVED", ""),
        };
        writeln!(out, "  {what:<8}  without the sync at {}: {found}", fate.site)?;
    }
    Ok(())
}

fn write_json(
    out: &mut impl Write,
    tortured: &Tortured,
    damaged: &Judged,
    hunted: &[Fate],
    seconds: f64,
) -> std::io::Result<()> {
    let report = tortured.as_ref().cloned().unwrap_or_default();
    let counts = damaged.as_ref().copied().unwrap_or_default();
    let survivors = hunted.iter().filter(|fate| fate.found.is_none());
    let line = serde_json::json!({
        "index": "log",
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
