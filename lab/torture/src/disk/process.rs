//! A process over a disk: executes and records operations.

use super::notes::{Notes, Trouble};
use super::pool::{ID, pool};
use super::state::{LIVES, State};
use crashkit::disk::CrashDisk;
use crashkit::killed::{Image, Told, told};
use pmem::Memory;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wollemi::{Db, Durability, Error, IndexError, IndexKind, Map, Options};

/// The maps that are always there.
pub const MAPS: [(&str, IndexKind); 4] = [
    ("a", IndexKind::Roart),
    ("b", IndexKind::Part),
    ("c", IndexKind::Clht),
    (LIVES, IndexKind::Roart),
];

/// The map that comes and goes.
pub const OTHER: &str = "other";

pub struct Process {
    pub db: Db<Told>,
    pub disk: CrashDisk,
    /// What the pool is in.
    pub memory: Memory,
    pub maps: Vec<Map>,
    pub notes: Arc<Mutex<Notes>>,
    /// Keys that were written since all was durable.
    pub touched: BTreeSet<(String, Vec<u8>)>,
    /// The number that no value has yet.
    pub next: u64,
    /// What was come to, and how often.
    pub reached: BTreeMap<&'static str, u64>,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an error says of the operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    Refused,
    NotDurable,
    /// Nothing, or of one of several parts.
    Else,
}

fn says(error: &Error) -> Says {
    match error {
        Error::Index(IndexError::Refused(_)) => Says::Refused,
        Error::Index(IndexError::NotDurable(_)) => Says::NotDurable,
        _ => Says::Else,
    }
}

/// What a step does to what is known to be durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// All of it is durable when the step has returned.
    Durable,
    /// It need not be.
    Later,
}

impl From<Durability> for Then {
    fn from(durability: Durability) -> Then {
        match durability {
            Durability::Immediate => Then::Durable,
            Durability::Eventual => Then::Later,
        }
    }
}

impl Process {
    pub fn notes(&self) -> MutexGuard<'_, Notes> {
        lock(&self.notes)
    }

    /// What it holds.
    pub fn now(&self) -> Arc<State> {
        self.notes().newest()
    }

    pub fn reach(&mut self, what: &'static str) {
        *self.reached.entry(what).or_default() += 1;
    }

    /// Carries out an operation that leads through these states, of which there may be none; what it answers. `None` if
    /// it has failed, as a call of the disk has before.
    pub fn apply<T>(
        &mut self,
        states: Vec<State>,
        then: Then,
        run: impl FnOnce(&Process) -> Result<T, Error>,
    ) -> Result<Option<T>, Trouble> {
        let (before, parts) = (self.now(), states.len());
        let first = self.notes().states.len();
        let changes = states.last().is_some_and(|last| *last != *before);
        let last = self.notes().begin(states);
        match run(self) {
            Ok(answer) => {
                self.notes().end(last, changes && then == Then::Durable);
                let all = self.notes().now;
                if all.durable == all.max {
                    self.touched.clear();
                }
                Ok(Some(answer))
            }
            Err(error) if self.disk.injected() > 0 => {
                self.settle(error, &before, first, parts)?;
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// An operation has failed, that began when there were `first` states: finds out what it has done, and whether the
    /// error says so.
    fn settle(&mut self, error: Error, before: &State, first: usize, parts: usize) -> Result<(), Trouble> {
        let live = self.live()?;
        let mut notes = self.notes();
        let last = notes.states.len() - 1;
        let is_live = |n: &usize| notes.states[*n].as_ref().is_some_and(|state| **state == live);
        let found = (first.max(1) - 1..=last).rev().find(is_live);
        let Some(found) = found else {
            return Err(Trouble::Wrong(format!(
                "after the error '{error}' it holds {live:?}"
            )));
        };
        let differs = |n: usize| notes.states[n].as_ref().is_some_and(|state| **state != live);
        match says(&error) {
            Says::Refused if parts == 1 && live != *before => {
                return Err(Trouble::Wrong(format!("what was refused has been done: {error}")));
            }
            Says::NotDurable if parts == 1 && differs(last) => {
                return Err(Trouble::Wrong(format!("what was done is not there: {error}")));
            }
            // Nothing of it is in the log.
            Says::Refused if parts == 1 => notes.states[first..].fill(None),
            _ => {}
        }
        if found < last || notes.states[last].is_none() {
            notes.begin([live]);
        }
        let reached = notes.states.len() - 1;
        notes.end(reached, false);
        Ok(())
    }

    /// What it holds, durable or not: what another process finds in a copy of the pool.
    pub fn live(&self) -> Result<State, Error> {
        let image = Image::of(&self.memory);
        let (pool, _memory) = pool(Some(&image), ID, told(|| ()))?;
        State::of(&Options::new().recovery_threads(0).open_pool(pool)?)
    }

    /// Whether the log has failed.
    pub fn has_failed(&self) -> Result<bool, Error> {
        let log = self.db.stats()?.log;
        Ok(log.is_some_and(|log| log.failure.is_some()))
    }

    /// A database whose log has failed takes no writes and acknowledges nothing more, says why, and reads what is
    /// durable.
    pub fn check_failed(&self) -> Result<(), Trouble> {
        let wrong = |what: &str| Err(Trouble::Wrong(format!("after the log has failed, {what}")));
        let before = self.live()?;
        for map in &self.maps {
            let written = map.upsert("key 5", "after the failure");
            let said = written.as_ref().err().map(ToString::to_string);
            if !said.is_some_and(|said| said.contains("log")) {
                return wrong(&format!("a write says {written:?}"));
            }
        }
        let mut batch = self.db.batch();
        batch
            .upsert(&self.maps[0], "one", "1")
            .upsert(&self.maps[1], "two", "2");
        if batch.commit().is_ok() || self.db.map("another").is_ok() {
            return wrong("a batch or a map is made");
        }
        if self.live()? != before {
            return wrong("a write that was refused is there");
        }
        let log = self.db.stats()?.log.unwrap_or_default();
        if log.durable < log.appended && self.db.sync().is_ok() {
            return wrong("a sync says that all is durable");
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
