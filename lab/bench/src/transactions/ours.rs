//! Our database, opened as a user would.

use crate::Error;
use crate::peers::transactional::{INITIAL, Ledger};
use std::path::Path;
use wollemi::indexes::IndexKind;
use wollemi::{Db, Level, Map, Options, Retry};

/// Its name.
pub const NAME: &str = "wollemi";

/// How it isolates transactions, and what a commit guarantees.
pub const SETTING: &str = "optimistic (Db::transact_with), retried after a conflict and Retry's default pause; level process, as an \
    ordinary pool, without write-backs and fences: survives a kill";

/// A database with two maps.
pub struct Ours {
    db: Db,
    maps: [Map; 2],
    retry: Retry,
}

impl Ours {
    /// Creates the database in a new pool in this directory.
    pub fn create(index: IndexKind, directory: &Path) -> Result<Ours, Error> {
        let options = Options::new().level(Level::Process).index(index);
        let db = options.open(directory.join("pool"))?;
        let maps = [db.map("one")?, db.map("two")?];
        let retry = Retry::new().tries(u32::MAX);
        Ok(Ours { db, maps, retry })
    }
}

fn number(bytes: Option<Vec<u8>>) -> u64 {
    let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u64::from_le_bytes)
}

impl Ledger for Ours {
    fn load(&self, keys: &[[u8; 8]]) -> Result<(), Error> {
        for map in &self.maps {
            map.load(keys.iter().map(|key| (key, INITIAL.to_le_bytes())))?;
        }
        Ok(())
    }

    fn transfer(&self, from: &[u8], to: &[u8]) -> Result<u64, Error> {
        let [one, two] = &self.maps;
        let mut runs = 0;
        self.db.transact_with(&self.retry, |transaction| {
            runs += 1;
            let left = number(transaction.get(one, from)?).wrapping_sub(1);
            let more = number(transaction.get(two, to)?).wrapping_add(1);
            transaction.upsert(one, from, left.to_le_bytes())?;
            transaction.upsert(two, to, more.to_le_bytes())
        })?;
        Ok(runs - 1)
    }

    fn sums(&self) -> Result<[u64; 2], Error> {
        let mut sums = [0u64; 2];
        for (map, sum) in self.maps.iter().zip(&mut sums) {
            for entry in map.iter() {
                *sum = sum.wrapping_add(number(Some(entry?.1)));
            }
        }
        Ok(sums)
    }
}
