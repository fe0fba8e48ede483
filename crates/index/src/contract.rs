//! The trait.

use crate::{
    Action, CompareAndSwap, Edit, Edits, Error, Guard, Insert, Merges, Order, Range, Remove, Update, Upsert,
    Value,
};
use std::ops::{Bound, ControlFlow};

/// Which way a walk or a scan goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first key on.
    Forward,
    /// From the last key back.
    Reverse,
}

/// What a walk or a scan calls for each key in order.
pub type Visit<'f, 'g> = dyn FnMut(&'g [u8], Value<'g>) -> ControlFlow<()> + 'f;

/// What a walk over everything found.
#[derive(Debug, Default, Clone)]
pub struct Faults {
    /// Keys met.
    pub keys: u64,
    /// Objects (nodes, leaf arrays, leaves) met.
    pub objects: u64,
    /// One line for each fault: where it is and what is wrong. At most [`Faults::MAX`] are kept.
    pub found: Vec<String>,
}

impl Faults {
    /// Faults that are kept.
    pub const MAX: usize = 1000;

    /// Keeps a fault, while there is room.
    pub fn note(&mut self, fault: impl FnOnce() -> String) {
        if self.found.len() < Self::MAX {
            self.found.push(fault());
        }
    }
}

/// Keeps an index quiescent while it lives: see [`Index::quiesce`].
pub trait Quiesced {}

impl<T> Quiesced for T {}

/// A persistent, concurrent index.
///
/// Writes are durable, at the pool's level, when they return. Reads borrow from the pool under a [`Guard`]; hold it no
/// longer than needed, since nothing removed meanwhile can be reused before it is dropped.
///
/// # Errors
///
/// Every call returns [`Error::KeyTooLong`] for a key, or a bound of a scan, above [`MAX_KEY`](crate::MAX_KEY);
/// [`write`](Index::write) returns [`Error::ValueTooLong`] when the edit decides to put a value above
/// [`MAX_VALUE`](crate::MAX_VALUE); scans return [`Error::Unordered`] where the [order](Index::order) is not that of
/// keys; all return [`Error::Heap`] when the pool is full or damaged.
pub trait Index: Send + Sync {
    /// The key's value.
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Error>;

    /// Reads many keys at once; `found(i, value)` is called once for each, in any order. Faster than as many
    /// [`get`](Index::get)s where the index overlaps their cache misses.
    fn multi_get<'g>(
        &'g self,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Error> {
        for (i, key) in keys.iter().enumerate() {
            found(i, self.get(key, guard)?);
        }
        Ok(())
    }

    /// Prefetches what reads and writes of these keys will look at, for all of them side by side, if the index knows
    /// how. Changes no value.
    fn prefetch(&self, keys: &[&[u8]], guard: &Guard) {
        let _ = (keys, guard);
    }

    /// Carries out an edit of one key, atomically and durably; returns what the edit decided. `Remove` of an absent
    /// key counts as `Keep`.
    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error>;

    /// Carries out edits of several keys, each as [`write`](Index::write) does; one that fails does not keep the others
    /// back. They are decided in their order, and those of one key done in it. All are durable when this returns,
    /// perhaps not earlier: a crash during it may leave any of them done, and others see them in any order. Faster than
    /// as many writes where the index overlaps their cache misses, and has them durable together (group commit): ROART
    /// does, the others carry out one by one.
    fn write_many(&self, keys: &[&[u8]], edits: &mut dyn Edits) {
        write_each(self, keys, edits);
    }

    /// The order in which it is walked. Never changes.
    fn order(&self) -> Order {
        Order::Keys
    }

    /// Visits the keys between two places of the index's [order](Index::order), until the visitor breaks. A walk over
    /// everything goes on behind the last key that it has seen ([`Bound::Excluded`]), whatever was written meanwhile,
    /// that key's removal included.
    ///
    /// Each key that is present throughout is visited once, none twice, and each value is one the key had during the
    /// walk; the whole is not one moment's view. Bounds that cross have nothing between them. The visitor may use the
    /// index.
    fn walk<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        self.scan(lower, upper, direction, guard, visit)
    }

    /// Visits the keys between the bounds by their bytes, as [`walk`](Index::walk) does in an ordered index.
    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error>;

    /// Walks everything and reports structure faults. No thread may write meanwhile.
    fn check(&self) -> Result<Faults, Error>;

    /// Does the work that writes have put off, waiting included. A [`write`](Index::write) does it by itself. A caller
    /// that writes under a guard, under which nothing may wait, calls this once the guard is gone.
    #[inline]
    fn maintain(&self) {}

    /// Merges all that it has gathered, in this thread, if it gathers writes and merges them: what it costs and the
    /// space it takes are then those of all that was written. Nothing elsewhere. To be called under no guard.
    fn settle(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Stops background work such as merges until the returned value is dropped; waits for work that has begun. Do not
    /// hold the value under a guard, and only briefly while recovery runs.
    fn quiesce(&self) -> Box<dyn Quiesced + '_> {
        Box::new(())
    }

    /// How its merges stand, if it gathers writes and merges them in the background.
    fn merges(&self) -> Option<Merges> {
        None
    }

    /// Adds the key if it is absent; `false` if it is present.
    #[inline]
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.write(key, &mut Insert(value))? == Action::Put)
    }

    /// Gives the key this value, whether it is there or not.
    #[inline]
    fn upsert(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write(key, &mut Upsert(value)).map(drop)
    }

    /// Changes the value of a key that is present; `false` if it is absent.
    #[inline]
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.write(key, &mut Update(value))? == Action::Put)
    }

    /// Removes the key; `false` if it is absent.
    #[inline]
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.write(key, &mut Remove)? == Action::Remove)
    }

    /// Replaces `expected` by `new`, either of which may be absent (`None`); `false` if the key holds something
    /// else.
    fn compare_and_swap(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, Error> {
        if expected.is_none() && new.is_none() {
            let guard = heap::pin();
            return Ok(self.get(key, &guard)?.is_none());
        }
        Ok(self.write(key, &mut CompareAndSwap { expected, new })? != Action::Keep)
    }

    /// The keys between the bounds, as a double-ended iterator.
    fn range<'g>(&'g self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, guard: &'g Guard) -> Range<'g>
    where
        Self: Sized,
    {
        Range::new(self, lower, upper, guard)
    }

    /// The keys that start with `prefix`, as a double-ended iterator.
    fn prefix<'g>(&'g self, prefix: &[u8], guard: &'g Guard) -> Range<'g>
    where
        Self: Sized,
    {
        Range::with_prefix(self, prefix, guard)
    }
}

/// Carries out edits one by one.
pub(crate) fn write_each<I: Index + ?Sized>(index: &I, keys: &[&[u8]], edits: &mut dyn Edits) {
    for (i, key) in keys.iter().enumerate() {
        let done = index.write(key, edits.edit(i));
        if edits.done(i, done).is_break() {
            return;
        }
    }
}
