//! The objects behind Java's numbers.
//!
//! I1 Numbers count up, and none is reused.
//! I2 The objects of a database are listed in it ([`Database::own`]), and none is added once it is closed. So closing a
//! database closes all of its objects.

use crate::failure::Failure;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;
use wollemi::{Db, Sweeper};

/// A database, and the numbers of its objects; `None`: it is closed.
pub struct Database {
    pub db: Db,
    owned: Mutex<Option<HashSet<u64>>>,
}

/// A handle to a map. Fields are dropped in order, so the database goes last.
pub struct Map {
    pub map: wollemi::Map,
    pub database: Arc<Database>,
}

/// A snapshot.
pub struct Snapshot {
    pub snapshot: wollemi::Snapshot,
    pub _database: Arc<Database>,
}

/// A transaction; `None` after its end.
pub struct Running<'d>(pub Option<wollemi::Transaction<'d>>);

self_cell::self_cell!(
    /// A transaction, and the database it borrows from.
    pub struct Borrowed {
        owner: Arc<Database>,
        #[not_covariant]
        dependent: Running,
    }
);

/// A transaction. Calls of several threads are serialized.
pub struct Transaction {
    pub running: Mutex<Borrowed>,
    pub _database: Arc<Database>,
}

/// A thread that removes expired entries.
pub struct Sweeping {
    pub sweeper: Sweeper,
    pub _database: Arc<Database>,
}

/// The object behind a number.
#[derive(Clone)]
pub enum Object {
    Database(Arc<Database>),
    Map(Arc<Map>),
    Snapshot(Arc<Snapshot>),
    Transaction(Arc<Transaction>),
    Sweeper(Arc<Sweeping>),
}

/// Hashes a number by one multiplication, which suffices for numbers that count up.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _: &[u8]) {}
    fn write_u64(&mut self, number: u64) {
        self.0 = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

type Shard = HashMap<u64, Object, BuildHasherDefault<Identity>>;

/// Number of shards, so that calls with different numbers rarely share a lock.
const SHARDS: usize = 16;

static NEXT: AtomicU64 = AtomicU64::new(1);
static TABLE: [RwLock<Shard>; SHARDS] =
    [const { RwLock::new(HashMap::with_hasher(BuildHasherDefault::new())) }; SHARDS];

fn shard(number: u64) -> &'static RwLock<Shard> {
    &TABLE[number as usize % SHARDS]
}

// A panicking holder leaves it consistent: each change is one insertion or removal.
fn insert(object: Object) -> u64 {
    let number = NEXT.fetch_add(1, Relaxed);
    let mut shard = shard(number).write().unwrap_or_else(PoisonError::into_inner);
    shard.insert(number, object);
    number
}

fn remove(number: u64) -> Option<Object> {
    let mut shard = shard(number).write().unwrap_or_else(PoisonError::into_inner);
    shard.remove(&number)
}

fn find(number: i64) -> Option<Object> {
    let number = number as u64;
    let shard = shard(number).read().unwrap_or_else(PoisonError::into_inner);
    shard.get(&number).cloned()
}

macro_rules! lookups {
    ($($name:ident, $variant:ident, $type:ty, $what:literal;)*) => {$(
        pub fn $name(number: i64) -> Result<Arc<$type>, Failure> {
            match find(number) {
                Some(Object::$variant(object)) => Ok(object),
                _ => Err(Failure::Closed($what)),
            }
        }
    )*};
}

lookups! {
    database, Database, Database, "the database is closed";
    map, Map, Map, "the map is closed, or its database is";
    snapshot, Snapshot, Snapshot, "the snapshot is closed, or its database is";
    transaction, Transaction, Transaction, "the transaction has ended, or its database is closed";
    sweeper, Sweeper, Sweeping, "the sweeper is closed, or its database is";
}

/// Adds a database, and returns its number.
pub fn add_database(db: Db) -> u64 {
    let owned = Mutex::new(Some(HashSet::new()));
    insert(Object::Database(Arc::new(Database { db, owned })))
}

impl Database {
    /// Adds an object of the database, and returns its number.
    pub fn own(&self, object: Object) -> Result<u64, Failure> {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let owned = owned.as_mut().ok_or(Failure::Closed("the database is closed"))?;
        let number = insert(object);
        owned.insert(number);
        Ok(number)
    }

    fn disown(&self, number: u64) {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(owned) = owned.as_mut() {
            owned.remove(&number);
        }
    }

    fn close(&self) -> HashSet<u64> {
        let mut owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        owned.take().unwrap_or_default()
    }
}

/// Closes the object of a number; returns `false` if it is already closed. Closing a database closes all of its
/// objects, and its pool before this returns; an error says that the pool could not be written to the medium.
pub fn close(number: i64) -> Result<bool, Failure> {
    let number = number as u64;
    match remove(number) {
        None => return Ok(false),
        Some(Object::Map(map)) => map.database.disown(number),
        Some(Object::Snapshot(snapshot)) => snapshot._database.disown(number),
        Some(Object::Transaction(transaction)) => transaction._database.disown(number),
        Some(Object::Sweeper(sweeper)) => sweeper._database.disown(number),
        Some(Object::Database(database)) => {
            for owned in database.close() {
                drop(remove(owned));
            }
            // No new call can find it. Each call that has found it returns before the object is freed.
            while Arc::strong_count(&database) > 1 {
                std::thread::sleep(Duration::from_micros(50));
            }
            if let Some(Database { db, .. }) = Arc::into_inner(database) {
                db.close()?;
            }
        }
    }
    Ok(true)
}
