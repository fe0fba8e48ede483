//! Our database, as a user opens it.

use super::pairs::Shape;
use crate::Error;
use crate::peers::kept::{Commits, Kept, Pair};
use std::path::Path;
use wollemi::{Db, Durability, Level, LogStats, Map, Options};

/// Its name.
pub const NAME: &str = "wollemi";

/// What it is set to.
pub const SETTING: &str = "level disk, Durability::Immediate; several pairs as a batch";

/// The pool's file in a directory.
pub const POOL: &str = "pool";

/// Pairs of a commit while a database is filled.
pub const LOADING: usize = 10_000;

/// A database with one map.
pub struct Ours {
    pub db: Db,
    pub map: Map,
}

impl Ours {
    /// In this directory, where it is made if it is not there.
    pub fn open(directory: &Path, level: Level) -> Result<Ours, Error> {
        let db = Options::new().level(level).open(directory.join(POOL))?;
        let map = db.map("bench")?;
        Ok(Ours { db, map })
    }

    /// Puts all keys, durable when this returns.
    pub fn fill(&self, shape: Shape, keys: usize) -> Result<(), Error> {
        let map = self.map.with_durability(Durability::Eventual);
        shape.all(keys, LOADING, |pairs| {
            pairs.iter().try_for_each(|(key, value)| map.upsert(key, value))?;
            Ok(())
        })?;
        Ok(self.db.sync()?)
    }

    /// How log and checkpoints stand; zeros where there are none.
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

impl Kept for Ours {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.map.get(key)?)
    }
}
