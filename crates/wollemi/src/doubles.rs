//! For the tests of programs that take a database: maps that an index of theirs holds, commits that fail, and disks
//! that keep or lose what a test likes.

use crate::disk::opening;
use crate::write::guarded::Guarded;
use crate::write::traffic::MapIndex;
use crate::{Db, Error, Hardware, Map, Media, Options};
use index::Index;
use log::Disk;
use pmem::Pool;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// An index of the caller's.
struct Foreign(Arc<dyn Index>);

impl<M: Media> Db<M> {
    /// A map of this name that an index of the caller's holds, outside the pool. It is found by its name for as long as
    /// there is a handle to it.
    pub fn hold(&self, name: &str, index: Arc<dyn Index>) -> Map {
        let index: Arc<dyn MapIndex> = Arc::new(Guarded::new(Foreign(index), name, self.store()));
        self.enter(name, &index)
    }

    /// Has this asked before each commit of a batch, a transaction or an overlay, which fails where it fails. Only the
    /// first call has an effect.
    pub fn before_commits(&self, before: impl Fn() -> Result<(), Error> + Send + Sync + 'static) {
        let _ = self.store().traffic.doubles.0.set(Box::new(before));
    }
}

impl Options {
    /// A new database of level [`Disk`](crate::Level::Disk) whose log and checkpoints are on the caller's disk, and not
    /// beside its pool.
    pub fn create_on_disk(&self, path: impl AsRef<Path>, disk: Arc<impl Disk>) -> Result<Db, Error> {
        let settings = self.settings();
        let pool = Pool::create(path.as_ref(), &settings.pool, Hardware::detect())?;
        opening::attach(pool, disk, None, &settings, Instant::now())
    }
}

impl Index for Foreign {
    index::delegate!(0: get, multi_get, prefetch, write, write_many, order, walk, scan, check, settle, quiesce, merges, maintain);
}
