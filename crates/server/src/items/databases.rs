//! The databases that Redis clients select by number, each the items in a map of its own. Database 0 is also what
//! memcached clients see; database N is in the map of its name with `-N` behind it.
//!
//! I1 What a transaction changes, in all databases, is kept back in one overlay and committed by one call: all of it or
//!    nothing.

use crate::clock::now;
use crate::items::memory::{Memory, Room, Stores};
use crate::items::store::{Before, Failure, Store};
use crate::{Error, freed};
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use wollemi::{Db, Hardware, IndexKind, Map, Media, Overlay};

/// How many databases there can be.
pub const COUNT: usize = 16;

/// The stores in a transaction, with their numbers, as they were before it.
type Begun = Vec<(usize, Arc<Store>, Before)>;

/// Why a transaction was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// Nothing of it is done, nor will be: clients read that the command failed.
    Refused(String),
    /// Nothing of it is done, since the log has refused it.
    NotLogged(String),
    /// It is done, and a sync has failed: it is not known whether it survives a loss of power.
    NotDurable(String),
    /// It is committed, and some of it is not done yet: the next opening of the database does it. Nothing can be
    /// written before.
    Unfinished(String),
}

impl From<wollemi::Error> for NotMade {
    fn from(error: wollemi::Error) -> NotMade {
        match error {
            wollemi::Error::Unfinished(_) => NotMade::Unfinished(error.to_string()),
            wollemi::Error::Index(index::Error::NotDurable(_)) => NotMade::NotDurable(error.to_string()),
            wollemi::Error::Index(index::Error::Refused(_)) | wollemi::Error::Files(_) => {
                NotMade::NotLogged(error.to_string())
            }
            error => NotMade::Refused(error.to_string()),
        }
    }
}

/// Maximum number of bytes that a transaction may change in one database.
const MAX: usize = 256 << 20;

const TOO_MUCH: &str = "the transaction changes more than 256 MiB";

/// All databases.
pub struct Databases<M: Media = Hardware> {
    db: Db<M>,
    /// The name of the first one's map.
    name: String,
    /// What holds a map that is made.
    index: Option<IndexKind>,
    first: Arc<Store>,
    /// The longest value that memcached's clients may make.
    largest: Arc<AtomicUsize>,
    opened: [OnceLock<Arc<Store>>; COUNT],
    /// Held by the thread that makes a database. Those that are there are selected meanwhile.
    making: Mutex<()>,
    /// What the transaction that runs has changed.
    overlay: Arc<Mutex<Overlay>>,
    /// The stores in the transaction that runs, as they were before it.
    before: Mutex<Option<Begun>>,
    /// Held exclusively by a command that must run alone, shared by all others.
    gate: ShardedLock<()>,
    /// How often the gate was held by one.
    turns_alone: AtomicU64,
    memory: Memory,
}

/// With the count of its items begun: an empty one's is through, before anybody writes. Damaged items stay uncounted;
/// requests report the damage.
fn begun(store: Store) -> Store {
    let _ = store.count_on(1);
    store
}

/// A map, made if it is not there.
fn make<M: Media>(db: &Db<M>, name: &str, index: Option<IndexKind>) -> Result<Map, Error> {
    let made = match index {
        Some(index) => db.map_with(name, index),
        None => db.map(name),
    };
    made.map_err(map_error)
}

fn map_error(error: wollemi::Error) -> Error {
    Error::Map(error.to_string())
}

impl<M: Media> Databases<M> {
    /// Database 0 in the map of this name, which is made if it is not there, and the others that are there already.
    /// `index` is to hold those that are made.
    pub fn open(
        db: &Db<M>,
        name: &str,
        index: Option<IndexKind>,
        memory: Memory,
        largest: Arc<AtomicUsize>,
    ) -> Result<Databases<M>, Error> {
        let overlay = Arc::new(Mutex::new(Overlay::within(MAX)));
        let map = make(db, name, index)?;
        let first = Store::open(
            map,
            overlay.clone(),
            largest.clone(),
            memory.usage().clone(),
            now(),
        )?;
        let first = Arc::new(begun(first));
        let databases = Databases {
            opened: std::array::from_fn(|i| match i {
                0 => OnceLock::from(first.clone()),
                _ => OnceLock::new(),
            }),
            making: Mutex::new(()),
            before: Mutex::new(None),
            overlay,
            db: db.clone(),
            name: name.to_owned(),
            index,
            first,
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

    /// The database that all their maps are in.
    pub fn db(&self) -> &Db<M> {
        &self.db
    }

    /// A database, made if it is not there. The number is below [`COUNT`].
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

    /// Whether all reported numbers of items are exact.
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
        // A thread that panicked has filled the slot or not.
        let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = slot.get() {
            return Ok(Some(store.clone())); // Another thread was faster.
        }
        let name = format!("{}-{number}", self.name);
        let map = match create {
            true => Some(make(&self.db, &name, self.index)?),
            false => self.db.find_map(&name).map_err(map_error)?,
        };
        let Some(map) = map else {
            return Ok(None);
        };
        let (overlay, usage) = (self.overlay.clone(), self.memory.usage().clone());
        let store = Store::open(map, overlay, self.largest.clone(), usage, now())?;
        let store = Arc::new(begun(store));
        if let Some(before) = &mut *self.before() {
            before.push((number, store.clone(), store.begin()));
        }
        Ok(Some(slot.get_or_init(|| store).clone()))
    }

    /// Runs one command while no other has exclusive use. Do not hold it while waiting for a client.
    pub fn shared(&self) -> ShardedLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exclusive use: runs several commands while no other command runs. It waits for those under way, and all others
    /// wait for it, so a write that stalls here stalls every client.
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
    pub fn begin(&self) -> Transaction<'_, M> {
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

    /// Takes the transaction's buffered changes.
    fn take_overlay(&self) -> Overlay {
        // Each change of it is one insert: it is whole whatever panicked.
        let mut overlay = self.overlay.lock().unwrap_or_else(PoisonError::into_inner);
        freed::note(overlay.bytes());
        std::mem::replace(&mut *overlay, Overlay::within(MAX))
    }

    fn end(&self, committed: bool) {
        drop(self.take_overlay());
        for (_, store, before) in self.before().take().into_iter().flatten() {
            store.end(before, committed);
        }
    }
}

/// Exclusive use by one client's commands. Dropped uncommitted, it changes nothing.
pub struct Transaction<'d, M: Media = Hardware> {
    databases: &'d Databases<M>,
}

impl<M: Media> Transaction<'_, M> {
    /// Commits: all that was changed is durable when this returns. Where that was [refused](NotMade::Refused), nothing
    /// was changed.
    pub fn commit(self) -> Result<(), NotMade> {
        let overlay = self.databases.take_overlay();
        if overlay.is_outgrown() {
            return Err(NotMade::Refused(TOO_MUCH.to_owned()));
        }
        let committed = match overlay.is_empty() {
            true => Ok(()),
            false => self.databases.db.commit(overlay).map_err(NotMade::from),
        };
        if !matches!(committed, Err(NotMade::Refused(_) | NotMade::NotLogged(_))) {
            self.databases.end(true);
        }
        committed
    }
}

impl<M: Media> Drop for Transaction<'_, M> {
    fn drop(&mut self) {
        // After a commit there is nothing left to end.
        self.databases.end(false);
    }
}

impl<M: Media> std::fmt::Debug for Databases<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Databases").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::model::Model;
    use index::{Guard, Index, Value};

    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    /// A wait that is longer than this has found a deadlock.
    const PATIENCE: Duration = Duration::from_secs(120);

    fn open(db: &Db) -> Databases {
        let databases = Databases::open(db, "items", None, Memory::new(0, true), Arc::default());
        databases.expect("it is empty")
    }

    /// An empty map needs no counting pass: its items are counted from the first one on.
    #[test]
    fn an_empty_map_is_counted_from_the_start() {
        let databases = open(&Db::anonymous().expect("memory"));
        assert_eq!(databases.first().items(), (0, true));
    }

    /// An index whose first read waits until it is let on.
    struct Slow {
        index: Model,
        waits: AtomicBool,
        making: Sender<()>,
        let_on: Mutex<Receiver<()>>,
    }

    impl Index for Slow {
        index::delegate!(index: write, scan, check);

        fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, index::Error> {
            if self.waits.swap(false, Ordering::SeqCst) {
                self.making.send(()).expect("the test waits");
                let let_on = self.let_on.lock().expect("one waits");
                let_on.recv_timeout(PATIENCE).expect("the test goes on");
            }
            self.index.get(key, guard)
        }
    }

    /// While a map is being made, the databases that are there are selected and listed, and two clients that select a
    /// new one get the same.
    #[test]
    fn databases_are_selected_while_another_is_made() {
        let ((making, is_made), (go_on, let_on)) = (channel(), channel());
        let db = Db::anonymous().expect("memory");
        let databases = &open(&db);
        let _map = db.hold(
            "items-3",
            Arc::new(Slow {
                index: Model::new(),
                waits: AtomicBool::new(true),
                making,
                let_on: Mutex::new(let_on),
            }),
        );
        std::thread::scope(|scope| {
            let selected = [3, 3].map(|number| scope.spawn(move || databases.select(number)));
            assert_eq!(is_made.recv_timeout(PATIENCE), Ok(()));
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
