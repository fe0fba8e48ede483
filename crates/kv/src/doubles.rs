//! For the tests of programs that take a database: maps that an index of theirs holds, and commits that fail.

use crate::guarded::{Guarded, MapIndex};
use crate::{Db, Error, Map, Media};
use index::{Action, Direction, Edit, Edits, Faults, Guard, Index, Merges, Still, Value, Visit};
use std::ops::Bound;
use std::sync::{Arc, OnceLock};

/// What is asked before each commit.
type Before = Box<dyn Fn() -> Result<(), Error> + Send + Sync>;

/// What a test has put before the commits of a database.
#[derive(Default)]
pub(crate) struct Doubles(OnceLock<Before>);

impl Doubles {
    pub fn before_commit(&self) -> Result<(), Error> {
        self.0.get().map_or(Ok(()), |before| before())
    }
}

impl std::fmt::Debug for Doubles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Doubles").finish_non_exhaustive()
    }
}

/// An index of somebody else's.
struct Foreign(Arc<dyn Index>);

impl<M: Media> Db<M> {
    /// A map of this name that an index of the caller's holds, outside the pool. It is found by its name for as long as
    /// there is a handle to it.
    pub fn hold(&self, name: &str, index: Arc<dyn Index>) -> Map {
        let index: Arc<dyn MapIndex> = Arc::new(Guarded::new(Foreign(index), name, self.store()));
        self.enter(name, &index)
    }

    /// Has this asked before each commit of a batch, a transaction or an overlay, which fails where it fails. Only the first
    /// call has an effect.
    pub fn before_commits(&self, before: impl Fn() -> Result<(), Error> + Send + Sync + 'static) {
        let _ = self.store().traffic.doubles.0.set(Box::new(before));
    }
}

impl Index for Foreign {
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, index::Error> {
        self.0.get(key, guard)
    }

    fn multi_get<'g>(
        &'g self,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), index::Error> {
        self.0.multi_get(keys, guard, found)
    }

    fn fetch(&self, keys: &[&[u8]], guard: &Guard) {
        self.0.fetch(keys, guard);
    }

    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, index::Error> {
        self.0.write(key, edit)
    }

    fn write_many(&self, keys: &[&[u8]], edits: &mut dyn Edits) {
        self.0.write_many(keys, edits);
    }

    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), index::Error> {
        self.0.scan(lower, upper, direction, guard, visit)
    }

    fn check(&self) -> Result<Faults, index::Error> {
        self.0.check()
    }

    fn settle(&self) -> Result<(), index::Error> {
        self.0.settle()
    }

    fn hold_still(&self) -> Box<dyn Still + '_> {
        self.0.hold_still()
    }

    fn merges(&self) -> Option<Merges> {
        self.0.merges()
    }

    fn rest(&self) {
        self.0.rest();
    }
}
