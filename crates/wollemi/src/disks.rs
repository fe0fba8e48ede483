//! For the crash kit and measurements: a database whose log and checkpoints are on the caller's disk, with sizes so
//! small that a few writes exercise every step.

use crate::disk::manifest::Manifest;
use crate::disk::opening::attach;
use crate::disk::settings::Settings;
use crate::disk::sizes::Sizes;
use crate::{Db, Error, Media, Options};
use log::Disk;
use pmem::Pool;
use std::sync::Arc;
use std::time::Instant;

/// Options for opening a database on the caller's disk.
#[derive(Clone, Debug)]
pub struct OnDisk {
    /// Options of the database. Those of the pool and its creation, the level, and the log's limit have no effect.
    pub options: Options,
    /// Options of a log that is created.
    pub log: log::LogOptions,
    /// Bytes per run.
    pub run: u64,
    /// Levels above the full one after which the next checkpoint is full.
    pub levels: u32,
    /// A checkpoint is full if the last full one has fewer bytes.
    pub small: u64,
    /// Maximum length of log that a rebuild sorts in memory, in bytes.
    pub merged: u64,
    /// Threads used by a rebuild.
    pub rebuild_threads: usize,
    /// Whether threads take checkpoints and sync the records that no write waits for. Without them, only recovery
    /// ([`Options::recovery_threads`]) and the merges of an index run in the background.
    pub has_threads: bool,
}

impl OnDisk {
    /// A usual log and runs of a megabyte, without threads.
    pub fn new(options: Options) -> OnDisk {
        OnDisk {
            options,
            log: log::LogOptions::default(),
            run: 1 << 20,
            levels: 4,
            small: 0,
            merged: 0,
            rebuild_threads: 1,
            has_threads: false,
        }
    }

    /// Opens the database in `pool`, with its log and its checkpoint on `disk`. A new pool is filled from these if they
    /// exist. A pool without a log gets one.
    ///
    /// # Errors
    ///
    /// Those of [`Options::open`].
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
        attach(pool, disk, manifest, &settings, Instant::now(), None)
    }
}
