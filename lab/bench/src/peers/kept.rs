//! Databases that sync each commit: pairs of any bytes, one or several per commit, durable when the commit returns.

use super::disk::{Backend, lmdb, or_failed};
use super::{Error, Promise};
use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};
use heed::Env;
use heed::types::Bytes;
use redb::{ReadableDatabase, TableDefinition};
use std::path::Path;

/// A key and its value.
pub type Pair<'p> = (&'p [u8], &'p [u8]);

/// An engine that commits pairs.
pub trait Commits: Send + Sync {
    /// Writes these pairs atomically, replacing present values. They survive power loss once this returns, except in
    /// our database at another level or with eventual durability.
    fn commit(&self, pairs: &[Pair<'_>]) -> Result<(), Error>;
}

/// An engine whose committed pairs can be read.
pub trait SyncedStore: Commits {
    /// Returns the key's value.
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error>;
}

/// A peer that syncs each commit.
pub struct Syncing {
    /// Its name.
    pub name: &'static str,
    /// Its setting.
    pub setting: &'static str,
    /// Opens it in a directory, creating it if it is missing.
    pub open: fn(&Path) -> Result<Box<dyn SyncedStore>, Error>,
}

struct Redb(redb::Database);

const TABLE: TableDefinition<'static, &[u8], &[u8]> = TableDefinition::new("bench");

/// redb.
pub const REDB: Syncing = Syncing {
    name: "redb",
    setting: "Durability::Immediate",
    open: |directory| {
        let backend = or_failed!("redb", Backend::open(directory, Promise::Power))?;
        let database = or_failed!("redb", redb::Builder::new().create_with_backend(backend))?;
        let transaction = or_failed!("redb", database.begin_write())?;
        drop(or_failed!("redb", transaction.open_table(TABLE))?);
        or_failed!("redb", transaction.commit())?;
        Ok(Box::new(Redb(database)))
    },
};

impl Commits for Redb {
    fn commit(&self, pairs: &[Pair<'_>]) -> Result<(), Error> {
        let transaction = or_failed!("redb", self.0.begin_write())?;
        {
            let mut table = or_failed!("redb", transaction.open_table(TABLE))?;
            for (key, value) in pairs {
                or_failed!("redb", table.insert(*key, *value))?;
            }
        }
        or_failed!("redb", transaction.commit())
    }
}

impl SyncedStore for Redb {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let transaction = or_failed!("redb", self.0.begin_read())?;
        let table = or_failed!("redb", transaction.open_table(TABLE))?;
        let found = or_failed!("redb", table.get(key))?;
        Ok(found.map(|value| value.value().to_vec()))
    }
}

struct Fjall {
    database: Database,
    keyspace: Keyspace,
}

/// fjall.
pub const FJALL: Syncing = Syncing {
    name: "fjall",
    setting: "PersistMode::SyncData; several pairs as a WriteBatch",
    open: |directory| {
        let database = or_failed!("fjall", Database::builder(directory.join("fjall")).open())?;
        let options = KeyspaceCreateOptions::default;
        let keyspace = or_failed!("fjall", database.keyspace("bench", options))?;
        Ok(Box::new(Fjall { database, keyspace }))
    },
};

impl Commits for Fjall {
    fn commit(&self, pairs: &[Pair<'_>]) -> Result<(), Error> {
        if let [(key, value)] = pairs {
            or_failed!("fjall", self.keyspace.insert(*key, *value))?;
            return or_failed!("fjall", self.database.persist(PersistMode::SyncData));
        }
        let mut batch = self.database.batch().durability(Some(PersistMode::SyncData));
        for (key, value) in pairs {
            batch.insert(&self.keyspace, *key, *value);
        }
        or_failed!("fjall", batch.commit())
    }
}

impl SyncedStore for Fjall {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(or_failed!("fjall", self.keyspace.get(key))?.map(|value| value.to_vec()))
    }
}

struct Lmdb {
    env: Env,
    database: heed::Database<Bytes, Bytes>,
}

/// LMDB.
pub const LMDB: Syncing = Syncing {
    name: "lmdb",
    setting: "the default: each transaction synced",
    open: |directory| {
        let env = lmdb(directory, Promise::Power)?;
        let mut transaction = or_failed!("lmdb", env.write_txn())?;
        let database = or_failed!("lmdb", env.create_database(&mut transaction, None))?;
        or_failed!("lmdb", transaction.commit())?;
        Ok(Box::new(Lmdb { env, database }))
    },
};

impl Commits for Lmdb {
    fn commit(&self, pairs: &[Pair<'_>]) -> Result<(), Error> {
        let mut transaction = or_failed!("lmdb", self.env.write_txn())?;
        for (key, value) in pairs {
            or_failed!("lmdb", self.database.put(&mut transaction, key, value))?;
        }
        or_failed!("lmdb", transaction.commit())
    }
}

impl SyncedStore for Lmdb {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        let transaction = or_failed!("lmdb", self.env.read_txn())?;
        let found = or_failed!("lmdb", self.database.get(&transaction, key))?;
        Ok(found.map(<[u8]>::to_vec))
    }
}
