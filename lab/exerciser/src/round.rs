//! A round: opens the pool, lets threads make calls, and compares the content afterwards.

use crate::api;
use crate::calls::Calls;
use crate::keys::owner;
use crate::ledger::{Ledger, Written};
use crate::op::{Drawer, Op};
use crate::power;
use crate::random::Random;
use crate::truth::{Effects, Plan, Role, Truth, Val};
use crate::worker::{Outcome, Worker, Wrong, differs, entry_differs};
use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use wollemi::{
    AfterPowerLoss, Db, Durability, Error, Expiring, HeapError, IndexError, IndexKind, Level, Options,
};

/// Maximum number of calls of a thread in a process that is never killed.
const MAX_UNKILLED_CALLS: u64 = 20_000_000;

/// A pool under exercise, and what its threads know of it.
pub(crate) struct Exercise {
    pub plan: Plan,
    /// Keys by thread, map and number.
    keys: Vec<Vec<Vec<Vec<u8>>>>,
    truths: Vec<Truth>,
    /// The call in flight when the process was killed, by thread.
    in_flight: Vec<Option<(Op, Effects)>>,
    directory: PathBuf,
    page_size: u64,
    max_size: Option<u64>,
    /// Whether a power loss was simulated since the pool was open.
    power_lost: bool,
}

/// The counts of a round.
#[derive(Clone, Debug, Default)]
pub(crate) struct Done {
    pub calls: u64,
    pub refused: u64,
    /// Answered calls of each function.
    pub called: Calls,
    /// Calls of the maps of each index.
    pub indexes: Calls,
}

/// How a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The pool is closed.
    Close,
    /// The pool is copied into another, which replaces it.
    Copy,
    /// A backup of the pool is restored into another, which replaces it.
    Restore,
    /// The pool is closed by `Db::end_log`, which ends its log if it has one.
    WithoutLog,
}

impl Exercise {
    /// Plans a new pool in `directory`. `seed` determines its maps and all other random choices.
    pub fn new(seed: u64, threads: usize, kinds: &[IndexKind], directory: &Path) -> Exercise {
        let plan = Plan::new(seed, threads, kinds);
        let keys: Vec<Vec<Vec<Vec<u8>>>> = (0..threads)
            .map(|thread| (0..plan.maps.len()).map(|slot| plan.keys(slot, thread)).collect())
            .collect();
        let random = &mut Random::new(seed, 2 << 32);
        Exercise {
            truths: keys.iter().map(|keys| Truth::new(&plan, keys)).collect(),
            in_flight: vec![None; threads],
            plan,
            keys,
            directory: directory.to_owned(),
            page_size: random.pick(&[64 << 10, 256 << 10, 1 << 20]),
            max_size: random.one_in(3).then(|| (8 << 20) + random.below(40 << 20)),
            power_lost: false,
        }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.join("exercise.pool")
    }

    fn truth_path(&self) -> PathBuf {
        self.directory.join("exercise.truth")
    }

    fn options(&self, round: u64) -> Options {
        let random = &mut Random::new(self.plan.seed, 3 << 32 | round);
        let options = Options::new()
            .page_size(self.page_size)
            .recovery_threads(random.pick(&[0, 1, 1, 2, 4]))
            .huge_pages(random.one_in(2))
            .index(self.plan.maps[0].kind)
            .lock_wait(Duration::from_secs(2))
            .create(round == 0);
        let options = match self.max_size {
            Some(bytes) => options.max_size(bytes),
            None => options,
        };
        let Some(durability) = self.plan.durability else {
            return options;
        };
        // A pool that has a log keeps it, whatever level is requested.
        let level = random.pick(&[Level::Process, Level::Disk]);
        options
            .level(level)
            .durability(durability)
            .sync_within(Duration::from_millis(random.pick(&[1, 30, 1000])))
            .log_limit(64 << 20)
            .on_rebuild(|_| {})
            .end_checkpoints_if(|| false)
    }

    /// Opens the pool; accepts a simulated power loss.
    fn open(&mut self, round: u64, done: &mut Done) -> Result<Db, Wrong> {
        if self.plan.durability.is_some() {
            done.called.join_all(api::ON_DISK);
        }
        let options = self.options(round);
        if !std::mem::take(&mut self.power_lost) {
            return options.open(self.path()).map_err(text);
        }
        done.called.join_all(api::AFTER_POWER_LOSS);
        // A pool that has a log is rebuilt from it, whatever `after_power_loss` says.
        if !has_log(&self.path()) {
            let look = options
                .clone()
                .read_only(true)
                .after_power_loss(AfterPowerLoss::Look);
            look.open(self.path())
                .map_err(|error| format!("looked at: {error}"))?;
        }
        let options = options.after_power_loss(AfterPowerLoss::Accept);
        let db = options.open(self.path());
        db.map_err(|error| format!("after a loss of power: {error}"))
    }

    /// Creates the pool and the maps that all threads share.
    pub fn create(&self) -> Result<(), Wrong> {
        let db = self.options(0).open(self.path()).map_err(text)?;
        for (slot, map) in self.plan.maps.iter().enumerate() {
            if map.role != Role::Private {
                db.map_with(&self.plan.name(slot, 0), map.kind).map_err(text)?;
            }
        }
        Ok(())
    }

    /// Runs a round in this process.
    pub fn round(&mut self, round: u64, calls: u64, end: End) -> Result<Done, Wrong> {
        let mut opened = Done::default();
        let db = self.open(round, &mut opened)?;
        for thread in 0..self.plan.threads {
            if let Some((op, effects)) = self.in_flight[thread].take() {
                self.settle(&db, thread, &op, &effects)?;
            }
        }
        let mut done = self.call(&db, round, calls, &|_| Ok(None))?;
        done.called.join(&opened.called);
        self.compare(&db)?;
        done.called.join_all(api::ROUND);
        // A check waits for recovery, but some openings must find a pool that an earlier one has not fully recovered.
        let in_place = round.is_multiple_of(2);
        if in_place {
            check(&db)?;
        }
        self.end(db, end)?;
        if !in_place {
            self.check_copy(round)?;
        }
        done.called.join_all(api::CHECKED);
        done.called.join_all(match end {
            End::Close => api::CLOSED,
            End::Copy => api::COPIED,
            End::Restore => api::RESTORED,
            End::WithoutLog => api::LOG_ENDED,
        });
        if round % 4 == 1 {
            let db = self.options(round).read_only(true).open(self.path());
            self.compare(&db.map_err(text)?)
                .map_err(|wrong| format!("opened read-only: {wrong}"))?;
            done.called.join_all(api::READ_ONLY);
        }
        Ok(done)
    }

    /// Checks a copy of the pool, so that the pool itself stays unrecovered.
    fn check_copy(&self, round: u64) -> Result<(), Wrong> {
        let copy = self.path().with_extension("checked");
        copy_pool(&self.path(), &copy).map_err(|error| error.to_string())?;
        // At this level a pool without a log stays without one.
        let options = self.options(round).level(Level::Process);
        let opened = options.open(&copy).map_err(text);
        opened
            .and_then(|db| check(&db))
            .map_err(|wrong| format!("a copy of the closed pool: {wrong}"))?;
        remove_pool(&copy);
        Ok(())
    }

    /// Runs the threads. `ledger` creates the ledger in which a thread records its calls, if any.
    fn call(
        &mut self,
        db: &Db,
        round: u64,
        calls: u64,
        ledger: &(dyn Fn(usize) -> std::io::Result<Option<Ledger>> + Sync),
    ) -> Result<Done, Wrong> {
        let (stop, refused, made) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
        let sweeper = self.sweeper(db, round).map_err(text)?;
        let (plan, keys, bounded) = (&self.plan, &self.keys, self.max_size.is_some());
        let (stop, refused, made) = (&stop, &refused, &made);
        let run = move |thread: usize, truth: &mut Truth| -> Result<(Calls, Calls), Wrong> {
            let (mut called, mut indexes) = (Calls::default(), Calls::default());
            let mut ledger = ledger(thread).map_err(|error| error.to_string())?;
            let mut drawer = Drawer::new(plan.seed, round, thread);
            let mut worker = Worker::new(db, plan, thread, &keys[thread], bounded);
            for call in 0..calls {
                if stop.load(Relaxed) {
                    break;
                }
                let op = drawer.next(plan, truth);
                let effects = op.effects(truth);
                let outcome = worker.call(&op, truth).inspect_err(|_| stop.store(true, Relaxed));
                let outcome = outcome.map_err(|wrong| format!("call {call} of {wrong}"))?;
                if let Some(ledger) = &mut ledger {
                    ledger.write(outcome).map_err(|error| error.to_string())?;
                }
                refused.fetch_add(u64::from(outcome != Outcome::Done), Relaxed);
                truth.apply(&of_outcome(effects, outcome));
                if outcome == Outcome::Done {
                    api::functions(&op, plan).for_each(|name| called.add(name));
                }
                plan.count(op.slots(), &mut indexes);
                made.fetch_add(1, Relaxed);
            }
            Ok((called, indexes))
        };
        let answers: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = self
                .truths
                .iter_mut()
                .enumerate()
                .map(|(thread, truth)| scope.spawn(move || run(thread, truth)))
                .collect();
            threads.into_iter().map(|thread| thread.join()).collect()
        });
        let (mut called, mut indexes) = (Calls::default(), Calls::default());
        if let Some(sweeper) = sweeper {
            // How many entries expire meanwhile depends on the clock.
            let _ = sweeper.removed();
            called.join_all(api::SWEPT);
        }
        for answer in answers {
            let (of_thread, of_indexes) = answer.map_err(|_| "a thread panicked".to_owned())??;
            called.join(&of_thread);
            indexes.join(&of_indexes);
        }
        Ok(Done {
            calls: made.load(Relaxed),
            refused: refused.load(Relaxed),
            called,
            indexes,
        })
    }

    fn sweeper(&self, db: &Db, round: u64) -> Result<Option<wollemi::Sweeper>, Error> {
        let slot = self.plan.maps.iter().position(|map| map.role == Role::Expiring);
        let Some(slot) = slot.filter(|_| round.is_multiple_of(3)) else {
            return Ok(None);
        };
        let map = Expiring::new(db.map(&self.plan.name(slot, 0))?);
        map.sweeper(Duration::from_millis(5)).map(Some)
    }

    /// Returns whether no call is left whose outcome at a kill is unknown.
    pub fn is_settled(&self) -> bool {
        self.in_flight.iter().all(Option::is_none)
    }

    /// Runs a round in a process that is killed after `patience`. The calls answered before the kill count.
    pub fn killed(&mut self, round: u64, patience: Duration, mut child: Command) -> Result<Done, Wrong> {
        let failed = |error: std::io::Error| error.to_string();
        Written::remove(&self.directory, self.plan.threads);
        let mut file = BufWriter::new(File::create(self.truth_path()).map_err(failed)?);
        for truth in &self.truths {
            truth.write(&mut file).map_err(failed)?;
        }
        file.flush().map_err(failed)?;
        let mut child = child
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        std::thread::sleep(patience);
        let ended = child.try_wait().map_err(failed)?;
        // The process may have ended meanwhile.
        let _ = child.kill();
        let output = child.wait_with_output().map_err(failed)?;
        if let Some(status) = ended.filter(|status| !status.success()) {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(format!(
                "the process that was to be killed ended by itself, {status}: {said}"
            ));
        }
        let mut done = Done::default();
        for thread in 0..self.plan.threads {
            let written = Written::read(&self.directory, thread).map_err(failed)?;
            let truth = &mut self.truths[thread];
            let mut drawer = Drawer::new(self.plan.seed, round, thread);
            for call in 0..written.answered {
                let op = drawer.next(&self.plan, truth);
                let effects = op.effects(truth);
                self.plan.count(op.slots(), &mut done.indexes);
                let outcome = written.outcome(call);
                done.refused += u64::from(outcome != Outcome::Done);
                truth.apply(&of_outcome(effects, outcome));
            }
            done.calls += written.answered;
            let op = drawer.next(&self.plan, truth);
            let effects = op.effects(truth);
            self.in_flight[thread] = Some((op, effects));
        }
        if Random::new(self.plan.seed, 6 << 32 | round).one_in(2) && self.survives_power_loss() {
            power::lose(&self.path()).map_err(failed)?;
            self.power_lost = true;
        }
        Ok(done)
    }

    /// Returns whether the pool keeps every acknowledged write in a simulated power loss. The page cache survives the
    /// simulation, so a pool without a log is as the kill left it. A pool rebuilt from its log may lack eventual
    /// writes, and needs more room than it had.
    fn survives_power_loss(&self) -> bool {
        !has_log(&self.path())
            || (self.plan.durability == Some(Durability::Immediate) && self.max_size.is_none())
    }

    /// Runs the round in the process that is to be killed.
    pub fn be_killed(&mut self, round: u64) -> Result<(), Wrong> {
        let failed = |error: std::io::Error| error.to_string();
        let mut file = BufReader::new(File::open(self.truth_path()).map_err(failed)?);
        for truth in &mut self.truths {
            truth.read(&mut file).map_err(failed)?;
        }
        let db = self.options(round).open(self.path()).map_err(text)?;
        let directory = self.directory.clone();
        self.call(&db, round, MAX_UNKILLED_CALLS, &|thread| {
            Ledger::create(&directory, thread).map(Some)
        })?;
        Ok(())
    }

    /// Finds out whether the call in flight at the kill was carried out. Each of its keys must hold its old or its new
    /// value; if the call is atomic, all must hold the old ones or all the new ones.
    fn settle(&mut self, db: &Db, thread: usize, op: &Op, effects: &Effects) -> Result<(), Wrong> {
        let truth = &mut self.truths[thread];
        let wrong = |why: String| format!("thread {thread}: in flight at the kill: {op:?}: {why}");
        if let Some((slot, comes)) = effects.map {
            let name = self.plan.name(slot, thread);
            let exists = db
                .find_map(&name)
                .map_err(|error| wrong(error.to_string()))?
                .is_some();
            if exists == comes {
                truth.apply(effects);
            }
            return Ok(());
        }
        // Of several changes to one key, the last one counts.
        let (mut before, mut after, mut found) = (true, true, Vec::new());
        for (i, &(slot, n, _)) in effects.values.iter().enumerate() {
            let mine = |&&(of, key, _): &&(usize, usize, Option<Val>)| (of, key) == (slot, n);
            if effects.values[i + 1..].iter().any(|change| mine(&change)) {
                continue;
            }
            let old = truth.value(slot, n);
            let name = self.plan.name(slot, thread);
            let map = db.map(&name).map_err(|error| wrong(error.to_string()))?;
            let key = &self.keys[thread][slot][n];
            let is = |value| -> Result<bool, Wrong> {
                holds(&map, self.plan.maps[slot].role, key, value).map_err(|error| wrong(error.to_string()))
            };
            let new = effects
                .values
                .iter()
                .filter(mine)
                .map(|change| change.2)
                .next_back()
                .flatten();
            let (is_old, is_new) = (is(old)?, is(new)?);
            before &= is_old;
            after &= is_new;
            match (is_new, is_old) {
                (true, _) => found.push((slot, n, new)),
                (false, true) => found.push((slot, n, old)),
                _ => {
                    return Err(wrong(format!(
                        "map {slot}, key {n} holds neither its old nor its new value"
                    )));
                }
            }
        }
        if effects.atomic && !before && !after {
            return Err(wrong("it was carried out in part".into()));
        }
        truth.apply(&Effects {
            values: found,
            ..Effects::default()
        });
        Ok(())
    }

    /// Compares the maps' whole content with the threads' truths.
    fn compare(&self, db: &Db) -> Result<(), Wrong> {
        for (slot, map) in self.plan.maps.iter().enumerate() {
            match map.role {
                Role::Private => {
                    for thread in 0..self.plan.threads {
                        self.compare_map(db, slot, thread..thread + 1)?;
                    }
                }
                Role::Shared | Role::Expiring => self.compare_map(db, slot, 0..self.plan.threads)?,
            }
        }
        Ok(())
    }

    fn compare_map(&self, db: &Db, slot: usize, threads: std::ops::Range<usize>) -> Result<(), Wrong> {
        let name = self.plan.name(slot, threads.start);
        let wrong = |why: String| format!("map '{name}' ({}) at the end: {why}", self.plan.maps[slot].kind);
        let failed = |error: Error| wrong(error.to_string());
        let exists = self.truths[threads.start].maps[slot].exists;
        let Some(map) = db.find_map(&name).map_err(failed)? else {
            return if exists {
                Err(wrong("the map is missing".into()))
            } else {
                Ok(())
            };
        };
        if !exists {
            return Err(wrong("the map exists, though it was dropped".into()));
        }
        let order = self.plan.maps[slot].kind.order();
        let mut expected: Vec<_> = (0..self.plan.threads)
            .map(|thread| {
                let keys = self.keys[thread][slot].iter();
                let values = threads
                    .contains(&thread)
                    .then(|| self.truths[thread].maps[slot].values.iter());
                let held = keys.zip(values.into_iter().flatten());
                let mut held: Vec<_> = held.filter_map(|(key, value)| Some((key, (*value)?))).collect();
                order.sort(&mut held, |(key, _)| key.as_slice());
                held.into_iter()
            })
            .collect();
        let expiring = Expiring::new(map.clone());
        let is_expiring = self.plan.maps[slot].role == Role::Expiring;
        let mut last: Option<Vec<u8>> = None;
        let mut compare = |key: &[u8], value: &[u8]| {
            if matches!(&last, Some(last) if order.compare(last, key).is_ge()) {
                return Err(format!("{key:x?} comes after {last:x?}"));
            }
            last = Some(key.to_vec());
            let alive = match is_expiring {
                true => expiring.read(value).map_err(|error| error.to_string())?,
                false => Some((value.to_vec(), None)),
            };
            let Some(alive) = alive else {
                return Ok(());
            };
            let expected = owner(key).and_then(|thread| expected.get_mut(thread)?.next());
            match expected {
                Some((next, held)) if next == key => {
                    let differs = match is_expiring {
                        true => entry_differs(Some(&alive), Some(held)),
                        false => differs(Some(&alive.0), Some(held)),
                    };
                    differs.map_or(Ok(()), |differs| Err(format!("{key:x?}: {differs}")))
                }
                other => Err(format!("{key:x?} instead of {:x?}", other.map(|(key, _)| key))),
            }
        };
        let mut found = Ok(());
        map.reader()
            .visit(.., |key, value| {
                found = compare(key, &value);
                if found.is_ok() {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })
            .map_err(failed)?;
        found.map_err(wrong)?;
        for expected in &mut expected {
            if let Some((key, _)) = expected.next() {
                return Err(wrong(format!("{key:x?} is missing")));
            }
        }
        Ok(())
    }

    fn end(&self, db: Db, end: End) -> Result<(), Wrong> {
        let other = self.path().with_extension("other");
        let done = match end {
            End::Close => return db.close().map_err(|error| format!("close: {error}")),
            End::WithoutLog => return db.end_log().map_err(|error| format!("end_log: {error}")),
            End::Copy => self.copy(&db, &other),
            End::Restore => self.restore(&db, &other),
        };
        drop(db);
        match done {
            // The content of one pool need not fit into another of the same size.
            Err(
                Error::Heap(HeapError::Full { .. }) | Error::Index(IndexError::Heap(HeapError::Full { .. })),
            ) if self.max_size.is_some() => {
                remove_pool(&other);
                Ok(())
            }
            Err(error) => Err(error.to_string()),
            Ok(()) => replace_pool(&self.path(), &other).map_err(|error| error.to_string()),
        }
    }

    fn copy(&self, db: &Db, to: &Path) -> Result<(), Error> {
        let copy = self.options(0).open(to)?;
        copy.copy_from(&db.snapshot()?, |_| {})?;
        Ok(())
    }

    fn restore(&self, db: &Db, to: &Path) -> Result<(), Error> {
        let backup = to.with_extension("backup");
        db.snapshot()?.backup_to(&backup, |_| {})?;
        let made = std::fs::read(&backup).and_then(|bytes| std::fs::remove_file(&backup).map(|()| bytes));
        let bytes = made.map_err(Error::Backup)?;
        let restored = self.options(0).open(to)?;
        restored.restore(&mut &bytes[..], |_| {})?;
        Ok(())
    }
}

/// Returns the directory of a pool's log and checkpoints at level `disk`.
fn disk_directory(pool: &Path) -> PathBuf {
    let mut name = pool.as_os_str().to_owned();
    name.push(".disk");
    name.into()
}

/// Returns whether the pool has a log.
fn has_log(pool: &Path) -> bool {
    disk_directory(pool).join("manifest").exists()
}

/// Removes a pool and its files.
pub(crate) fn remove_pool(pool: &Path) {
    // They may not exist.
    let _ = std::fs::remove_file(pool);
    let _ = std::fs::remove_dir_all(disk_directory(pool));
}

/// Copies a closed pool.
fn copy_pool(pool: &Path, to: &Path) -> std::io::Result<()> {
    remove_pool(to);
    std::fs::copy(pool, to)?;
    if disk_directory(pool).exists() {
        std::fs::create_dir(disk_directory(to))?;
        for file in std::fs::read_dir(disk_directory(pool))? {
            let file = file?;
            std::fs::copy(file.path(), disk_directory(to).join(file.file_name()))?;
        }
    }
    Ok(())
}

/// Replaces a pool with another one.
fn replace_pool(pool: &Path, other: &Path) -> std::io::Result<()> {
    remove_pool(pool);
    if disk_directory(other).exists() {
        std::fs::rename(disk_directory(other), disk_directory(pool))?;
    }
    std::fs::rename(other, pool)
}

/// Returns whether a key of the map has this value and, in an expiring map, this lifetime.
fn holds(map: &wollemi::Map, role: Role, key: &[u8], value: Option<Val>) -> Result<bool, Error> {
    let differs = match role {
        Role::Expiring => {
            let held = Expiring::new(map.clone()).get_with_life(key)?;
            entry_differs(held.as_ref(), value)
        }
        Role::Shared | Role::Private => differs(map.get(key)?.as_deref(), value),
    };
    Ok(differs.is_none())
}

/// Returns the changes that a call with this outcome made.
fn of_outcome(mut effects: Effects, outcome: Outcome) -> Effects {
    if let Outcome::Refused(done) = outcome {
        effects.values.truncate(done);
        effects.map = None;
    }
    effects
}

fn check(db: &Db) -> Result<(), Wrong> {
    let check = db.check().map_err(text)?;
    match check.is_clean() {
        true => Ok(()),
        false => Err(format!("check finds: {check:?}")),
    }
}

fn text(error: Error) -> Wrong {
    error.to_string()
}
