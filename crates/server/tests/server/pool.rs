//! A pool to serve.

use crate::support::{PATIENCE, with_redis};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use wollemi::Db;
use wollemi_server::{Backup, BackupTo, Config, Copying, Moment};

/// A pool whose file goes with the last server over it.
pub struct Pool {
    db: Db,
}

impl Pool {
    pub fn new() -> Pool {
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path().join("served.pool")).expect("a pool");
        Pool { db }
    }

    /// A new pool with what a backup of another holds.
    pub fn restored(backup: &Path) -> Pool {
        let pool = Pool::new();
        let file = File::open(backup).expect("the backup");
        let restored = pool.db.restore(&mut BufReader::new(file), |_| {});
        restored.expect("a backup of maps that are not there");
        pool
    }

    /// What makes backups: each is written once `goes_on` has said so, and has ended once it has said so again.
    pub fn backup(&self, goes_on: Receiver<()>) -> Backup {
        let (db, goes_on) = (self.db.clone(), Arc::new(Mutex::new(goes_on)));
        Arc::new(move |to: &BackupTo| {
            let snapshot = db.snapshot_within(to.memory).map_err(|error| error.to_string())?;
            let (file, goes_on) = (to.file.clone(), goes_on.clone());
            let moment: Moment = Box::new(move |copying: &Copying| {
                let wait = || {
                    let told = goes_on.lock().expect("one at a time").recv_timeout(PATIENCE);
                    told.map_err(|error| error.to_string())
                };
                wait()?;
                let mut file = File::create(file).map_err(|error| error.to_string())?;
                let written = snapshot.backup(&mut file, |copied| {
                    copying.reached(copied.entries, copied.bytes, snapshot.memory());
                });
                written.map_err(|error| error.to_string())?;
                wait()
            });
            Ok(moment)
        })
    }

    /// The database in it.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// A configuration for both protocols.
    pub fn config(&self) -> Config {
        with_redis()
    }

    /// Fails unless the pool is as it must be.
    pub fn check(&self) {
        let check = self.db.check().expect("it can be read");
        assert!(check.is_clean(), "{check:?}");
    }
}
