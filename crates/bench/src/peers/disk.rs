//! The peers in Rust, and LMDB, that keep their data.

use super::Durable;
use crate::Error;
use crate::engine::{Engine, Scanned};
use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use heed::types::Bytes;
use heed::{Env, EnvFlags, EnvOpenOptions};
use redb::{ReadableDatabase, StorageBackend, TableDefinition};
use std::fmt::Display;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

fn failed(peer: &'static str) -> impl Fn(&dyn Display) -> Error {
    move |error| Error::Peer {
        peer,
        what: error.to_string(),
    }
}

/// `map_err` for a peer's own errors.
macro_rules! or_failed {
    ($peer:literal, $result:expr) => {
        $result.map_err(|error| failed($peer)(&error))
    };
}

fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// A file that is never waited for: redb's way to write the page cache and return, as the others do.
#[derive(Debug)]
struct Unsynced(File);

impl StorageBackend for Unsynced {
    fn len(&self) -> std::io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.0.read_exact_at(out, offset)
    }
    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.0.set_len(len)
    }
    fn sync_data(&self) -> std::io::Result<()> {
        Ok(())
    }
    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.0.write_all_at(data, offset)
    }
}

struct Redb(redb::Database);

const TABLE: TableDefinition<'static, &[u8], u64> = TableDefinition::new("bench");

/// redb.
pub const REDB: Durable = Durable {
    name: "redb",
    setting: "a transaction an operation, Durability::Immediate on a file whose syncs are left out: survives a kill",
    open: |directory| {
        let options = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(directory.join("redb"));
        let backend = Unsynced(or_failed!("redb", options)?);
        let database = or_failed!("redb", redb::Builder::new().create_with_backend(backend))?;
        let engine = Redb(database);
        engine.write(|_| Ok(()))?;
        Ok(Box::new(engine))
    },
};

impl Redb {
    fn write<T>(
        &self,
        change: impl FnOnce(&mut redb::Table<'_, &[u8], u64>) -> Result<T, redb::StorageError>,
    ) -> Result<T, Error> {
        let transaction = or_failed!("redb", self.0.begin_write())?;
        let changed = {
            let mut table = or_failed!("redb", transaction.open_table(TABLE))?;
            or_failed!("redb", change(&mut table))?
        };
        or_failed!("redb", transaction.commit())?;
        Ok(changed)
    }

    fn read<T>(
        &self,
        look: impl FnOnce(&redb::ReadOnlyTable<&[u8], u64>) -> Result<T, redb::StorageError>,
    ) -> Result<T, Error> {
        let transaction = or_failed!("redb", self.0.begin_read())?;
        let table = or_failed!("redb", transaction.open_table(TABLE))?;
        or_failed!("redb", look(&table))
    }
}

impl Engine for Redb {
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.write(|table| Ok(table.insert(key, value)?.is_none()))
    }
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        self.read(|table| Ok(table.get(key)?.map(|value| value.value())))
    }
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.write(|table| Ok(table.insert(key, value)?.is_some()))
    }
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        self.write(|table| Ok(table.remove(key)?.is_some()))
    }
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        self.read(|table| {
            let mut scanned = Scanned::default();
            for entry in table.range(from..)?.take(length) {
                scanned.meet(entry?.1.value());
            }
            Ok(scanned)
        })
    }
}

struct Fjall {
    _database: Database,
    keyspace: Keyspace,
}

/// fjall.
pub const FJALL: Durable = Durable {
    name: "fjall",
    setting: "journal written to the page cache by every operation (PersistMode::Buffer): survives a kill; writes are blind, and do \
        not tell what was there",
    open: |directory| {
        let database = or_failed!("fjall", Database::builder(directory.join("fjall")).open())?;
        let keyspace = or_failed!(
            "fjall",
            database.keyspace("bench", KeyspaceCreateOptions::default)
        )?;
        Ok(Box::new(Fjall {
            _database: database,
            keyspace,
        }))
    },
};

impl Engine for Fjall {
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        or_failed!("fjall", self.keyspace.insert(key, value.to_le_bytes().as_slice()))?;
        Ok(true)
    }
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        Ok(or_failed!("fjall", self.keyspace.get(key))?.map(|value| word(&value)))
    }
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.insert(key, value)
    }
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        or_failed!("fjall", self.keyspace.remove(key))?;
        Ok(true)
    }
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        let mut scanned = Scanned::default();
        for entry in self.keyspace.range(from..).take(length) {
            scanned.meet(word(&or_failed!("fjall", entry.value())?));
        }
        Ok(scanned)
    }
}

struct Lmdb {
    env: Env,
    database: heed::Database<Bytes, Bytes>,
}

/// LMDB, through heed.
pub const LMDB: Durable = Durable {
    name: "lmdb",
    setting: "a transaction an operation, MDB_NOSYNC: written to the page cache, survives a kill; inserts and updates are blind, and \
        do not tell what was there",
    open: |directory| {
        const MAP: usize = 1 << 36;
        let mut options = EnvOpenOptions::new();
        options.map_size(MAP).max_readers(1024);
        // SAFETY: without syncs only a crash of the machine can damage the file, and nothing measured outlives one.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
        // SAFETY: the directory is the run's own: nobody else changes the file, or opens it twice in this process.
        let env = or_failed!("lmdb", unsafe { options.open(directory) })?;
        let mut transaction = or_failed!("lmdb", env.write_txn())?;
        let database = or_failed!("lmdb", env.create_database(&mut transaction, None))?;
        or_failed!("lmdb", transaction.commit())?;
        Ok(Box::new(Lmdb { env, database }))
    },
};

impl Lmdb {
    fn put(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        let mut transaction = or_failed!("lmdb", self.env.write_txn())?;
        or_failed!(
            "lmdb",
            self.database.put(&mut transaction, key, &value.to_le_bytes())
        )?;
        or_failed!("lmdb", transaction.commit())?;
        Ok(true)
    }
}

impl Engine for Lmdb {
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.put(key, value)
    }
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        let transaction = or_failed!("lmdb", self.env.read_txn())?;
        Ok(or_failed!("lmdb", self.database.get(&transaction, key))?.map(word))
    }
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.put(key, value)
    }
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let mut transaction = or_failed!("lmdb", self.env.write_txn())?;
        let removed = or_failed!("lmdb", self.database.delete(&mut transaction, key))?;
        or_failed!("lmdb", transaction.commit())?;
        Ok(removed)
    }
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        let transaction = or_failed!("lmdb", self.env.read_txn())?;
        let range = (std::ops::Bound::Included(from), std::ops::Bound::Unbounded);
        let mut scanned = Scanned::default();
        for entry in or_failed!("lmdb", self.database.range(&transaction, &range))?.take(length) {
            scanned.meet(word(or_failed!("lmdb", entry)?.1));
        }
        Ok(scanned)
    }
}

struct Sled(sled::Db);

/// sled.
pub const SLED: Durable = Durable {
    name: "sled",
    setting: "buffered in the process, flushed twice a second: a kill loses the last half second",
    open: |directory: &Path| {
        let config = sled::Config::new()
            .path(directory.join("sled"))
            .flush_every_ms(Some(500));
        Ok(Box::new(Sled(or_failed!("sled", config.open())?)))
    },
};

impl Engine for Sled {
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        Ok(or_failed!("sled", self.0.insert(key, &value.to_le_bytes()))?.is_none())
    }
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        Ok(or_failed!("sled", self.0.get(key))?.map(|value| word(&value)))
    }
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        Ok(or_failed!("sled", self.0.insert(key, &value.to_le_bytes()))?.is_some())
    }
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(or_failed!("sled", self.0.remove(key))?.is_some())
    }
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        let mut scanned = Scanned::default();
        for entry in self.0.range(from..).take(length) {
            scanned.meet(word(&or_failed!("sled", entry)?.1));
        }
        Ok(scanned)
    }
    fn settle(&self) -> Result<(), Error> {
        or_failed!("sled", self.0.flush()).map(drop)
    }
}
