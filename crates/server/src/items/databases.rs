//! The databases that Redis clients select by number. Each holds its items in a map of its own: database N in the map
//! of database 0's name followed by `-N`. memcached clients see database 0.
//!
//! I1 One overlay buffers the changes of a transaction in all databases, and one call commits them: all or nothing.

use crate::clock::now;
use crate::items::memory::{MemoryLimit, Room, Stores};
use crate::items::store::{Before, Failure, ItemStore};
use crate::{Error, freed};
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard, ShardedLockWriteGuard};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use wollemi::{Db, Hardware, IndexKind, Map, Media, Overlay};

/// Maximum number of databases.
pub const COUNT: usize = 16;

/// The stores in a transaction, with their numbers, as they were before it.
type Begun = Vec<(usize, Arc<ItemStore>, Before)>;

/// Why a transaction was not carried out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// Nothing of it was or will be done: clients read that the command failed.
    Refused(String),
    /// Nothing of it was done, since the log has refused it.
    NotLogged(String),
    /// It is done, but a sync has failed: it is unknown whether it survives a loss of power.
    NotDurable(String),
    /// It is committed, but not all of it is done: the next opening of the database completes it. Until then nothing
    /// can be written.
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

/// Maximum number of bytes that a transaction may change in each database.
const MAX: usize = 256 << 20;

const TOO_MUCH: &str = "the transaction changes more than 256 MiB of one database";

/// All databases.
pub struct Databases<M: Media = Hardware> {
    db: Db<M>,
    /// The name of database 0's map.
    name: String,
    /// The index for maps that are created.
    index: Option<IndexKind>,
    first: Arc<ItemStore>,
    /// The largest value that memcached's clients may store, in bytes.
    largest: Arc<AtomicUsize>,
    opened: [OnceLock<Arc<ItemStore>>; COUNT],
    /// Held by the thread that opens or creates a database's store. Open ones can be selected meanwhile.
    making: Mutex<()>,
    /// The changes of the running transaction.
    overlay: Arc<Mutex<Overlay>>,
    /// The stores in the running transaction, as they were before it.
    before: Mutex<Option<Begun>>,
    /// Held exclusively by a command that must run alone, shared by all others.
    gate: ShardedLock<()>,
    /// How often a command has had exclusive use.
    exclusive_uses: AtomicU64,
    memory: MemoryLimit,
}

/// Begins the count of a store's items. The count of an empty store is then complete, before any client writes. An
/// error of a damaged pool is ignored here: requests report the damage.
fn begin_count(store: ItemStore) -> ItemStore {
    let _ = store.count_on(1);
    store
}

/// Opens a map, or creates it if it does not exist.
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
    /// Opens database 0 in the map of this name, which it creates if needed, and the other databases that exist. Maps
    /// that are created have this `index`.
    pub fn open(
        db: &Db<M>,
        name: &str,
        index: Option<IndexKind>,
        memory: MemoryLimit,
        largest: Arc<AtomicUsize>,
    ) -> Result<Databases<M>, Error> {
        let overlay = Arc::new(Mutex::new(Overlay::within(MAX)));
        let map = make(db, name, index)?;
        let first = ItemStore::open(
            map,
            overlay.clone(),
            largest.clone(),
            memory.usage().clone(),
            now(),
        )?;
        let first = Arc::new(begin_count(first));
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
            exclusive_uses: AtomicU64::new(0),
            memory,
        };
        for number in 1..COUNT {
            databases.find(number, false)?;
        }
        Ok(databases)
    }

    /// Returns database 0.
    pub fn first(&self) -> &Arc<ItemStore> {
        &self.first
    }

    /// Returns the database that holds all maps.
    pub fn db(&self) -> &Db<M> {
        &self.db
    }

    /// Returns a database, which is created if needed. The number is below [`COUNT`].
    pub fn select(&self, number: usize) -> Result<Arc<ItemStore>, Error> {
        self.find(number, true)?.ok_or(Error::NoDatabase(number))
    }

    /// Returns the existing databases with their numbers.
    pub fn all(&self) -> Stores {
        let numbered = self.opened.iter().enumerate();
        numbered
            .filter_map(|(i, slot)| Some((i, slot.get()?.clone())))
            .collect()
    }

    /// Returns the number of [changes](ItemStore::edits) since the start, including edits that changed nothing.
    pub fn edits(&self) -> u64 {
        self.all().iter().map(|(_, store)| store.edits()).sum()
    }

    /// Returns whether all reported numbers of items are exact.
    pub fn counted(&self) -> bool {
        self.all().iter().all(|(_, store)| store.items().1)
    }

    /// Returns the number of keys in all maps, those of records and of dead items included, as far as they are counted.
    pub fn keys(&self) -> u64 {
        self.all().iter().map(|(_, store)| store.keys()).sum()
    }

    fn find(&self, number: usize, create: bool) -> Result<Option<Arc<ItemStore>>, Error> {
        let Some(slot) = self.opened.get(number) else {
            return Ok(None);
        };
        if let Some(store) = slot.get() {
            return Ok(Some(store.clone()));
        }
        // The lock protects no data of its own: after a panic the slot is either empty or filled, and both are valid.
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
        let store = ItemStore::open(map, overlay, self.largest.clone(), usage, now())?;
        let store = Arc::new(begin_count(store));
        if let Some(before) = &mut *self.before() {
            before.push((number, store.clone(), store.begin()));
        }
        Ok(Some(slot.get_or_init(|| store).clone()))
    }

    /// Passes the gate for one command, which runs beside all but those with exclusive use. Do not hold the guard while
    /// waiting for a client.
    pub fn shared(&self) -> ShardedLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the gate for exclusive use: no other command runs until the guard is dropped, except memcached's `stats`,
    /// which reads no item. The caller waits for the commands under way, and all others wait for the caller, so a write
    /// that stalls here stalls every client.
    pub fn alone(&self) -> ShardedLockWriteGuard<'_, ()> {
        let alone = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        self.exclusive_uses.fetch_add(1, Ordering::Relaxed);
        alone
    }

    /// Returns how often a command has had exclusive use. If two calls under [`shared`](Databases::shared) return the
    /// same, no transaction came between.
    pub fn exclusive_uses(&self) -> u64 {
        self.exclusive_uses.load(Ordering::Relaxed)
    }

    /// Returns the memory limit.
    pub fn memory(&self) -> &MemoryLimit {
        &self.memory
    }

    /// Reserves room for a write by which items may grow by this many bytes. The caller has passed the gate, and is in
    /// no transaction.
    pub fn room(&self, bytes: u64, now: u64) -> Result<Room<'_>, Failure> {
        self.memory.reserve(&|| self.all(), bytes, now)
    }

    /// Begins a transaction, which buffers edits until it commits. The caller has exclusive use until it has ended.
    pub fn begin(&self) -> ItemTransaction<'_, M> {
        let stores = self.all().into_iter();
        *self.before() = Some(
            stores
                .map(|(number, store)| {
                    let before = store.begin();
                    (number, store, before)
                })
                .collect(),
        );
        ItemTransaction { databases: self }
    }

    fn before(&self) -> MutexGuard<'_, Option<Begun>> {
        // Each change is one assignment or one push, so the list is valid also after a panic.
        self.before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the transaction's buffered changes.
    fn take_overlay(&self) -> Overlay {
        // Each change is one insert, so the overlay is valid also after a panic.
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

/// A transaction. Dropped uncommitted, it changes nothing.
pub struct ItemTransaction<'d, M: Media = Hardware> {
    databases: &'d Databases<M>,
}

impl<M: Media> ItemTransaction<'_, M> {
    /// Commits. On success all changes are made, and as durable as the sync policy and the connection's turn require.
    /// If the commit was [refused](NotMade::Refused) or [not logged](NotMade::NotLogged), nothing was changed.
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

impl<M: Media> Drop for ItemTransaction<'_, M> {
    fn drop(&mut self) {
        // After a commit this does nothing.
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
    use index::model::ModelIndex;
    use index::{Guard, Index, Value};

    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::time::Duration;

    /// A wait that is longer than this has found a deadlock.
    const PATIENCE: Duration = Duration::from_secs(120);

    fn open(db: &Db) -> Databases {
        let databases = Databases::open(db, "items", None, MemoryLimit::new(0, true), Arc::default());
        databases.expect("it is empty")
    }

    /// An empty map needs no counting pass: its items are counted from the first one on.
    #[test]
    fn an_empty_map_is_counted_from_the_start() {
        let databases = open(&Db::anonymous().expect("memory"));
        assert_eq!(databases.first().items(), (0, true));
    }

    /// An index whose first read blocks until the test releases it.
    struct Slow {
        index: ModelIndex,
        waits: AtomicBool,
        making: Sender<()>,
        release: Mutex<Receiver<()>>,
    }

    impl Index for Slow {
        index::delegate!(index: write, scan, check);

        fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, index::Error> {
            if self.waits.swap(false, Ordering::SeqCst) {
                self.making.send(()).expect("the test waits");
                let release = self.release.lock().expect("one waits");
                release.recv_timeout(PATIENCE).expect("the test goes on");
            }
            self.index.get(key, guard)
        }
    }

    /// While a map is being created, clients can select and list the existing databases, and two clients that select a
    /// new one get the same.
    #[test]
    fn databases_are_selected_while_another_is_made() {
        let ((making, is_made), (go_on, release)) = (channel(), channel());
        let db = Db::anonymous().expect("memory");
        let databases = &open(&db);
        let _map = db.hold(
            "items-3",
            Arc::new(Slow {
                index: ModelIndex::new(),
                waits: AtomicBool::new(true),
                making,
                release: Mutex::new(release),
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
