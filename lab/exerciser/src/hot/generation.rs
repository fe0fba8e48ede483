//! A generation: a process that opens the pool and immediately makes calls, while recovery runs, until it is killed;
//! the last one ends by itself, after it has read every key and checked the pool.

use super::SPEC;
use super::ledger::{self, Ledger, Watcher, first_moment};
use super::plan::{MAP, Plan};
use super::worker::Worker;
use crate::power;
use crate::random::Random;
use crate::worker::Wrong;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use wollemi::{Db, RecoveryState};

/// Upper bound on an opening and on the whole of the last generation; beyond it the process counts as hung. A process
/// that has made its calls waits as long for its kill.
const PATIENCE: Duration = Duration::from_secs(300);

/// Maximum time from the first call until [`aim`] chooses the moment of the kill.
const MAX_TIME_TO_KILL: Duration = Duration::from_secs(1);

/// Upper bound on the wait for a commit during which to kill.
const MAX_AIM: Duration = Duration::from_millis(20);

/// Calls of a thread in the last generation.
const LAST_CALLS: u64 = 200;
/// The same at level `disk`, where each write waits for the disk.
const LAST_CALLS_ON_DISK: u64 = 40;

/// The number of the signal `SIGKILL`.
const SIGKILL: i32 = 9;

fn failed(error: impl ToString) -> Wrong {
    error.to_string()
}

/// Runs a generation in a process of its own, which is killed at a random moment unless it is the last one.
pub(super) fn run(plan: &Plan, generation: u64, spec: &str, child: fn(&str) -> Command) -> Result<(), Wrong> {
    let random = &mut Random::new(plan.seed, 32 << 32 | generation);
    let mut child = child(&format!("{SPEC} {generation} {spec}"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    // Its messages may exceed the pipe's capacity, so a thread reads them.
    let mut stderr = child.stderr.take().ok_or("no standard error")?;
    let listener = std::thread::spawn(move || {
        let mut said = Vec::new();
        stderr.read_to_end(&mut said).map(|_| said)
    });
    let is_last = generation == plan.killed;
    let in_time = if is_last {
        wait(&mut child, PATIENCE, || false)
    } else if random.one_in(5) {
        // During the opening, or soon after it.
        std::thread::sleep(Duration::from_micros(random.below(50_000)));
        Ok(())
    } else {
        let records = random.below(random.clone().pick(&[1, 100, 2_000, 8_000]));
        let records = if plan.on_disk { records / 20 } else { records };
        wait(&mut child, PATIENCE, || has_noted(plan, generation, 0)).and_then(|()| {
            let until = Instant::now() + MAX_TIME_TO_KILL;
            let is_time = || has_noted(plan, generation, records) || Instant::now() > until;
            wait(&mut child, PATIENCE, is_time)?;
            aim(plan, generation, random);
            Ok(())
        })
    };
    // The process may have ended meanwhile.
    let _ = child.kill();
    let status = child.wait().map_err(failed)?;
    let said = listener
        .join()
        .map_err(|_| "a thread panicked")?
        .map_err(failed)?;
    let said = String::from_utf8_lossy(&said);
    in_time.map_err(|wrong| format!("{wrong}: {said}"))?;
    let as_planned = if is_last {
        status.success()
    } else {
        status.signal() == Some(SIGKILL)
    };
    if !as_planned || !said.is_empty() {
        return Err(format!("its process: {status}: {said}"));
    }
    if !is_last && plan.on_disk && random.one_in(2) {
        power::lose(&plan.pool()).map_err(failed)?;
    }
    Ok(())
}

/// Waits until the process has ended or `happened` returns true.
fn wait(child: &mut Child, patience: Duration, happened: impl Fn() -> bool) -> Result<(), Wrong> {
    let until = Instant::now() + patience;
    while child.try_wait().map_err(failed)?.is_none() && !happened() {
        if Instant::now() > until {
            return Err(format!("its process hangs: no progress within {patience:?}"));
        }
        std::thread::sleep(Duration::from_micros(100));
    }
    Ok(())
}

/// Waits for a moment to kill: in two of three cases during a commit of a random thread, else after a random time.
fn aim(plan: &Plan, generation: u64, random: &mut Random) {
    let thread = random.index(plan.threads);
    let more = Duration::from_micros(random.below(random.clone().pick(&[1, 20, 500, 5_000])));
    if random.one_in(3) {
        std::thread::sleep(more);
        return;
    }
    let until = Instant::now() + MAX_AIM;
    if let Ok(mut watcher) = Watcher::open(&ledger::path(&plan.directory, generation, thread)) {
        // Without a ledger to read or a commit in time, the kill comes at any moment.
        while Instant::now() < until && !watcher.is_amid_commit().unwrap_or(true) {
            std::hint::spin_loop();
        }
    }
    let until = Instant::now() + more.min(Duration::from_micros(20));
    while Instant::now() < until {
        std::hint::spin_loop();
    }
}

/// Returns whether the first thread has written this record.
fn has_noted(plan: &Plan, generation: u64, record: u64) -> bool {
    let mut word = [0; 8];
    File::open(ledger::path(&plan.directory, generation, 0))
        .and_then(|file| file.read_exact_at(&mut word, ledger::place(record)))
        .is_ok()
        && word != [0; 8]
}

/// Runs a generation. `spec` is the child's text without its first word.
pub(crate) fn be_killed(spec: &str) -> Result<(), Wrong> {
    let (generation, spec) = spec.split_once(' ').ok_or("no generation")?;
    let generation = generation.parse().map_err(failed)?;
    let plan = &Plan::of_spec(spec)?;
    let is_last = generation == plan.killed;
    let clock = &AtomicU64::new(first_moment(generation) + 1);
    let ledgers = (0..plan.threads).map(|thread| {
        let path = ledger::path(&plan.directory, generation, thread);
        Ledger::create(&path, clock)
    });
    let ledgers = ledgers.collect::<std::io::Result<Vec<_>>>().map_err(failed)?;
    let db = plan.options(generation).open(plan.pool()).map_err(failed)?;
    let map = db.map(MAP).map_err(failed)?;
    // In some generations the threads stop after a few calls, so that the kill may come during the close or after it.
    let random = &mut Random::new(plan.seed, 34 << 32 | generation);
    let calls = match (is_last, random.one_in(5)) {
        (true, _) if plan.on_disk => LAST_CALLS_ON_DISK,
        (true, _) => LAST_CALLS,
        (false, true) => random.pick(&[20, 200]),
        (false, false) => u64::MAX,
    };
    let (barrier, stop) = (&Barrier::new(plan.threads), &AtomicBool::new(false));
    let mut workers: Vec<_> = ledgers
        .into_iter()
        .enumerate()
        .map(|(thread, ledger)| Worker {
            db: &db,
            map: map.clone(),
            keys: &plan.keys,
            generation,
            thread,
            random: Random::new(plan.seed, 33 << 32 | generation << 8 | thread as u64),
            ledger,
            last: vec![None; plan.keys.len()],
            values: 0,
        })
        .collect();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let run = |worker: &mut Worker<'_>| -> Result<(), Wrong> {
            barrier.wait();
            let mut made = 0;
            while !stop.load(Relaxed) && made < calls && worker.step()? {
                made += 1;
            }
            Ok(())
        };
        let threads: Vec<_> = workers
            .iter_mut()
            .map(|worker| {
                scope.spawn(move || {
                    run(worker).inspect_err(|wrong| {
                        // Reports the failure immediately, before the kill.
                        eprintln!("thread {}: {wrong}", worker.thread);
                        stop.store(true, Relaxed);
                    })
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join()).collect()
    });
    for answer in answers {
        answer.map_err(|_| "a thread panicked")??;
    }
    if !is_last {
        if calls != u64::MAX {
            drop((workers, map));
            drop(db);
        }
        std::thread::sleep(PATIENCE);
        return Err("the process was not killed in time".into());
    }
    workers[0].read_all()?;
    workers[0].scan()?;
    drop(workers);
    check(&db)
}

fn check(db: &Db) -> Result<(), Wrong> {
    let check = db.check().map_err(failed)?;
    let state = db.recovery_progress().state;
    if check.is_clean() && state == RecoveryState::Done {
        Ok(())
    } else {
        Err(format!("recovery is {state}; check finds: {check:?}"))
    }
}
