//! A pool to serve.

use crate::support::with_redis;
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use wollemi::Db;
use wollemi_server::Config;

/// A pool whose file is removed with the last server over it.
pub struct Pool {
    db: Db,
}

impl Pool {
    pub fn new() -> Pool {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path().join("served.pool")).expect("a pool");
        Pool { db }
    }

    /// Returns a new pool with the content of a backup.
    pub fn restored(backup: &Path) -> Pool {
        let pool = Pool::new();
        let file = File::open(backup).expect("the backup");
        let restored = pool.db.restore(&mut BufReader::new(file), |_| {});
        restored.expect("a backup whose maps do not exist yet");
        pool
    }

    /// Returns its database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// Returns a configuration for both protocols.
    pub fn config(&self) -> Config {
        with_redis()
    }

    /// Fails unless the pool is sound.
    pub fn check(&self) {
        let check = self.db.check().expect("the check can read the pool");
        assert!(check.is_clean(), "{check:?}");
    }
}
