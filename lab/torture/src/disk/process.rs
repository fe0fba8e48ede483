//! A process over a disk: executes and records operations.

use super::faults::{Faults, Kind};
use super::notes::Notes;
use super::pool::{ID, pool};
use super::state::{EXPIRING, State};
use super::trouble::Trouble;
use crashkit::disk::CrashDisk;
use crashkit::killed::{Image, Told, told};
use pmem::Memory;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wollemi::{Db, Durability, Error, IndexError, IndexKind, Map, Options};

/// The maps that always exist.
pub const MAPS: [(&str, IndexKind); 4] = [
    ("a", IndexKind::Roart),
    ("b", IndexKind::Part),
    ("c", IndexKind::Clht),
    (EXPIRING, IndexKind::Roart),
];

/// The name of the temporary map.
pub const OTHER: &str = "other";

/// The free bytes of a pool below which a process recovers: more than a step takes.
const SHORT: u64 = 2 << 20;

pub struct Process {
    pub db: Db<Told>,
    pub disk: CrashDisk,
    /// The memory of the pool.
    pub memory: Memory,
    pub maps: Vec<Map>,
    pub notes: Arc<Mutex<Notes>>,
    /// Errors of writes beside the operation in progress.
    pub beside: Arc<Mutex<Vec<Error>>>,
    /// Keys written since everything was last durable.
    pub touched: BTreeSet<(String, Vec<u8>)>,
    /// The greatest number that a value has.
    pub last_value: u64,
    /// Named events of interest, and how often each occurred.
    pub reached: BTreeMap<&'static str, u64>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an error claims about the failed operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claim {
    /// It changed nothing.
    Refused,
    /// It took effect, but may not be durable.
    NotDurable,
    /// Nothing, or something about one of several parts.
    Unknown,
}

fn claim(error: &Error) -> Claim {
    match error {
        Error::Index(IndexError::Refused(_)) => Claim::Refused,
        Error::Index(IndexError::NotDurable(_)) => Claim::NotDurable,
        _ => Claim::Unknown,
    }
}

/// When the changes of a step are durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Durable {
    /// When the step returns.
    OnReturn,
    /// Perhaps later.
    Later,
}

impl From<Durability> for Durable {
    fn from(durability: Durability) -> Durable {
        match durability {
            Durability::Immediate => Durable::OnReturn,
            Durability::Eventual => Durable::Later,
        }
    }
}

impl Process {
    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        lock(&self.notes)
    }

    /// Recovers if few pages are free. Without recovery threads, what killed processes have left in a pool is reclaimed
    /// only so, and each process takes pages of its own.
    pub fn recover_if_short(&mut self) -> Result<(), Error> {
        if self.db.stats()?.space.free < SHORT {
            self.reach("recovered in a short pool");
            self.db.recover();
        }
        Ok(())
    }

    /// Returns the newest state, according to the notes.
    pub fn now(&self) -> Arc<State> {
        self.notes().newest()
    }

    /// Counts a named event.
    pub fn reach(&mut self, what: &'static str) {
        *self.reached.entry(what).or_default() += 1;
    }

    /// Executes an operation that leads through these states, or through none if it changes nothing. Returns its
    /// answer; `None` if it failed because calls of the disk did.
    pub fn apply<T, E: Into<Trouble>>(
        &mut self,
        states: Vec<State>,
        durable: Durable,
        run: impl FnOnce(&Process) -> Result<T, E>,
    ) -> Result<Option<T>, Trouble> {
        self.apply_kind(Kind::Other, states, durable, run)
    }

    /// Executes an operation of this kind.
    pub fn apply_kind<T, E: Into<Trouble>>(
        &mut self,
        kind: Kind,
        states: Vec<State>,
        durable: Durable,
        run: impl FnOnce(&Process) -> Result<T, E>,
    ) -> Result<Option<T>, Trouble> {
        let (before, parts) = (self.now(), states.len());
        let first = self.notes().states.len();
        let changes = states.last().is_some_and(|last| *last != *before);
        let last = self.notes().begin(states);
        let failed = self.disk.injected();
        let done = run(self).map_err(Into::into);
        let faults = Faults {
            kind,
            calls: self.disk.failed(failed),
            has_failed: self.disk.injected() > 0 && self.has_failed()?,
        };
        faults.check_log(&self.disk.failed(0))?;
        for error in std::mem::take(&mut *lock(&self.beside)) {
            faults.check_error(Kind::Other, &error)?;
        }
        match done {
            Ok(answer) => {
                faults.check_success()?;
                self.notes().end(last, changes && durable == Durable::OnReturn);
                let all = self.notes().now;
                if all.durable == all.max {
                    self.touched.clear();
                }
                Ok(Some(answer))
            }
            Err(Trouble::Refused(error)) if self.disk.injected() > 0 => {
                faults.check_error(kind, &error)?;
                self.settle(error, &before, first, parts)?;
                Ok(None)
            }
            Err(trouble) => Err(trouble),
        }
    }

    /// Handles a failed operation, which began when there were `first` states: finds out what it did, and checks that
    /// the error's claim is true.
    fn settle(&mut self, error: Error, before: &State, first: usize, parts: usize) -> Result<(), Trouble> {
        let live = self.live()?;
        let mut notes = self.notes();
        let last = notes.states.len() - 1;
        let is_live = |n: &usize| notes.states[*n].as_ref().is_some_and(|noted| noted.is(&live));
        let found = (first.max(1) - 1..=last).rev().find(is_live);
        let Some(found) = found else {
            return Err(Trouble::Wrong(format!(
                "after the error '{error}' it holds {live:?}"
            )));
        };
        let differs = |n: usize| notes.states[n].as_ref().is_some_and(|noted| !noted.is(&live));
        match claim(&error) {
            Claim::Refused if parts == 1 && live != *before => {
                return Err(Trouble::Wrong(format!(
                    "a refused operation took effect: {error}"
                )));
            }
            Claim::NotDurable if parts == 1 && differs(last) => {
                let message = format!("an operation reported as not durable had no effect: {error}");
                return Err(Trouble::Wrong(message));
            }
            // The log holds nothing of it.
            Claim::Refused if parts == 1 => notes.states[first..].fill(None),
            _ => {}
        }
        if found < last || notes.states[last].is_none() {
            notes.begin([live]);
        }
        let reached = notes.states.len() - 1;
        notes.end(reached, false);
        Ok(())
    }

    /// Reads the present content, durable or not, as another process would from a copy of the pool.
    pub fn live(&self) -> Result<State, Trouble> {
        let image = Image::of(&self.memory);
        let (pool, _memory) = pool(Some(&image), ID, told(|| ()))?;
        State::of(&Options::new().recovery_threads(0).open_pool(pool)?)
    }

    /// Returns whether the log has failed.
    pub fn has_failed(&self) -> Result<bool, Error> {
        let log = self.db.stats()?.log;
        Ok(log.is_some_and(|log| log.failure.is_some()))
    }

    /// Checks a database whose log has failed: it refuses writes and says why, acknowledges nothing more, and still
    /// reads what is durable.
    pub fn check_failed(&self) -> Result<(), Trouble> {
        let wrong = |what: &str| Err(Trouble::Wrong(format!("after the log has failed, {what}")));
        let before = self.live()?;
        let log = self.db.stats()?.log.unwrap_or_default();
        let reason = log.failure.unwrap_or_default();
        let refused = |what: &str, done: Result<(), Error>| match done {
            Err(error) if !reason.is_empty() && error.to_string().contains(&reason) => Ok(()),
            done => wrong(&format!(
                "{what} returns {done:?} instead of the reason, '{reason}'"
            )),
        };
        for map in &self.maps {
            refused("a write", map.upsert("key 5", "after the failure"))?;
        }
        let mut batch = self.db.batch();
        batch
            .upsert(&self.maps[0], "one", "1")
            .upsert(&self.maps[1], "two", "2");
        refused("a batch", batch.commit().map(drop))?;
        refused("the creation of a map", self.db.map("another").map(drop))?;
        if self.live()? != before {
            return wrong("a refused write took effect");
        }
        if log.durable < log.appended {
            refused("a sync", self.db.sync())?;
        }
        let events = self.disk.now();
        refused("a checkpoint", self.db.checkpoint(true).map(drop))?;
        if self.disk.now() != events {
            return wrong("a checkpoint writes runs");
        }
        for (map, _) in &MAPS[..3] {
            for key in (4..14).map(|n| format!("key {n}").into_bytes()) {
                let is_touched = self.touched.contains(&((*map).to_owned(), key.clone()));
                let Some(held) = self.maps.iter().find(|held| held.name() == *map) else {
                    continue;
                };
                match held.get(&key) {
                    Ok(value) if value.as_deref() == before.get(map, &key).map(|value| &**value) => {}
                    Err(_) if is_touched => {}
                    other => return wrong(&format!("{map} {} reads {other:?}", key.escape_ascii())),
                }
            }
        }
        Ok(())
    }
}
