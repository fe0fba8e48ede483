//! The trait, and ordinary iterators over any index, which borrow what they yield.

use crate::{
    Action, CompareAndSwap, Direction, Edit, Edits, Error, Guard, Insert, Merges, Order, ReadAhead, Refill,
    Remove, Update, Upsert, Value, prefix_bounds,
};
use std::ops::{Bound, ControlFlow};

/// Called by a walk or a scan for each key in order.
pub type Visit<'f, 'g> = dyn FnMut(&'g [u8], Value<'g>) -> ControlFlow<()> + 'f;

/// The result of a check of the whole index.
#[derive(Debug, Default, Clone)]
pub struct Faults {
    /// Number of keys met.
    pub keys: u64,
    /// Number of objects (nodes, leaf arrays, leaves) met.
    pub objects: u64,
    /// One line for each fault: where it is and what is wrong. At most [`Faults::MAX`] are kept.
    pub found: Vec<String>,
}

impl Faults {
    /// Maximum number of faults kept.
    pub const MAX: usize = 1000;

    /// Records a fault, if there is room.
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
/// Writes are durable, at the pool's level, when they return. Reads borrow from the pool under a [`Guard`]; hold it
/// no longer than needed, since space freed meanwhile cannot be reused before it is dropped.
///
/// # Errors
///
/// Calls that return a `Result` fail with [`Error::KeyTooLong`] for a key, or a bound of a walk or a scan, above
/// [`MAX_KEY`](crate::MAX_KEY); [`write`](Index::write) returns [`Error::ValueTooLong`] when the edit decides to put a
/// value above [`MAX_VALUE`](crate::MAX_VALUE); scans return [`Error::Unordered`] if the [order](Index::order) is not
/// that of keys; all return [`Error::Heap`] when they meet damage in the pool, and writes also when it is full.
pub trait Index: Send + Sync {
    /// Returns the key's value.
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Error>;

    /// Reads many keys at once; `found(i, value)` is called once for each, in any order. Faster than as many
    /// [`get`](Index::get)s if the index overlaps their cache misses.
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

    /// Prefetches the memory that reads and writes of these keys will access, side by side for all of them, if the
    /// index supports it. Changes no value.
    fn prefetch(&self, keys: &[&[u8]], guard: &Guard) {
        let _ = (keys, guard);
    }

    /// Applies an edit to one key, atomically and durably; returns the edit's decision. `Remove` of an absent key
    /// counts as `Keep`.
    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error>;

    /// Applies edits to several keys, each as [`write`](Index::write) does; a failed one does not stop the others.
    /// They are decided in order, and those of one key are applied in order. All are durable when this returns,
    /// perhaps not earlier: a crash during it may leave any of them applied, and other threads see them in any order.
    /// Faster than as many writes if the index overlaps their cache misses and makes them durable together (group
    /// commit): ROART does, the others apply them one by one.
    fn write_many(&self, keys: &[&[u8]], edits: &mut dyn Edits) {
        write_each(self, keys, edits);
    }

    /// The order in which the index is walked. Never changes.
    fn order(&self) -> Order {
        Order::Keys
    }

    /// Visits the keys between two places of the index's [order](Index::order), until the visitor breaks. A walk over
    /// everything can continue behind the last key that it has visited ([`Bound::Excluded`]), whatever was written
    /// meanwhile, even if that key was removed.
    ///
    /// Each key that is present throughout is visited once, none twice, and each value is one the key had during the
    /// walk; the walk as a whole is not a snapshot. Crossed bounds have nothing between them. The visitor may use the
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

    /// Walks everything and reports faults of the structure. No thread may write meanwhile.
    fn check(&self) -> Result<Faults, Error>;

    /// Does work that writes have postponed, which may include waiting. A [`write`](Index::write) does it by itself.
    /// A caller that writes under a guard, under which nothing may wait, calls this once the guard is gone.
    #[inline]
    fn maintain(&self) {}

    /// Merges all buffered writes in this thread, if the index buffers and merges writes, so that costs and space
    /// measured afterwards include everything written. Does nothing in other indexes. The caller must hold no guard.
    fn settle(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Stops background work such as merges until the returned value is dropped; waits for running work to end. Do
    /// not hold the value under a guard, and only briefly while recovery runs.
    fn quiesce(&self) -> Box<dyn Quiesced + '_> {
        Box::new(())
    }

    /// The state of its merges, if the index buffers writes and merges them in the background.
    fn merges(&self) -> Option<Merges> {
        None
    }

    /// Adds the key if it is absent; returns `false` if it is present.
    #[inline]
    fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.write(key, &mut Insert(value))? == Action::Put)
    }

    /// Sets the key's value, whether the key is present or not.
    #[inline]
    fn upsert(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        self.write(key, &mut Upsert(value)).map(drop)
    }

    /// Changes the value of a present key; returns `false` if it is absent.
    #[inline]
    fn update(&self, key: &[u8], value: &[u8]) -> Result<bool, Error> {
        Ok(self.write(key, &mut Update(value))? == Action::Put)
    }

    /// Removes the key; returns `false` if it is absent.
    #[inline]
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.write(key, &mut Remove)? == Action::Remove)
    }

    /// Replaces `expected` by `new`, either of which may be absent (`None`); returns `false` if the key holds
    /// something else.
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

/// Applies edits one by one.
pub(crate) fn write_each<I: Index + ?Sized>(index: &I, keys: &[&[u8]], edits: &mut dyn Edits) {
    for (i, key) in keys.iter().enumerate() {
        let done = index.write(key, edits.edit(i));
        if edits.done(i, done).is_break() {
            return;
        }
    }
}

type BorrowedEntry<'g> = (&'g [u8], Value<'g>);

/// A double-ended iterator over the keys between two bounds.
///
/// In an index without order of keys it accepts only unbounded ranges, whose keys come in the index's order.
///
/// An error ends the iteration after it has been returned once.
pub struct Range<'g> {
    index: &'g dyn Index,
    guard: &'g Guard,
    ahead: ReadAhead<&'g [u8], Value<'g>>,
}

impl<'g> Range<'g> {
    /// The keys of `index` between the bounds.
    pub fn new(
        index: &'g dyn Index,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        guard: &'g Guard,
    ) -> Range<'g> {
        let ahead = ReadAhead::new(index.order(), lower, upper);
        Range { index, guard, ahead }
    }

    /// The keys of `index` that start with `prefix`.
    pub fn with_prefix(index: &'g dyn Index, prefix: &[u8], guard: &'g Guard) -> Range<'g> {
        let (lower, upper) = prefix_bounds(prefix);
        let (lower, upper) = (
            lower.as_ref().map(Vec::as_slice),
            upper.as_ref().map(Vec::as_slice),
        );
        Range::new(index, lower, upper, guard)
    }

    fn step(&mut self, direction: Direction) -> Option<Result<BorrowedEntry<'g>, Error>> {
        let (index, guard) = (self.index, self.guard);
        self.ahead.next(direction, |batch| {
            let Refill {
                lower,
                upper,
                limit,
                entries,
            } = batch;
            index.walk(lower, upper, direction, guard, &mut |key, value| {
                entries.push_back((key, value));
                if entries.len() < limit {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            })?;
            Ok(entries.len() >= limit)
        })
    }
}

impl<'g> Iterator for Range<'g> {
    type Item = Result<BorrowedEntry<'g>, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        self.step(Direction::Forward)
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Reverse)
    }
}

impl std::iter::FusedIterator for Range<'_> {}

impl std::fmt::Debug for Range<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Range").field(&self.ahead).finish()
    }
}
