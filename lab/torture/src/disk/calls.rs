//! Fails each call of the disk in turn: of a process that creates a database, of one that replays the log after a kill,
//! and of one that rebuilds the pool after a loss of power. The histories of [`torture`](super::torture) fail calls
//! drawn at random.

use super::explore::open_and_judge;
use super::history::{CrashState, Draw, History, run};
use super::notes::Allowed;
use super::state::State;
use super::trouble::Trouble;
use crashkit::Random;
use crashkit::disk::{DiskFault, FaultKind, Medium, images};
use std::collections::BTreeMap;

/// Images after a loss of power that are judged at the end of a history.
const IMAGES: usize = 3;

/// Counts of the calls that failed, one in each history.
#[derive(Debug, Default)]
pub struct FailedCalls {
    /// The number of histories with a failed call.
    pub histories: u64,
    /// The number of failed calls, by operation as errors name it.
    pub operations: BTreeMap<&'static str, u64>,
}

/// What a process begins with.
struct Start {
    name: &'static str,
    left: CrashState,
    allowed: Allowed,
    last_value: u64,
}

/// For each way of failing, runs each history once for each of its calls that can fail in that way, with that call
/// failing. Judges what a loss of power, a kill and a clean close then leave.
///
/// # Errors
///
/// What was wrong, with the failed call.
pub fn each_call(seed: u64, steps: usize) -> Result<FailedCalls, String> {
    let mut counts = FailedCalls::default();
    let starts = starts(seed, steps);
    let starts = starts.map_err(|trouble| format!("seed {seed}, without a failing call: {trouble}"))?;
    for start in &starts {
        for kind in [FaultKind::Io, FaultKind::Short, FaultKind::Full] {
            let mut call = 0;
            while let Some(struck) = fail(
                start,
                (seed, steps),
                DiskFault {
                    call,
                    kind,
                    lasting: false,
                },
                &mut counts,
            )? {
                call = struck + 1;
            }
        }
    }
    Ok(counts)
}

/// Runs the history with this fault, and judges it. Returns the number of the call that failed; `None` if none did.
fn fail(
    start: &Start,
    (seed, steps): (u64, usize),
    fault: DiskFault,
    counts: &mut FailedCalls,
) -> Result<Option<u64>, String> {
    let mut random = Random(seed);
    let draw = Draw {
        steps,
        last_value: start.last_value,
        fault: Some(fault),
        skip: None,
    };
    let wrong = |trouble: Trouble| format!("seed {seed}, {}, {fault:?}: {trouble}", start.name);
    let history = run(&start.left, &start.allowed, draw, &mut random).map_err(wrong)?;
    let Some(struck) = history.failed.first() else {
        return Ok(None);
    };
    counts.histories += 1;
    *counts.operations.entry(struck.operation).or_default() += 1;
    judge(&history, &mut random).map_err(|trouble| wrong(Trouble::Wrong(format!("{struck}: {trouble}"))))?;
    Ok(Some(struck.number))
}

/// Runs a history without a failing call. Returns what it begins with, and what a kill and a loss of power in its
/// middle leave.
fn starts(seed: u64, steps: usize) -> Result<[Start; 3], Trouble> {
    let nothing = Start {
        name: "a new database",
        left: CrashState {
            medium: Medium::default(),
            pool: None,
        },
        allowed: Allowed::only(State::default()),
        last_value: 0,
    };
    let mut random = Random(seed);
    let draw = Draw {
        // In the second half of the history its checkpoints have runs, with the log behind them.
        steps: 4 * steps,
        last_value: 0,
        fault: None,
        skip: None,
    };
    let history = run(&nothing.left, &nothing.allowed, draw, &mut random)?;
    let middle = history.events.len() / 2;
    let kill = history
        .kills
        .iter()
        .find(|kill| kill.events >= middle && kill.pool.is_some());
    let kill = kill.ok_or_else(|| Trouble::Wrong("the history has no kill in its second half".into()))?;
    let mut medium = history.base.clone();
    history.events[..kill.events]
        .iter()
        .for_each(|event| _ = medium.apply(event));
    let next = history.events.get(kill.events).filter(|_| kill.amid);
    let killed = Start {
        name: "after a kill",
        left: CrashState {
            medium: medium.killed(next, &mut random),
            pool: kill.pool.clone(),
        },
        allowed: history.notes.allowed(kill.bounds),
        last_value: history.last_value,
    };
    let newest: Vec<_> = medium.choices().iter().map(|ways| ways - 1).collect();
    let lost = Start {
        name: "after a loss of power",
        left: CrashState {
            medium: medium.image(&newest),
            pool: None,
        },
        allowed: history.notes.allowed(history.bounds[kill.events]),
        last_value: history.last_value,
    };
    Ok([nothing, killed, lost])
}

/// Judges what the end of a history leaves: after a loss of power, and, with the pool, after a kill or a clean close.
fn judge(history: &History, random: &mut Random) -> Result<(), Trouble> {
    let mut medium = history.base.clone();
    history.events.iter().for_each(|event| _ = medium.apply(event));
    let last = history.bounds[history.events.len()];
    let mut states = Vec::new();
    for picks in images(&medium.choices(), IMAGES, random) {
        states.push((medium.image(&picks), None, last));
    }
    for kill in history
        .kills
        .iter()
        .filter(|kill| kill.events == history.events.len())
    {
        states.push((medium.killed(None, random), kill.pool.clone(), kill.bounds));
    }
    if let Some(closed) = &history.closed {
        states.push((medium.clone(), Some(closed.clone()), last));
    }
    for (medium, pool, bounds) in states {
        let left = CrashState { medium, pool };
        open_and_judge(&left, &history.notes.allowed(bounds), false, None, random)?;
    }
    Ok(())
}
