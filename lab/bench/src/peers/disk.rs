//! The persistent peers in Rust, and LMDB.

use super::{Durable, Promise};
use crate::Error;
use crate::engine::{Engine, Scanned};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use heed::types::Bytes;
use heed::{Env, EnvFlags, EnvOpenOptions};
use redb::{ReadableDatabase, StorageBackend, TableDefinition};
use std::fmt::Display;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Converts an error of this peer.
pub(super) fn failed(peer: &'static str) -> impl Fn(&dyn Display) -> Error {
    move |error| Error::Peer {
        peer,
        what: error.to_string(),
    }
}

/// Maps a peer's own error to [`Error::Peer`].
macro_rules! or_failed {
    ($peer:literal, $result:expr) => {
        $result.map_err(|error| $crate::peers::disk::failed($peer)(&error))
    };
}
pub(super) use or_failed;

/// Decodes a value of eight bytes.
pub(super) fn word(bytes: &[u8]) -> u64 {
    bytes.try_into().map_or(0, u64::from_le_bytes)
}

/// redb's file. redb writes to the page cache only when it syncs. With [`Promise::Kill`] the sync itself is left out,
/// so that commits return once they are in the page cache, as with the other peers.
#[derive(Debug)]
pub(super) struct Backend {
    file: File,
    promise: Promise,
}

impl Backend {
    /// Opens the file in this directory, creating it if it is missing.
    pub(super) fn open(directory: &Path, promise: Promise) -> std::io::Result<Backend> {
        let file = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(directory.join("redb"))?;
        Ok(Backend { file, promise })
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> std::io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.file.read_exact_at(out, offset)
    }
    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.file.set_len(len)
    }
    fn sync_data(&self) -> std::io::Result<()> {
        match self.promise {
            Promise::Kill => Ok(()),
            Promise::Power => self.file.sync_data(),
        }
    }
    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.file.write_all_at(data, offset)
    }
}

struct Redb(redb::Database);

const TABLE: TableDefinition<'static, &[u8], u64> = TableDefinition::new("bench");

/// redb, with a transaction per operation.
pub const REDB: Durable = Durable {
    name: "redb",
    setting: "one transaction per operation, Durability::Immediate on a file whose syncs are left out: survives a kill",
    synced: "one transaction per operation, Durability::Immediate",
    survives_kill: true,
    open: |directory, promise| {
        let backend = or_failed!("redb", Backend::open(directory, promise))?;
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
    database: Database,
    keyspace: Keyspace,
    promise: Promise,
}

/// fjall.
pub const FJALL: Durable = Durable {
    name: "fjall",
    setting: "journal written to the page cache by every operation (PersistMode::Buffer): survives a kill; writes \
              are blind and do not return the old value",
    synced: "journal synced by every operation (PersistMode::SyncData); writes are blind and do not return the old value",
    survives_kill: true,
    open: |directory, promise| {
        let database = or_failed!("fjall", Database::builder(directory.join("fjall")).open())?;
        let keyspace = or_failed!(
            "fjall",
            database.keyspace("bench", KeyspaceCreateOptions::default)
        )?;
        Ok(Box::new(Fjall {
            database,
            keyspace,
            promise,
        }))
    },
};

impl Fjall {
    /// Syncs the journal if the promise requires it.
    fn written(&self) -> Result<bool, Error> {
        if self.promise == Promise::Power {
            or_failed!("fjall", self.database.persist(PersistMode::SyncData))?;
        }
        Ok(true)
    }
}

impl Engine for Fjall {
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        or_failed!("fjall", self.keyspace.insert(key, value.to_le_bytes().as_slice()))?;
        self.written()
    }
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        Ok(or_failed!("fjall", self.keyspace.get(key))?.map(|value| word(&value)))
    }
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.insert(key, value)
    }
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        or_failed!("fjall", self.keyspace.remove(key))?;
        self.written()
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
    setting: "one transaction per operation, MDB_NOSYNC: written to the page cache, survives a kill; inserts and \
              updates are blind and do not return the old value",
    synced: "one transaction per operation, synced; inserts and updates are blind and do not return the old value",
    survives_kill: true,
    open: |directory, promise| {
        let env = lmdb(directory, promise)?;
        let mut transaction = or_failed!("lmdb", env.write_txn())?;
        let database = or_failed!("lmdb", env.create_database(&mut transaction, None))?;
        or_failed!("lmdb", transaction.commit())?;
        Ok(Box::new(Lmdb { env, database }))
    },
};

/// Opens LMDB's environment in this directory.
pub(super) fn lmdb(directory: &Path, promise: Promise) -> Result<Env, Error> {
    const MAP: usize = 1 << 36;
    let mut options = EnvOpenOptions::new();
    options.map_size(MAP).max_readers(1024).max_dbs(2);
    if promise == Promise::Kill {
        // SAFETY: without syncs only a crash of the machine can damage the file, and the run ends with the machine.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
    }
    // SAFETY: the directory is the run's own: no other process changes the file, and this one opens it once.
    or_failed!("lmdb", unsafe { options.open(directory) })
}

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

struct Sled {
    db: sled::Db,
    promise: Promise,
}

/// sled.
pub const SLED: Durable = Durable {
    name: "sled",
    setting: "buffered in the process, flushed twice a second: a kill loses the last half second",
    synced: "flushed by every operation: on Linux by sync_file_range, which waits neither for the disk's cache nor \
              for the file's size",
    survives_kill: false,
    open: |directory, promise| {
        let config = sled::Config::new()
            .path(directory.join("sled"))
            .flush_every_ms(Some(500));
        // sled's threads hold its lock for a moment after the database was dropped.
        let until = Instant::now() + Duration::from_secs(10);
        let db = loop {
            match config.open() {
                Err(sled::Error::Io(error))
                    if error.to_string().contains("could not acquire lock") && Instant::now() < until =>
                {
                    std::thread::sleep(Duration::from_millis(5));
                }
                opened => break or_failed!("sled", opened)?,
            }
        };
        Ok(Box::new(Sled { db, promise }))
    },
};

impl Sled {
    /// Flushes if the promise requires it.
    fn written(&self) -> Result<(), Error> {
        match self.promise {
            Promise::Kill => Ok(()),
            Promise::Power => self.settle(),
        }
    }
}

impl Engine for Sled {
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        let old = or_failed!("sled", self.db.insert(key, &value.to_le_bytes()))?;
        self.written()?;
        Ok(old.is_none())
    }
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        Ok(or_failed!("sled", self.db.get(key))?.map(|value| word(&value)))
    }
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.insert(key, value).map(|new| !new)
    }
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let old = or_failed!("sled", self.db.remove(key))?;
        self.written()?;
        Ok(old.is_some())
    }
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        let mut scanned = Scanned::default();
        for entry in self.db.range(from..).take(length) {
            scanned.meet(word(&or_failed!("sled", entry)?.1));
        }
        Ok(scanned)
    }
    fn settle(&self) -> Result<(), Error> {
        or_failed!("sled", self.db.flush()).map(drop)
    }
}
