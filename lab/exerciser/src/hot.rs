//! Hot keys: several threads contend for few hostile keys, in processes that are killed and restarted.
//!
//! Here no thread owns a key. Each records the request before each call and the answer after it, with the time on a
//! shared clock, in a mapped file that outlives the process. A generation is a process that opens the pool and
//! immediately makes calls, while recovery runs, until `kill -9`; the last one reads every key at the end, and checks
//! the pool. Then each key's history over all generations must be durably linearizable: acknowledged operations have
//! happened, and an operation in flight at a kill happened once before it, or never.
//!
//! | file | idea |
//! |---|---|
//! | `keys` | few hostile keys, and their neighbours |
//! | `values` | values that name their writes |
//! | `plan` | the choices that a seed determines for a pool |
//! | `mapped` | a mapped file of words |
//! | `ledger` | a thread's requests and answers |
//! | `worker` | a thread that calls |
//! | `generation` | a process, its threads, its kill |
//! | `judge` | histories by key, judged and cut down |
//!
//! The calls that a thread draws are a function of the seed and, where they expect a value, of answers. The seed also
//! determines the moments of kills, but the state at a kill depends on the machine.

mod generation;
mod judge;
mod keys;
mod ledger;
mod mapped;
mod plan;
mod values;
mod worker;

use crate::round::remove_pool;
use crate::{Failure, MAX_THREADS, Report, Settings};
use judge::Ledgers;
use plan::{Plan, shown};
use std::path::Path;
use std::time::Instant;

pub(crate) use generation::be_killed;

/// The first word of a child's text that makes it run a generation.
pub(crate) const SPEC: &str = "hot";

/// The name of the file that keeps the plan, for a later [`look`] at the ledgers of a failure.
const PLAN: &str = "hot.plan";

/// Exercises hot keys until the time or the number of calls is used up.
pub(crate) fn run(settings: &Settings, mut progress: impl FnMut(&Report)) -> Result<Report, Failure> {
    let started = Instant::now();
    let mut report = Report::default();
    for seed in settings.seed.. {
        let threads = settings.threads.min(MAX_THREADS);
        let plan = Plan::new(seed, threads, &settings.kinds, &settings.directory);
        let failure = |generation: u64, what: String| Failure {
            seed,
            round: generation,
            pool: plan.pool(),
            what: format!(
                "{what}\n{}\nThe pool, the ledgers and the plan are kept beside each other: \
                 wollemi-lab exercise --hot --look {} shows each key's whole history",
                plan.about(),
                plan.directory.display()
            ),
        };
        remove(&plan);
        let spec = Plan::spec(seed, threads, &settings.kinds, &settings.directory);
        let written = std::fs::write(plan.directory.join(PLAN), &spec);
        written.map_err(|error| failure(0, error.to_string()))?;
        plan.create().map_err(|what| failure(0, what))?;
        report.pools += 1;
        let Some(child) = settings.child else {
            return Err(failure(
                0,
                "hot keys require `child`, for processes that are killed".into(),
            ));
        };
        for generation in 0..=plan.killed {
            generation::run(&plan, generation, &spec, child).map_err(|what| {
                // The records up to here may explain the failure.
                let noted = Ledgers::read(&plan).map(|ledgers| {
                    let in_flight = format!(
                        "\nin flight in generation {generation}:\n{}",
                        ledgers.in_flight(generation)
                    );
                    let judged = ledgers.judge(&plan.keys);
                    in_flight + &judged.map_or_else(|wrong| format!("up to here {wrong}"), |()| String::new())
                });
                let noted = noted.unwrap_or_else(|wrong| format!("\n{wrong}"));
                failure(generation, what + &noted)
            })?;
            report.openings += 1;
            report.kills += u64::from(generation < plan.killed);
        }
        let ledgers = Ledgers::read(&plan).map_err(|what| failure(plan.killed, what))?;
        ledgers
            .judge(&plan.keys)
            .map_err(|what| failure(plan.killed, what))?;
        let calls = ledgers.calls();
        report.calls += calls.total();
        report.called.join(&calls);
        report.seconds = started.elapsed().as_secs_f64();
        progress(&report);
        remove(&plan);
        if report.calls >= settings.calls || started.elapsed() >= settings.budget {
            break;
        }
    }
    Ok(report)
}

/// Removes the pool, the plan and the ledgers from the plan's directory, whichever plan they belong to.
fn remove(plan: &Plan) {
    remove_pool(&plan.pool());
    // It may not exist.
    let _ = std::fs::remove_file(plan.directory.join(PLAN));
    for generation in 0..=plan::MAX_KILLS {
        for thread in 0..MAX_THREADS {
            let _ = std::fs::remove_file(ledger::path(&plan.directory, generation, thread));
        }
    }
}

/// Shows the ledgers that a failure has left in a directory: each key's history, and the judge's finding.
///
/// # Errors
///
/// The plan or a ledger cannot be read.
pub fn look(directory: &Path) -> Result<String, String> {
    let file = directory.join(PLAN);
    let spec = std::fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let mut plan = Plan::of_spec(&spec)?;
    // The directory may have been moved.
    directory.clone_into(&mut plan.directory);
    let ledgers = Ledgers::read(&plan)?;
    let mut text = format!("seed {}: {}\n", plan.seed, plan.about());
    for (at, key) in plan.keys.iter().enumerate() {
        text += &format!("key {at} {}\n{}", shown(key), ledgers.whole_history(at));
    }
    match ledgers.judge(&plan.keys) {
        Ok(()) => text += "every history is linearizable\n",
        Err(wrong) => text += &wrong,
    }
    Ok(text)
}
