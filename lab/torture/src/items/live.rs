//! The databases in use, and the execution of operations.

mod edits;
mod look;

use super::turns::Turns;
use super::{Answer, Op, Token, is_full};
use crashkit::Crash;
use crashkit::on_heap::may_be_full;
use pmem::Pool;
use server::stored::{Databases, Failure, ItemStore, MemoryLimit, NotMade};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, PoisonError};
use wollemi::{Db, Map, Options, RecoveryState};

/// The constant present time in milliseconds. It lies before the real time, so whatever is due at it is also due by
/// the clock.
const NOW: u64 = 1_000_000_000_000;

/// The names of the maps of databases 0 and 1.
const MAPS: [&str; 2] = ["items", "items-1"];

/// The length of the longest value.
const LARGEST: usize = 1 << 20;

/// The number of entries visited by one step of the count.
const COUNT_STEP: usize = 2;

/// The databases in use.
pub struct Live {
    db: Db<Crash>,
    databases: Databases<Crash>,
    stores: [Arc<ItemStore>; 2],
    maps: [Map; 2],
    tight: bool,
    /// Stands for the databases' gate. A transaction takes it exclusively.
    gate: Turns,
    /// Stands for the lock of the record.
    record: Turns,
    /// Stands for the lock of the count. Edits share it; a flush and a step of the count take it exclusively.
    edits: Turns,
    /// Whether a delayed flush is due, per database.
    due: [AtomicBool; 2],
    /// The uniques that operations gave or read, by their tokens.
    seen: Mutex<HashMap<Token, u64>>,
}

fn failed(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl Live {
    /// Opens the server's databases in an open embedded database.
    fn of(db: Db<Crash>, media: Crash, tight: bool) -> Result<Live, String> {
        let largest = Arc::new(AtomicUsize::new(LARGEST));
        let databases =
            Databases::open(&db, MAPS[0], None, MemoryLimit::new(0, true), largest).map_err(failed)?;
        let stores = [0, 1].map(|number| databases.select(number));
        let [first, second] = stores.map(|store| store.map_err(failed));
        let map = |name| {
            let found = db.find_map(name).map_err(failed)?;
            found.ok_or_else(|| format!("the map {name} is missing"))
        };
        Ok(Live {
            stores: [first?, second?],
            maps: [map(MAPS[0])?, map(MAPS[1])?],
            db,
            databases,
            tight,
            gate: Turns::new(media.clone()),
            record: Turns::new(media.clone()),
            edits: Turns::new(media),
            due: [const { AtomicBool::new(false) }; 2],
            seen: Mutex::default(),
        })
    }

    fn start(pool: Pool<Crash>) -> Result<(Db<Crash>, Crash, bool), String> {
        let (media, tight) = (pool.media().clone(), may_be_full(&pool));
        let db = Options::new().recovery_threads(0).open_pool(pool);
        Ok((db.map_err(failed)?, media, tight))
    }

    pub(super) fn create(pool: Pool<Crash>) -> Result<Live, String> {
        let (db, media, tight) = Live::start(pool)?;
        db.recover();
        Live::of(db, media, tight)
    }

    pub(super) fn open(pool: Pool<Crash>) -> Result<Option<Live>, String> {
        let (db, media, tight) = Live::start(pool)?;
        // A server that finds no room at its start waits for the recovery thread. There is none here, so this recovers.
        if tight {
            db.recover();
        }
        // This map is created last, so its absence means that the creation did not complete.
        match db.find_map(MAPS[1]).map_err(failed)? {
            None => Ok(None),
            Some(_) => Live::of(db, media, tight).map(Some),
        }
    }

    pub(super) fn recover(&self) -> Result<(), String> {
        match self.db.recover().state {
            RecoveryState::Done => Ok(()),
            state => Err(format!("recovery is {state}")),
        }
    }

    /// Checks the database: its structures are sound, and nothing leaks.
    pub(super) fn check(&self) -> Result<(), String> {
        // Frees the retired chunks, so that the check sees one that was retired twice.
        (0..4).for_each(|_| heap::pin().flush());
        let check = self.db.check().map_err(failed)?;
        match check.is_clean() {
            true => Ok(()),
            false => Err(format!("the check reports {check:?}")),
        }
    }

    /// Returns an operation's answer: [`Answer::Full`] if a pool that may become full refused it.
    pub(super) fn unless_full(&self, done: Result<Answer, Failure>) -> Result<Answer, String> {
        match done {
            Err(failure) if is_full(&failure) && self.tight => Ok(Answer::Full),
            done => done.map_err(failed),
        }
    }

    pub(super) fn store(&self, database: u8) -> &ItemStore {
        &self.stores[usize::from(database)]
    }

    /// Executes a flush that is due, as the server does before each command.
    fn tick(&self, database: u8) -> Result<(), Failure> {
        if self.due[usize::from(database)].load(SeqCst) {
            let _record = self.record.alone();
            self.flush_if_due(database)?;
        }
        Ok(())
    }

    /// Executes a flush that is due. The caller holds the record.
    fn flush_if_due(&self, database: u8) -> Result<(), Failure> {
        let due = &self.due[usize::from(database)];
        if due.load(SeqCst) {
            let _edits = self.edits.alone();
            self.store(database).tick(NOW)?;
            due.store(false, SeqCst);
        }
        Ok(())
    }

    fn seen(&self, token: Token) -> Option<u64> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&token).copied()
    }

    fn remember(&self, token: Token, unique: u64) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(token, unique);
    }

    pub(super) fn apply(&self, op: &Op) -> Result<Answer, Failure> {
        if let Op::Transaction(ops, commits) = op {
            return self.transact(ops, *commits);
        }
        if let Op::Put(..) = op {
            return self.put_many(&[op])?.remove(0);
        }
        let _gate = self.gate.shared();
        if let Some(database) = op.database() {
            self.tick(database)?;
        }
        match op {
            Op::Flush(database) => {
                let _record = self.record.alone();
                let _edits = self.edits.alone();
                self.store(*database).flush(None)?;
                self.due[usize::from(*database)].store(false, SeqCst);
                Ok(Answer::Done)
            }
            Op::FlushLater(database, soon) => {
                let _record = self.record.alone();
                // The new schedule must not replace a flush that has become due meanwhile.
                self.flush_if_due(*database)?;
                let at = if *soon { 1 } else { u64::MAX };
                self.store(*database).flush(Some(at))?;
                self.due[usize::from(*database)].store(*soon, SeqCst);
                Ok(Answer::Done)
            }
            Op::CountOn(database) => {
                let _edits = self.edits.alone();
                self.store(*database).count_on(COUNT_STEP)?;
                Ok(Answer::Done)
            }
            Op::ItemCount(database) => {
                let _edits = self.edits.alone();
                self.item_count(*database)
            }
            Op::Evict((database, key)) => {
                let _edits = self.edits.alone();
                let store = self.store(*database);
                // After a sweep the next item is alive.
                store.sweep(&mut None, usize::MAX, NOW)?;
                let (_, gone) = store.evict(&mut key.clone(), 1, true, NOW)?;
                Ok(Answer::Items(gone.evicted))
            }
            Op::Spend(database) => {
                let _record = self.record.alone();
                let _edits = self.edits.alone();
                self.spend(*database)
            }
            Op::Recover => {
                let recovered = self.recover();
                recovered.map_err(|error| Failure::Index(index::Error::Refused(error.into())))?;
                Ok(Answer::Done)
            }
            edit => self.edit(edit, false),
        }
    }

    /// Executes a transaction, together with the flushes that are due.
    fn transact(&self, ops: &[Op], commits: bool) -> Result<Answer, Failure> {
        let _gate = self.gate.alone();
        let _alone = self.databases.alone();
        let transaction = self.databases.begin();
        for store in &self.stores {
            store.tick(NOW)?;
        }
        let mut each = Vec::new();
        for op in ops {
            each.push(match op {
                Op::Flush(database) => {
                    self.store(*database).flush(None)?;
                    Answer::Done
                }
                Op::Spend(database) => self.spend(*database)?,
                edit => self.edit(edit, true)?,
            });
        }
        if !commits {
            drop(transaction);
            return Ok(Answer::Each(each));
        }
        match transaction.commit() {
            Ok(()) => {
                self.due.iter().for_each(|due| due.store(false, SeqCst));
                Ok(Answer::Each(each))
            }
            Err(NotMade::Refused(_)) if self.tight => Ok(Answer::Full),
            Err(error) => Err(Failure::Index(index::Error::Refused(format!("{error:?}").into()))),
        }
    }
}
