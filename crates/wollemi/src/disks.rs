//! For the crash kit: a database whose log and checkpoints are on a disk of the kit's, in sizes so small that a few writes
//! come to all of it.

use crate::disk::manifest::Manifest;
use crate::disk::opening::{Settings, attach};
use crate::disk::sizes::Sizes;
use crate::{Db, Error, Media, Options};
use log::Disk;
use pmem::Pool;
use std::sync::Arc;
use std::time::Instant;

/// How a database is opened on a disk of the caller's.
#[derive(Clone, Debug)]
pub struct OnDisk {
    /// What counts for any database.
    pub options: Options,
    /// Of a log that is created.
    pub log: log::Options,
    /// Bytes of a run.
    pub run: u64,
    /// Levels above the full one, beyond which the next checkpoint is full.
    pub levels: u32,
    /// Below this many bytes of all runs, a checkpoint is full.
    pub small: u64,
    /// Maximum length of log that a rebuild sorts in memory, in bytes.
    pub merged: u64,
    /// Threads of a rebuild.
    pub rebuild_threads: usize,
    /// Whether threads take checkpoints and sync the records that no write waits for. Otherwise nothing runs by itself.
    pub has_threads: bool,
}

impl OnDisk {
    /// Opens the database in `pool`, with its log and its checkpoint on `disk`. A pool that is new is filled of these, if
    /// they are there. To one without a log a log is given.
    ///
    /// # Errors
    ///
    /// As [`Options::open`].
    pub fn open<M: Media, D: Disk>(&self, pool: Pool<M>, disk: Arc<D>) -> Result<Db<M>, Error> {
        let manifest = Manifest::load(&*disk)?;
        let settings = Settings {
            log: self.log.clone(),
            rebuild_threads: self.rebuild_threads,
            sizes: Sizes {
                run: self.run,
                batch: 512,
                buffer: 512,
                synced: 1024,
                step: 1024,
                levels: self.levels,
                small: self.small,
                merged: self.merged,
                rest: 0.0,
            },
            has_threads: self.has_threads,
            ..self.options.settings()
        };
        attach(pool, disk, manifest, &settings, Instant::now())
    }
}
