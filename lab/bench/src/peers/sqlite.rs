//! SQLite, with its write-ahead log synced at each commit.

use super::disk::or_failed;
use super::kept::{Commits, Pair, SyncedStore, Syncing};
use crate::Error;
use rusqlite::{Connection, OptionalExtension};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One connection, since SQLite has one writer at a time anyway.
struct Sqlite(Mutex<Connection>);

impl Sqlite {
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const BEGIN: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS bench (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID;
";

const PUT: &str = "INSERT OR REPLACE INTO bench VALUES (?1, ?2)";

const GET: &str = "SELECT value FROM bench WHERE key = ?1";

/// SQLite, each commit synced.
pub const SYNCING: Syncing = Syncing {
    name: "sqlite",
    setting: "WAL, synchronous = FULL; prepared statements, a WITHOUT ROWID table",
    open: |directory| {
        let connection = or_failed!("sqlite", Connection::open(directory.join("sqlite")))?;
        or_failed!("sqlite", connection.execute_batch(BEGIN))?;
        Ok(Box::new(Sqlite(Mutex::new(connection))))
    },
};

impl Commits for Sqlite {
    fn commit(&self, pairs: &[Pair<'_>]) -> Result<(), Error> {
        let mut connection = self.lock();
        let transaction = or_failed!("sqlite", connection.transaction())?;
        {
            let mut put = or_failed!("sqlite", transaction.prepare_cached(PUT))?;
            for pair in pairs {
                or_failed!("sqlite", put.execute(*pair))?;
            }
        }
        or_failed!("sqlite", transaction.commit())
    }
}

impl SyncedStore for Sqlite {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let connection = self.lock();
        let mut get = or_failed!("sqlite", connection.prepare_cached(GET))?;
        or_failed!("sqlite", get.query_row([key], |row| row.get(0)).optional())
    }
}
