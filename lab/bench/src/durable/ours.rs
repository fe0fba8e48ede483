//! Our database, opened as a user would.

use super::pairs::Shape;
use crate::Error;
use crate::peers::kept::{Commits, Pair, SyncedStore};
use std::path::Path;
use wollemi::{Db, Durability, Level, LogStats, Map, Options};

/// Its name.
pub const NAME: &str = "wollemi";

/// Its setting.
pub const SETTING: &str = "level disk, Durability::Immediate; several pairs as a batch";

/// The name of the pool's file.
pub const POOL: &str = "pool";

/// Pairs per commit while a database is filled.
pub const LOAD_BATCH: usize = 10_000;

/// A database with one map.
pub struct Ours {
    pub db: Db,
    pub map: Map,
}

impl Ours {
    /// Opens the database in this directory, creating it if it is missing.
    pub fn open(directory: &Path, level: Level) -> Result<Ours, Error> {
        let db = Options::new().level(level).open(directory.join(POOL))?;
        let map = db.map("bench")?;
        Ok(Ours { db, map })
    }

    /// Writes all keys. They are durable when this returns.
    pub fn fill(&self, shape: Shape, keys: usize) -> Result<(), Error> {
        let map = self.map.with_durability(Durability::Eventual);
        shape.all(keys, LOAD_BATCH, |pairs| {
            pairs.iter().try_for_each(|(key, value)| map.upsert(key, value))?;
            Ok(())
        })?;
        Ok(self.db.sync()?)
    }

    /// Returns the statistics of log and checkpoints; zeros if there are none.
    pub fn log(&self) -> LogStats {
        self.db.log_stats().unwrap_or_default()
    }
}

impl Commits for Ours {
    fn commit(&self, pairs: &[Pair<'_>]) -> Result<(), Error> {
        if let [(key, value)] = pairs {
            return Ok(self.map.upsert(key, value)?);
        }
        let mut batch = self.db.batch();
        for (key, value) in pairs {
            batch.upsert(&self.map, key, value);
        }
        batch.commit()?;
        Ok(())
    }
}

impl SyncedStore for Ours {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.map.get(key)?)
    }
}
