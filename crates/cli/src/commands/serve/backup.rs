//! Backups of the pool while it is served: what `wollemi backup` writes of one that nobody uses.

use super::super::backup::to_file;
use server::{Backup, BackupTo, Copying, Moment};
use std::path::Path;
use std::sync::Arc;
use wollemi::Db;

/// What makes backups of the database, whose pool is there: a snapshot is taken, and written to the file.
pub fn of(db: &Db, pool: &Path) -> Backup {
    let (db, pool) = (db.clone(), pool.to_owned());
    Arc::new(move |to: &BackupTo| {
        let snapshot = db.snapshot_within(to.memory).map_err(|error| error.to_string())?;
        let (pool, file) = (pool.clone(), to.file.clone());
        let write: Moment = Box::new(move |copying: &Copying| {
            let ended = || copying.is_given_up();
            let written = to_file(&snapshot, &pool, &file, &ended, |copied| {
                copying.reached(copied.entries, copied.bytes, snapshot.memory());
            });
            written.map(drop).map_err(|failure| failure.to_string())
        });
        Ok(write)
    })
}
