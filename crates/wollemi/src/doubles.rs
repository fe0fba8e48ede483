//! For the tests of programs that take a database: maps that an index of theirs holds, and commits that fail.

use crate::write::guarded::Guarded;
use crate::write::traffic::MapIndex;
use crate::{Db, Error, Map, Media};
use index::Index;
use std::sync::Arc;

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

impl Index for Foreign {
    index::delegate!(0: get, multi_get, fetch, write, write_many, order, walk, scan, check, settle, hold_still, merges, rest);
}
