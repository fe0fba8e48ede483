//! What `torture` says: a table, the mutants, the counterexamples; or a line of JSON for each.

use crashtest::coverage::Coverage;
use crashtest::{Failure, Fate, Hunted, Justified, Report};
use indicatif::HumanCount;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// What became of one index.
pub struct Finding {
    pub report: Report,
    /// As asked for: 0 is a mix.
    pub threads: u32,
    /// The shrunk failure.
    pub counterexample: Option<Box<Failure>>,
    /// The mutants, if they were asked for.
    pub hunted: Option<Vec<Hunted>>,
}

#[derive(Serialize)]
struct Line<'a> {
    index: &'a str,
    model: String,
    seed: u64,
    threads: u32,
    histories: u64,
    operations: u64,
    crash_points: u64,
    images: u64,
    states: u64,
    again: u64,
    seconds: f64,
    states_per_s: f64,
    failures: usize,
    reached: Reached<'a>,
    mutants: Option<usize>,
    killed: Option<usize>,
    mutant_states: Option<u64>,
    survivors: Option<Vec<Survivor>>,
    untried: Option<Vec<String>>,
    counterexample: Option<String>,
}

#[derive(Serialize)]
struct Reached<'a> {
    operations: &'a BTreeMap<String, u64>,
    changes: &'a BTreeMap<String, u64>,
    pages: u64,
    repairs: BTreeMap<String, u64>,
}

impl<'a> Reached<'a> {
    fn of(coverage: &'a Coverage) -> Reached<'a> {
        Reached {
            operations: &coverage.operations,
            changes: &coverage.changes,
            pages: coverage.pages,
            repairs: coverage
                .repairs()
                .map(|(site, count)| (site.to_string(), count))
                .collect(),
        }
    }
}

#[derive(Serialize)]
struct Survivor {
    persist: String,
    left_out: u64,
    reason: Option<&'static str>,
}

impl Finding {
    /// Whether anything failed, or survived for no known reason.
    pub fn is_bad(&self) -> bool {
        self.counterexample.is_some() || self.survivors().iter().any(|one| one.reason.is_none())
    }

    fn survivors(&self) -> Vec<Justified<'_>> {
        Justified::of(self.hunted.as_deref().unwrap_or_default())
    }

    /// Mutants of which nothing was seen: longer, they would be.
    fn untried(&self) -> impl Iterator<Item = &Hunted> {
        let hunted = self.hunted.as_deref().unwrap_or_default();
        hunted.iter().filter(|one| matches!(one.fate, Fate::Untried))
    }

    /// Writes one line of JSON.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let report = &self.report;
        let survivor = |one: Justified<'_>| Survivor {
            persist: one.hunted.mutant.to_string(),
            left_out: one.hunted.lacking,
            reason: one.reason,
        };
        let line = Line {
            index: &report.subject,
            model: report.model.mode.to_string(),
            seed: report.seed,
            threads: self.threads,
            histories: report.histories,
            operations: report.operations,
            crash_points: report.crash_points,
            images: report.images,
            states: report.states,
            again: report.again,
            seconds: report.elapsed.as_secs_f64(),
            states_per_s: report.states_per_s(),
            failures: report.failures.len(),
            reached: Reached::of(&report.coverage),
            mutants: self.hunted.as_ref().map(Vec::len),
            killed: self.hunted.as_ref().map(|_| report.mutants.1),
            mutant_states: self.hunted.as_ref().map(|_| report.mutant_states),
            survivors: self
                .hunted
                .is_some()
                .then(|| self.survivors().into_iter().map(survivor).collect()),
            untried: self
                .hunted
                .as_ref()
                .map(|_| self.untried().map(|one| one.mutant.to_string()).collect()),
            counterexample: self.counterexample.as_ref().map(ToString::to_string),
        };
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)
    }
}

/// Writes the table, then the mutants, then the counterexamples.
pub fn print(out: &mut impl Write, findings: &[Finding]) -> io::Result<()> {
    writeln!(
        out,
        "{:<20} {:>7} {:>9} {:>12} {:>12} {:>12} {:>7} {:>8} {:>8}",
        "index", "model", "histories", "crash points", "images", "states", "again", "states/s", "failures"
    )?;
    for Finding { report, .. } in findings {
        writeln!(
            out,
            "{:<20} {:>7} {:>9} {:>12} {:>12} {:>12} {:>7} {:>8} {:>8}",
            report.subject,
            report.model.mode.to_string(),
            HumanCount(report.histories).to_string(),
            HumanCount(report.crash_points).to_string(),
            HumanCount(report.images).to_string(),
            HumanCount(report.states).to_string(),
            HumanCount(report.again).to_string(),
            HumanCount(report.states_per_s() as u64).to_string(),
            report.failures.len(),
        )?;
    }
    for Finding { report, .. } in findings {
        print_reached(out, report)?;
    }
    for finding in findings {
        print_mutants(out, finding)?;
    }
    for Finding {
        report,
        counterexample,
        ..
    } in findings
    {
        if let Some(failure) = counterexample {
            write!(
                out,
                "\n{} FAILS (model {}, seed {}): {failure}",
                report.subject, report.model.mode, report.seed
            )?;
        }
    }
    Ok(())
}

/// Writes what the operations were amid which crashes were judged, and what they and recovery did.
fn print_reached(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let reached = Reached::of(&report.coverage);
    writeln!(out, "\nreached by {}:", report.subject)?;
    let listed = |counts: &BTreeMap<String, u64>, times: &str| {
        let each = counts
            .iter()
            .map(|(what, count)| format!("{}{times} {what}", HumanCount(*count)));
        each.collect::<Vec<_>>()
    };
    writeln!(out, "  operations: {}", listed(reached.operations, "").join(", "))?;
    writeln!(out, "  operations that took pages: {}", HumanCount(reached.pages))?;
    for (what, counts) in [
        ("changes of structure", reached.changes),
        ("lines that store only after a crash", &reached.repairs),
    ] {
        writeln!(out, "  {what}: {}", if counts.is_empty() { "none" } else { "" })?;
        for one in listed(counts, " x") {
            writeln!(out, "    {one}")?;
        }
    }
    Ok(())
}

fn print_mutants(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    let Some(hunted) = &finding.hunted else {
        return Ok(());
    };
    let survivors = finding.survivors();
    writeln!(out, "\nmutants of {}:", finding.report.subject)?;
    for one in hunted {
        let (fate, why) = match &one.fate {
            Fate::Killed(failure) => ("killed", failure.message.as_str()),
            Fate::Untried => ("untried", "nothing followed so far came to where it matters"),
            Fate::Survived => {
                let same = survivors.iter().find(|other| std::ptr::eq(other.hunted, one));
                match same.and_then(|one| one.reason) {
                    Some(reason) => ("kept", reason),
                    None => ("SURVIVED", "for no known reason"),
                }
            }
        };
        let why = why.lines().next().unwrap_or_default();
        writeln!(out, "  {fate:<8}  {}: {why}", one.mutant)?;
    }
    let unexplained = survivors.iter().filter(|one| one.reason.is_none()).count();
    writeln!(
        out,
        "  {} mutants, {} killed, {} survivors, {unexplained} of them for no known reason, {} untried; {} states in {:.0} s",
        hunted.len(),
        finding.report.mutants.1,
        survivors.len(),
        finding.untried().count(),
        HumanCount(finding.report.mutant_states),
        finding.report.mutant_elapsed.as_secs_f64(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crashtest::blobs::{self, Blobs};
    use crashtest::{Explorer, Settings};

    fn finding(counterexample: Option<Box<Failure>>) -> Finding {
        let mut explorer = Explorer::new(Blobs, Settings::default()).expect("memory");
        explorer.explore(&blobs::history(1, 2, 1)).expect("no failure");
        Finding {
            report: explorer.into_report(),
            threads: 1,
            counterexample,
            hunted: None,
        }
    }

    /// A failure is bad, is printed whole, and stands in the JSON.
    #[test]
    fn failures_are_told() {
        assert!(!finding(None).is_bad());
        let failure = Failure {
            message: "it holds nothing".into(),
            operations: vec!["put 1".into()],
            ..Failure::default()
        };
        let finding = finding(Some(Box::new(failure)));
        assert!(finding.is_bad());
        let mut json = Vec::new();
        finding.write_json(&mut json).expect("memory");
        let json: serde_json::Value = serde_json::from_slice(&json).expect("one line of JSON");
        let counterexample = json["counterexample"].as_str().unwrap_or_default();
        assert!(counterexample.contains("it holds nothing"), "{json}");
        let mut table = Vec::new();
        print(&mut table, &[finding]).expect("memory");
        let table = String::from_utf8(table).expect("text");
        assert!(
            table.contains("heap FAILS (model power, seed 1): it holds nothing"),
            "{table}"
        );
        assert!(table.contains("    put 1\n"), "{table}");
    }
}
