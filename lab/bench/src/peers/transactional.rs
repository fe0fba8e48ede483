//! The peers with transactions over several maps, each with its cheapest setting that survives `kill -9`.

use super::disk::{Backend, lmdb, or_failed, word};
use super::{Error, Promise};
use fjall::{KeyspaceCreateOptions, OptimisticTxDatabase, OptimisticTxKeyspace, Readable};
use heed::Env;
use heed::types::Bytes;
use redb::{ReadableDatabase, ReadableTable, TableDefinition};
use std::path::Path;

/// The initial value of a key in both maps: more than is ever moved away.
pub const INITIAL: u64 = 1 << 32;

/// Two maps of numbers with the same keys, and transactions between them.
pub trait Ledger: Sync {
    /// Sets each of these keys to [`INITIAL`] in both maps.
    fn load(&self, keys: &[[u8; 8]]) -> Result<(), Error>;
    /// Moves one from a key of the first map to a key of the second, in a transaction that reads and writes both.
    /// Returns how often the transaction was retried because of a conflict.
    fn transfer(&self, from: &[u8], to: &[u8]) -> Result<u64, Error>;
    /// Returns the sum of each map's numbers.
    fn sums(&self) -> Result<[u64; 2], Error>;
}

/// A peer with transactions.
pub struct Transactional {
    /// Its name.
    pub name: &'static str,
    /// How it isolates transactions, and what a commit guarantees.
    pub setting: &'static str,
    /// Creates it in a directory.
    pub open: fn(&Path) -> Result<Box<dyn Ledger>, Error>,
}

/// All peers with transactions.
pub const TRANSACTIONAL: &[Transactional] = &[REDB, FJALL, LMDB];

struct Redb(redb::Database);

const MAPS: [TableDefinition<'static, &[u8], u64>; 2] =
    [TableDefinition::new("one"), TableDefinition::new("two")];

const REDB: Transactional = Transactional {
    name: "redb",
    setting: "one writer at a time; Durability::Immediate on a file whose syncs are left out: survives a kill",
    open: |directory| {
        let backend = or_failed!("redb", Backend::open(directory, Promise::Kill))?;
        let database = or_failed!("redb", redb::Builder::new().create_with_backend(backend))?;
        Ok(Box::new(Redb(database)))
    },
};

impl Ledger for Redb {
    fn load(&self, keys: &[[u8; 8]]) -> Result<(), Error> {
        let transaction = or_failed!("redb", self.0.begin_write())?;
        for map in MAPS {
            let mut table = or_failed!("redb", transaction.open_table(map))?;
            for key in keys {
                or_failed!("redb", table.insert(key.as_slice(), INITIAL))?;
            }
        }
        or_failed!("redb", transaction.commit())
    }

    fn transfer(&self, from: &[u8], to: &[u8]) -> Result<u64, Error> {
        let transaction = or_failed!("redb", self.0.begin_write())?;
        for (map, key, moved) in [(MAPS[0], from, 1u64.wrapping_neg()), (MAPS[1], to, 1)] {
            let mut table = or_failed!("redb", transaction.open_table(map))?;
            let number = or_failed!("redb", table.get(key))?.map_or(0, |number| number.value());
            or_failed!("redb", table.insert(key, number.wrapping_add(moved)))?;
        }
        or_failed!("redb", transaction.commit())?;
        Ok(0)
    }

    fn sums(&self) -> Result<[u64; 2], Error> {
        let transaction = or_failed!("redb", self.0.begin_read())?;
        let mut sums = [0u64; 2];
        for (map, sum) in MAPS.into_iter().zip(&mut sums) {
            let table = or_failed!("redb", transaction.open_table(map))?;
            for entry in or_failed!("redb", table.iter())? {
                *sum = sum.wrapping_add(or_failed!("redb", entry)?.1.value());
            }
        }
        Ok(sums)
    }
}

struct Fjall {
    database: OptimisticTxDatabase,
    maps: [OptimisticTxKeyspace; 2],
}

const FJALL: Transactional = Transactional {
    name: "fjall",
    setting: "optimistic (OptimisticTxDatabase), retried at once after a conflict; journal written to the page cache \
              by every commit (PersistMode::Buffer): survives a kill",
    open: |directory| {
        let builder = OptimisticTxDatabase::builder(directory.join("fjall"));
        let database = or_failed!("fjall", builder.open())?;
        let map = |name| or_failed!("fjall", database.keyspace(name, KeyspaceCreateOptions::default));
        let maps = [map("one")?, map("two")?];
        Ok(Box::new(Fjall { database, maps }))
    },
};

impl Ledger for Fjall {
    fn load(&self, keys: &[[u8; 8]]) -> Result<(), Error> {
        for map in &self.maps {
            for key in keys {
                or_failed!(
                    "fjall",
                    map.inner()
                        .insert(key.as_slice(), INITIAL.to_le_bytes().as_slice())
                )?;
            }
        }
        Ok(())
    }

    fn transfer(&self, from: &[u8], to: &[u8]) -> Result<u64, Error> {
        let mut conflicts = 0;
        loop {
            let mut transaction = or_failed!("fjall", self.database.write_tx())?;
            for (map, key, moved) in [(&self.maps[0], from, 1u64.wrapping_neg()), (&self.maps[1], to, 1)] {
                let number = or_failed!("fjall", transaction.get(map, key))?;
                let number = number.map_or(0, |bytes| word(&bytes)).wrapping_add(moved);
                transaction.insert(map, key, number.to_le_bytes().as_slice());
            }
            match or_failed!("fjall", transaction.commit())? {
                Ok(()) => return Ok(conflicts),
                Err(fjall::Conflict) => conflicts += 1,
            }
        }
    }

    fn sums(&self) -> Result<[u64; 2], Error> {
        let mut sums = [0u64; 2];
        for (map, sum) in self.maps.iter().zip(&mut sums) {
            for entry in map.inner().iter() {
                *sum = sum.wrapping_add(word(&or_failed!("fjall", entry.value())?));
            }
        }
        Ok(sums)
    }
}

struct Lmdb {
    env: Env,
    maps: [heed::Database<Bytes, Bytes>; 2],
}

const LMDB: Transactional = Transactional {
    name: "lmdb",
    setting: "one writer at a time; MDB_NOSYNC, written to the page cache: survives a kill",
    open: |directory| {
        let env = lmdb(directory, Promise::Kill)?;
        let mut transaction = or_failed!("lmdb", env.write_txn())?;
        let mut map = |name| or_failed!("lmdb", env.create_database(&mut transaction, Some(name)));
        let maps = [map("one")?, map("two")?];
        or_failed!("lmdb", transaction.commit())?;
        Ok(Box::new(Lmdb { env, maps }))
    },
};

impl Ledger for Lmdb {
    fn load(&self, keys: &[[u8; 8]]) -> Result<(), Error> {
        let mut transaction = or_failed!("lmdb", self.env.write_txn())?;
        for map in &self.maps {
            for key in keys {
                or_failed!("lmdb", map.put(&mut transaction, key, &INITIAL.to_le_bytes()))?;
            }
        }
        or_failed!("lmdb", transaction.commit())
    }

    fn transfer(&self, from: &[u8], to: &[u8]) -> Result<u64, Error> {
        let mut transaction = or_failed!("lmdb", self.env.write_txn())?;
        for (map, key, moved) in [(&self.maps[0], from, 1u64.wrapping_neg()), (&self.maps[1], to, 1)] {
            let number = or_failed!("lmdb", map.get(&transaction, key))?.map_or(0, word);
            let number = number.wrapping_add(moved).to_le_bytes();
            or_failed!("lmdb", map.put(&mut transaction, key, &number))?;
        }
        or_failed!("lmdb", transaction.commit())?;
        Ok(0)
    }

    fn sums(&self) -> Result<[u64; 2], Error> {
        let transaction = or_failed!("lmdb", self.env.read_txn())?;
        let mut sums = [0u64; 2];
        for (map, sum) in self.maps.iter().zip(&mut sums) {
            for entry in or_failed!("lmdb", map.iter(&transaction))? {
                *sum = sum.wrapping_add(word(or_failed!("lmdb", entry)?.1));
            }
        }
        Ok(sums)
    }
}
