//! The output of `torture`: a table, the mutants and the counterexamples, or a line of JSON per target and model.

use super::target::Target;
use crashkit::coverage::Coverage;
use crashkit::{Failure, Fate, Hunted, Mode, Report};
use indicatif::HumanCount;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};

/// The result for one target in one model.
pub struct Finding {
    pub report: Report,
    /// The requested number of threads; 0: one to four in turn.
    pub threads: u32,
    /// The shrunk failure.
    pub counterexample: Option<Counterexample>,
    /// The mutants, with `--mutants`.
    pub hunted: Option<Vec<Hunted>>,
}

/// A model in which a target was not judged.
pub struct LeftOut {
    pub target: Target,
    pub mode: Mode,
    pub reason: &'static str,
}

impl LeftOut {
    /// Writes one line of JSON.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let line = serde_json::json!({
            "index": self.target.to_string(),
            "model": self.mode.to_string(),
            "left_out": self.reason,
        });
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)
    }
}

/// A failure, and the command that reproduces it.
pub struct Counterexample {
    pub failure: Box<Failure>,
    pub again: String,
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
    schedules: u64,
    preemptions: u64,
    shared_words: u64,
    orders: u64,
    orders_seen: u64,
    seconds: f64,
    states_per_s: f64,
    failures: usize,
    reached: Reached<'a>,
    mutants: Option<usize>,
    killed: Option<usize>,
    mutant_states: Option<u64>,
    survivors: Option<Vec<Survivor>>,
    counterexample: Option<String>,
    command: Option<&'a str>,
}

#[derive(Serialize)]
struct Reached<'a> {
    operations: &'a BTreeMap<String, u64>,
    changes: &'a BTreeMap<String, u64>,
    steps: &'a BTreeMap<&'static str, u64>,
    pages: u64,
    repairs: BTreeMap<String, u64>,
}

impl<'a> Reached<'a> {
    fn of(coverage: &'a Coverage) -> Reached<'a> {
        Reached {
            operations: &coverage.operations,
            changes: &coverage.changes,
            steps: &coverage.steps,
            pages: coverage.pages,
            repairs: coverage
                .repairs()
                .map(|(site, count)| (site.to_string(), count))
                .collect(),
        }
    }
}

/// A mutant that was not killed.
#[derive(Serialize)]
struct Survivor {
    persist: String,
    /// How often the persist was omitted; 0: no run reached the place where it matters.
    left_out: u64,
    reason: Option<&'static str>,
}

impl Finding {
    /// Returns whether a history failed, or a mutant survived without a known reason.
    pub fn is_bad(&self) -> bool {
        self.counterexample.is_some() || self.survivors().any(Hunted::is_unexplained)
    }

    fn survivors(&self) -> impl Iterator<Item = &Hunted> {
        let hunted = self.hunted.as_deref().unwrap_or_default();
        hunted.iter().filter(|one| !one.is_killed())
    }

    /// Writes one line of JSON.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        let report = &self.report;
        let survivor = |one: &Hunted| Survivor {
            persist: one.mutant.to_string(),
            left_out: one.lacking,
            reason: one.reason,
        };
        let (orders, orders_seen) = report.met.orders();
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
            schedules: report.met.schedules,
            preemptions: report.met.preemptions,
            shared_words: report.met.words,
            orders,
            orders_seen,
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
                .then(|| self.survivors().map(survivor).collect()),
            counterexample: self.counterexample.as_ref().map(|one| one.failure.to_string()),
            command: self.counterexample.as_ref().map(|one| &*one.again),
        };
        serde_json::to_writer(&mut *out, &line)?;
        writeln!(out)
    }
}

/// Writes the table, then the mutants, then the counterexamples.
pub fn print(out: &mut impl Write, findings: &[Finding], left_out: &[LeftOut]) -> io::Result<()> {
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
    for LeftOut { target, mode, reason } in left_out {
        writeln!(
            out,
            "{:<20} {:>7} left out: {reason}",
            target.to_string(),
            mode.to_string()
        )?;
    }
    for Finding { report, .. } in findings {
        print_met(out, report)?;
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
        if let Some(Counterexample { failure, again }) = counterexample {
            write!(
                out,
                "\n{} FAILS (model {}, seed {}): {failure}  again: {again}\n",
                report.subject, report.model.mode, report.seed
            )?;
        }
    }
    Ok(())
}

/// Writes the statistics of the logical threads' meetings.
fn print_met(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let (met, number) = (&report.met, |count| HumanCount(count).to_string());
    if met.schedules == 0 {
        return Ok(());
    }
    let (orders, seen) = met.orders();
    writeln!(
        out,
        "\nthreads of {} ({}): {} schedules, {} preemptions, {} words shared by two threads, {} of {} orders seen in which \
         their lines of source can meet",
        report.subject,
        report.model.mode,
        number(met.schedules),
        number(met.preemptions),
        number(met.words),
        number(seen),
        number(orders),
    )
}

/// Writes the operations during which crashes were judged, their changes of structure, and recovery's repairs.
fn print_reached(out: &mut impl Write, report: &Report) -> io::Result<()> {
    let reached = Reached::of(&report.coverage);
    writeln!(out, "\nreached by {}:", report.subject)?;
    fn listed<'c>(counts: impl Iterator<Item = (&'c str, u64)>, times: &str) -> Vec<String> {
        counts
            .map(|(what, count)| format!("{}{times} {what}", HumanCount(count)))
            .collect()
    }
    let named = |counts: &BTreeMap<String, u64>| -> Vec<String> {
        listed(counts.iter().map(|(what, &count)| (&**what, count)), " x")
    };
    let operations = reached.operations.iter().map(|(what, &count)| (&**what, count));
    writeln!(out, "  operations: {}", listed(operations, "").join(", "))?;
    writeln!(out, "  operations that took pages: {}", HumanCount(reached.pages))?;
    let steps = reached.steps.iter().map(|(what, &count)| (*what, count));
    for (what, each) in [
        ("changes of structure", named(reached.changes)),
        ("steps of larger changes", listed(steps, " x")),
        ("lines that store only after a crash", named(&reached.repairs)),
    ] {
        writeln!(out, "  {what}: {}", if each.is_empty() { "none" } else { "" })?;
        for one in each {
            writeln!(out, "    {one}")?;
        }
    }
    Ok(())
}

fn print_mutants(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    let Some(hunted) = &finding.hunted else {
        return Ok(());
    };
    writeln!(out, "\nmutants of {}:", finding.report.subject)?;
    for one in hunted {
        let (fate, why) = match (&one.fate, one.reason) {
            (Fate::Killed(failure), _) => ("killed", failure.message.as_str()),
            (_, Some(reason)) => ("kept", reason),
            (Fate::Untried, None) => ("UNTRIED", "no run reached the place where it matters"),
            (Fate::Survived, None) => ("SURVIVED", "no known reason"),
        };
        let why = why.lines().next().unwrap_or_default();
        writeln!(out, "  {fate:<8}  {}: {why}", one.mutant)?;
    }
    let (kept, unexplained) = finding
        .survivors()
        .fold((0, 0), |(kept, unexplained), one| match one.reason {
            Some(_) => (kept + 1, unexplained),
            None => (kept, unexplained + 1),
        });
    writeln!(
        out,
        "  {} mutants: {} killed, {kept} kept for a reason, {unexplained} survived without a known reason; {} states in {:.0} s",
        hunted.len(),
        finding.report.mutants.1,
        HumanCount(finding.report.mutant_states),
        finding.report.mutant_elapsed.as_secs_f64(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crashkit::blobs::{self, Blobs};
    use crashkit::{Explorer, Settings};

    fn finding(counterexample: Option<Counterexample>) -> Finding {
        let mut explorer = Explorer::new(Blobs, Settings::default()).expect("memory");
        explorer.explore(&blobs::history(1, 2, 1)).expect("no failure");
        Finding {
            report: explorer.into_report(),
            threads: 1,
            counterexample,
            hunted: None,
        }
    }

    /// A failure makes a finding bad, and both the table and the JSON show it entirely.
    #[test]
    fn failures_are_reported() {
        assert!(!finding(None).is_bad());
        let failure = Failure {
            message: "it holds nothing".into(),
            operations: vec!["put 1".into()],
            ..Failure::default()
        };
        let finding = finding(Some(Counterexample {
            failure: Box::new(failure),
            again: "wollemi-lab torture --history 7".into(),
        }));
        assert!(finding.is_bad());
        let mut json = Vec::new();
        finding.write_json(&mut json).expect("memory");
        let json: serde_json::Value = serde_json::from_slice(&json).expect("one line of JSON");
        let counterexample = json["counterexample"].as_str().unwrap_or_default();
        assert!(counterexample.contains("it holds nothing"), "{json}");
        assert_eq!(json["command"], "wollemi-lab torture --history 7");
        let mut table = Vec::new();
        print(&mut table, &[finding], &[]).expect("memory");
        let table = String::from_utf8(table).expect("text");
        assert!(
            table.contains("heap FAILS (model power, seed 1): it holds nothing"),
            "{table}"
        );
        assert!(table.contains("    put 1\n"), "{table}");
        assert!(
            table.ends_with("  again: wollemi-lab torture --history 7\n"),
            "{table}"
        );
    }
}
