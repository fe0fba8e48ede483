//! Test doubles for programs that use a database: maps held by a caller's index, commits that fail, and disks that keep
//! or lose what a test chooses.

use crate::disk::opening;
use crate::write::guarded::Guarded;
use crate::write::map_index::MapIndex;
use crate::{Db, Error, Hardware, Map, Media, Options};
use index::Index;
use log::Disk;
use pmem::Pool;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// An index supplied by the caller.
struct Foreign(Arc<dyn Index>);

impl<M: Media> Db<M> {
    /// Returns a map of this name that the caller's index holds, outside the pool. It can be found by name while a
    /// handle to it exists.
    pub fn hold(&self, name: &str, index: Arc<dyn Index>) -> Map {
        let index: Arc<dyn MapIndex> = Arc::new(Guarded::new(Foreign(index), name, self.store()));
        self.enter(name, &index)
    }

    /// Calls `before` before each commit of a batch, a transaction or an overlay; the commit fails if it fails. Only
    /// the first call has an effect.
    pub fn before_commits(&self, before: impl Fn() -> Result<(), Error> + Send + Sync + 'static) {
        let _ = self.store().traffic.doubles.0.set(Box::new(before));
    }
}

impl Options {
    /// Creates a database of level [`Disk`](crate::Level::Disk) whose log and checkpoints are on the caller's disk, not
    /// beside its pool.
    pub fn create_on_disk(&self, path: impl AsRef<Path>, disk: Arc<impl Disk>) -> Result<Db, Error> {
        let settings = self.settings();
        let pool = Pool::create(path.as_ref(), &settings.pool, Hardware::detect())?;
        opening::attach(pool, disk, None, &settings, Instant::now(), None)
    }
}

impl Index for Foreign {
    index::delegate!(0: get, multi_get, prefetch, write, write_many, order, walk, scan, check, settle, quiesce, merges, maintain);
}
