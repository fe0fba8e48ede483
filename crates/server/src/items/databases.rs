//! The databases that Redis clients select by number, each the items in a map of its own. Database 0 is also what
//! memcached clients see.
//!
//! I1 What a transaction changes, in all databases, is committed by one call: all of it or nothing, where the
//!    configuration says how.

use crate::Error;
use crate::clock::now;
use crate::items::memory::{Memory, Room, Stores};
use crate::items::store::{Before, Failure, Store};
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use index::Index;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// How many databases there can be.
pub const COUNT: usize = 16;

/// The stores in a transaction, with their numbers, as they were before it.
type Begun = Vec<(usize, Arc<Store>, Before)>;

/// The map of database `number` above 0, made if it is not there and the second argument says so; or why it cannot be
/// had.
pub type Maps = Arc<dyn Fn(usize, bool) -> Result<Option<Arc<dyn index::Index>>, String> + Send + Sync>;

/// What a key of database `database` shall hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change<'c> {
    /// The database's number.
    pub database: usize,
    /// The key.
    pub key: &'c [u8],
    /// The value, as the index has it; `None`: the key shall be absent.
    pub value: Option<&'c [u8]>,
}

/// Makes changes, of no key two: all of them, durably, or none, whatever crash comes; or says why it could not.
pub type Commit = Arc<dyn Fn(&[Change<'_>]) -> Result<(), NotMade> + Send + Sync>;

/// Why changes were not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// None of them is made, nor will be: clients read that the command failed.
    Refused(String),
    /// They are committed, and some of them are not made yet: the next opening of the maps makes them. No map can be
    /// written to before.
    Unfinished(String),
}

impl From<String> for NotMade {
    fn from(why: String) -> NotMade {
        NotMade::Refused(why)
    }
}

const TOO_MUCH: &str = "the transaction changes more than 256 MiB";

/// All databases.
pub struct Databases {
    first: Arc<Store>,
    maps: Option<Maps>,
    commit: Option<Commit>,
    /// The longest value that memcached's clients may make.
    largest: Arc<AtomicUsize>,
    opened: [OnceLock<Arc<Store>>; COUNT],
    /// Held by the thread that makes a database. Those that are there are selected meanwhile.
    making: Mutex<()>,
    /// The stores in the transaction that runs, as they were before it.
    before: Mutex<Option<Begun>>,
    /// Held by one to act alone, shared by all who do one thing at a time.
    gate: ShardedLock<()>,
    /// How often the gate was held by one.
    turns_alone: AtomicU64,
    memory: Memory,
}

/// With the count of its items begun: an empty one's is through, before anybody writes. What is damaged stays uncounted;
/// requests will say what is wrong.
fn begun(store: Store) -> Store {
    let _ = store.count_on(1);
    store
}

impl Databases {
    /// Database 0 in `index`, and the others that are there already.
    pub fn open(
        index: Arc<dyn Index>,
        maps: Option<Maps>,
        commit: Option<Commit>,
        memory: Memory,
        largest: Arc<AtomicUsize>,
    ) -> Result<Databases, Error> {
        let first = Store::open(index, largest.clone(), memory.usage().clone(), now())?;
        let first = Arc::new(begun(first));
        let databases = Databases {
            opened: std::array::from_fn(|i| match i {
                0 => OnceLock::from(first.clone()),
                _ => OnceLock::new(),
            }),
            making: Mutex::new(()),
            before: Mutex::new(None),
            first,
            maps,
            commit,
            largest,
            gate: ShardedLock::new(()),
            turns_alone: AtomicU64::new(0),
            memory,
        };
        for number in 1..COUNT {
            databases.find(number, false)?;
        }
        Ok(databases)
    }

    /// Database 0.
    pub fn first(&self) -> &Arc<Store> {
        &self.first
    }

    /// How many can be selected.
    pub fn count(&self) -> usize {
        if self.maps.is_some() { COUNT } else { 1 }
    }

    /// A database, made if it is not there. The number is below [`count`](Databases::count).
    pub fn select(&self, number: usize) -> Result<Arc<Store>, Error> {
        self.find(number, true)?.ok_or(Error::NoDatabase(number))
    }

    /// Those that are there, with their numbers.
    pub fn all(&self) -> Stores {
        let numbered = self.opened.iter().enumerate();
        numbered
            .filter_map(|(i, slot)| Some((i, slot.get()?.clone())))
            .collect()
    }

    /// How many edits there were in all since the start, those that changed nothing included.
    pub fn edits(&self) -> u64 {
        self.all().iter().map(|(_, store)| store.edits()).sum()
    }

    /// Whether all that is told of how many items there are is exact.
    pub fn counted(&self) -> bool {
        self.all().iter().all(|(_, store)| store.items().1)
    }

    /// How many keys all their maps have, their records' and those of dead items included, as far as they are counted.
    pub fn keys(&self) -> u64 {
        self.all().iter().map(|(_, store)| store.keys()).sum()
    }

    fn find(&self, number: usize, create: bool) -> Result<Option<Arc<Store>>, Error> {
        let Some(slot) = self.opened.get(number) else {
            return Ok(None);
        };
        if let Some(store) = slot.get() {
            return Ok(Some(store.clone()));
        }
        // Whoever panicked has filled the slot or not.
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = slot.get() {
            return Ok(Some(store.clone())); // Another thread was faster.
        }
        let Some(maps) = &self.maps else {
            return Ok(None);
        };
        let Some(index) = maps(number, create).map_err(Error::Map)? else {
            return Ok(None);
        };
        let store = Store::open(index, self.largest.clone(), self.memory.usage().clone(), now())?;
        let store = Arc::new(begun(store));
        if let Some(before) = &mut *self.before() {
            before.push((number, store.clone(), store.begin()));
        }
        Ok(Some(slot.get_or_init(|| store).clone()))
    }

    /// Does one thing while nobody acts alone. Not to be held while waiting for a client.
    pub fn shared(&self) -> ShardedLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does several things while nobody does anything else. Waits for what is under way, and all others wait for it: one
    /// write that stalls then holds up every client.
    pub fn alone(&self) -> ShardedLockWriteGuard<'_, ()> {
        let alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        self.turns_alone.fetch_add(1, Ordering::Relaxed);
        alone
    }

    /// How often a client has acted alone. Between two calls that tell the same, under [`shared`](Databases::shared),
    /// none has, so that no transaction came between.
    pub fn turns_alone(&self) -> u64 {
        self.turns_alone.load(Ordering::Relaxed)
    }

    /// What the items may take.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Room for a write by which items may grow by this many bytes. The caller may write, and is in no transaction.
    pub fn room(&self, bytes: u64, now: u64) -> Result<Room<'_>, Failure> {
        self.memory.reserve(&|| self.all(), bytes, now)
    }

    /// Begins a transaction: edits are kept back until it is committed. The caller acts alone until it has ended.
    pub fn begin(&self) -> Transaction<'_> {
        let stores = self.all().into_iter();
        *self.before() = Some(
            stores
                .map(|(number, store)| {
                    let before = store.begin();
                    (number, store, before)
                })
                .collect(),
        );
        Transaction { databases: self }
    }

    fn before(&self) -> MutexGuard<'_, Option<Begun>> {
        // Each change is one assignment or one push.
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, committed: bool) {
        for (_, store, before) in self.before().take().into_iter().flatten() {
            store.end(before, committed);
        }
    }
}

/// What one client does while nobody else does anything. Dropped, it leaves all as it was.
pub struct Transaction<'d> {
    databases: &'d Databases,
}

impl Transaction<'_> {
    /// Commits: all that was changed is durable when this returns. Where that was [refused](NotMade::Refused), nothing
    /// was changed; but where the configuration does not say how to commit several changes, the first of them may have
    /// been made.
    pub fn commit(self) -> Result<(), NotMade> {
        let mut parts = Vec::new();
        for (number, store, _) in self.databases.before().iter().flatten() {
            let changes = store.changes().ok_or_else(|| TOO_MUCH.to_owned())?;
            parts.push((*number, store.clone(), changes));
        }
        let mut committed = Ok(());
        match &self.databases.commit {
            Some(commit) => {
                let all = parts.iter().flat_map(|&(database, _, ref changes)| {
                    changes.iter().map(move |(key, value)| Change {
                        database,
                        key,
                        value: value.as_deref(),
                    })
                });
                let all: Vec<_> = all.collect();
                if !all.is_empty() {
                    committed = commit(&all);
                }
            }
            None => {
                for (_, store, changes) in &parts {
                    for (key, value) in changes {
                        let made = store.make(key, value.as_deref());
                        made.map_err(|error| error.to_string())?;
                    }
                }
            }
        }
        if !matches!(committed, Err(NotMade::Refused(_))) {
            self.databases.end(true);
        }
        committed
    }
}

impl Drop for Transaction<'_> {
    fn drop(&mut self) {
        // After a commit there is nothing left to end.
        self.databases.end(false);
    }
}

impl std::fmt::Debug for Databases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Databases").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::model::Model;
    use std::sync::mpsc::channel;
    use std::time::Duration;

    /// A wait that is longer than this has found a deadlock.
    const PATIENCE: Duration = Duration::from_secs(120);

    /// What an empty map is filled with counts from the first item on: nobody need wait for the count beside the clients.
    #[test]
    fn an_empty_map_is_counted_from_the_start() {
        let databases = Databases::open(
            Arc::new(Model::new()),
            None,
            None,
            Memory::new(0, true),
            Arc::default(),
        );
        let databases = databases.expect("it is empty");
        assert_eq!(databases.first().items(), (0, true));
    }

    /// While a map is being made, the databases that are there are selected and listed, and two clients that select a new
    /// one get the same.
    #[test]
    fn databases_are_selected_while_another_is_made() {
        let ((making, is_made), (go_on, let_on)) = (channel(), channel());
        let let_on = Mutex::new(let_on);
        let maps: Maps = Arc::new(move |number, create| {
            if !create {
                return Ok(None);
            }
            making.send(number).map_err(|error| error.to_string())?;
            let let_on = let_on.lock().map_err(|error| error.to_string())?;
            let_on.recv_timeout(PATIENCE).map_err(|error| error.to_string())?;
            Ok(Some(Arc::new(Model::new())))
        });
        let databases = Databases::open(
            Arc::new(Model::new()),
            Some(maps),
            None,
            Memory::new(0, true),
            Arc::default(),
        );
        let databases = &databases.expect("it is empty");
        std::thread::scope(|scope| {
            let selected = [3, 3].map(|number| scope.spawn(move || databases.select(number)));
            assert_eq!(is_made.recv_timeout(PATIENCE), Ok(3));
            assert!(databases.select(0).is_ok());
            assert_eq!(databases.all().len(), 1);
            go_on.send(()).expect("a map waits for it");
            let [one, other] = selected.map(|selected| selected.join().expect("no panic"));
            assert!(Arc::ptr_eq(
                &one.expect("it is made"),
                &other.expect("it is there")
            ));
        });
        assert_eq!(databases.all().len(), 2);
    }
}
