//! The trait that an index on a heap implements, from which the contract follows.
//!
//! All indexes on a heap share the limits on keys and values, and the retry of a write that found the pool full while
//! recovery or the reclamation of retired objects could still make room.

use crate::contract::write_each;
use crate::{
    Action, Direction, Edit, Edits, Error, Faults, Guard, Index, MAX_KEY, MAX_VALUE, Merges, Order, Quiesced,
    Value, Visit,
};
use heap::{Heap, Trace};
use pmem::{Fault, Media};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// Applies the given edit to one key; the result is visible to other threads and durable at the latest when
/// [`OnHeap::edit_many`] returns.
pub type CarryOut<'c> = dyn FnMut(&mut dyn Edit) -> Result<Action, heap::Error> + 'c;

/// Called with each key's number and the function that applies its edit.
pub type EachEdit<'e> = dyn FnMut(usize, &mut CarryOut<'_>) -> ControlFlow<()> + 'e;

/// An index on a heap, under a root of its own. Implementing this provides [`Index`].
///
/// No key passed to these calls is longer than [`MAX_KEY`], and no edit puts a value longer than [`MAX_VALUE`]. A
/// read borrows its results from the guard, under which none of their memory is reused.
pub trait OnHeap: Send + Sync + Sized {
    /// The heap's media.
    type Media: Media;

    /// The kind of such an index in the heap's root directory.
    const KIND: u32;

    /// The order in which it is walked, as in [`Index::order`].
    const ORDER: Order = Order::Keys;

    /// Whether its writers hold no lock while they [decide](crate::Edit::decide), so that a writer overtaken by
    /// another decides again.
    const IS_LOCK_FREE: bool = false;

    /// Creates an empty index under the root `name`.
    ///
    /// # Errors
    ///
    /// If the name is taken or invalid, or the pool is full.
    fn create(heap: &Heap<Self::Media>, name: &[u8]) -> Result<Self, heap::Error>;

    /// Opens the index under the root `name`; returns `None` if there is no such root.
    ///
    /// # Errors
    ///
    /// If the root is of another kind, or damaged.
    fn open(heap: &Heap<Self::Media>, name: &[u8]) -> Result<Option<Self>, heap::Error>;

    /// Whether such an index is under the root `name`, as [`open`](OnHeap::open) finds it. Takes a time that does not
    /// depend on the index's size.
    ///
    /// # Errors
    ///
    /// If the root is of another kind, or damaged.
    fn is_there(heap: &Heap<Self::Media>, name: &[u8]) -> Result<bool, heap::Error> {
        Ok(Self::open(heap, name)?.is_some())
    }

    /// The tracer, which shows the heap the objects that such an index keeps alive.
    fn tracer() -> Arc<dyn Trace<Self::Media>>;

    /// The heap it lives in.
    fn heap(&self) -> &Heap<Self::Media>;

    /// The key's value.
    ///
    /// # Errors
    ///
    /// If the pool is damaged; likewise for all reads.
    fn find<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Fault>;

    /// Reads many keys at once, as [`Index::multi_get`] does.
    ///
    /// # Errors
    ///
    /// As for [`find`](OnHeap::find).
    fn find_many<'g>(
        &'g self,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Fault> {
        for (i, key) in keys.iter().enumerate() {
            found(i, self.find(key, guard)?);
        }
        Ok(())
    }

    /// Prefetches the memory that reads and edits of these keys will access, as [`Index::prefetch`] does.
    ///
    /// # Errors
    ///
    /// As for [`find`](OnHeap::find); the read or write itself reports them.
    fn prefetch_many(&self, keys: &[&[u8]], guard: &Guard) -> Result<(), Fault> {
        let _ = (keys, guard);
        Ok(())
    }

    /// Applies an edit to one key, as [`Index::write`] does.
    ///
    /// # Errors
    ///
    /// If the pool is full or damaged. Nothing was changed then.
    fn edit(&self, key: &[u8], edit: &mut dyn Edit, guard: &Guard) -> Result<Action, heap::Error>;

    /// Applies edits to these keys in order, until `each` breaks: `each` is called once for each key, perhaps under the
    /// locks of those before it. All are durable when this returns.
    fn edit_many(&self, keys: &[&[u8]], guard: &Guard, each: &mut EachEdit<'_>) {
        // The edit itself reports any fault.
        let _ = self.prefetch_many(keys, guard);
        for (i, key) in keys.iter().enumerate() {
            if each(i, &mut |edit| self.edit(key, edit, guard)).is_break() {
                return;
            }
        }
    }

    /// Visits the keys between the bounds in the index's order, as [`Index::walk`] does.
    ///
    /// # Errors
    ///
    /// As for [`find`](OnHeap::find).
    fn visit_range<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Fault>;

    /// Called after writes that have changed something, when their guard is gone, and by [`Index::maintain`]: for work
    /// that may be postponed.
    #[inline]
    fn wrote(&self) {}

    /// Like [`Index::settle`].
    fn settle(&self) -> Result<(), heap::Error> {
        Ok(())
    }

    /// Like [`Index::quiesce`].
    fn quiesce(&self) -> Box<dyn Quiesced + '_> {
        Box::new(())
    }

    /// Like [`Index::merges`].
    fn merges(&self) -> Option<Merges> {
        None
    }

    /// Walks everything and reports faults of the structure. The caller ensures that no other thread writes
    /// meanwhile. The agreement of walks and gets, and the order of walks, are checked for all indexes alike.
    fn find_faults(&self) -> Faults;
}

#[cold]
fn damaged(fault: Fault) -> Error {
    heap::Error::from(fault).into()
}

#[inline]
fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.len() > MAX_KEY {
        Err(Error::KeyTooLong(key.len()))
    } else {
        Ok(())
    }
}

impl<I: OnHeap> Index for I {
    #[inline]
    fn get<'g>(&'g self, key: &[u8], guard: &'g Guard) -> Result<Option<Value<'g>>, Error> {
        check_key(key)?;
        self.find(key, guard).map_err(damaged)
    }

    fn multi_get<'g>(
        &'g self,
        keys: &[&[u8]],
        guard: &'g Guard,
        found: &mut dyn FnMut(usize, Option<Value<'g>>),
    ) -> Result<(), Error> {
        keys.iter().try_for_each(|key| check_key(key))?;
        self.find_many(keys, guard, found).map_err(damaged)
    }

    fn prefetch(&self, keys: &[&[u8]], guard: &Guard) {
        if keys.iter().all(|key| check_key(key).is_ok()) {
            // The read or write itself reports any fault.
            let _ = self.prefetch_many(keys, guard);
        }
    }

    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        check_key(key)?;
        let mut edit = Limited { edit, too_long: None };
        // If the pool is full, nothing was changed, and recovery or the reclamation of retired objects may make room.
        // Both wait for guards, so ours is dropped first.
        let action = self
            .heap()
            .with_room(|| self.edit(key, &mut edit, &heap::pin()))?;
        if action != Action::Keep {
            self.wrote();
        }
        edit.done(action)
    }

    fn write_many(&self, keys: &[&[u8]], edits: &mut dyn Edits) {
        if keys.len() < 2 || keys.iter().any(|key| check_key(key).is_err()) {
            return write_each(self, keys, edits);
        }
        let (mut begin, mut changed) = (0, false);
        while begin < keys.len() {
            let mut full = None;
            let first = begin;
            begin = keys.len();
            self.edit_many(&keys[first..], &heap::pin(), &mut |i, carry_out| {
                let i = first + i;
                let mut edit = Limited {
                    edit: edits.edit(i),
                    too_long: None,
                };
                let done = match carry_out(&mut edit) {
                    // Retried without the guard, which delays the reclamation of objects that the others have
                    // retired.
                    Err(heap::Error::Full { .. }) => {
                        full = Some(i);
                        return ControlFlow::Break(());
                    }
                    Ok(action) => edit.done(action),
                    Err(error) => Err(error.into()),
                };
                changed |= matches!(done, Ok(Action::Put | Action::Remove));
                edits.done(i, done)
            });
            if let Some(i) = full {
                let done = self.write(keys[i], edits.edit(i));
                if edits.done(i, done).is_continue() {
                    begin = i + 1;
                }
            }
        }
        if changed {
            self.wrote();
        }
    }

    #[inline]
    fn order(&self) -> Order {
        I::ORDER
    }

    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        match I::ORDER {
            Order::Keys => self.walk(lower, upper, direction, guard, visit),
            Order::Ranks(_) => Err(Error::Unordered),
        }
    }

    fn walk<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        for bound in [lower, upper] {
            if let Bound::Included(key) | Bound::Excluded(key) = bound {
                check_key(key)?;
            }
        }
        self.visit_range(lower, upper, direction, guard, visit)
            .map_err(damaged)
    }

    fn check(&self) -> Result<Faults, Error> {
        let mut faults = self.find_faults();
        if faults.found.is_empty() {
            check_order(self, &mut faults);
        }
        Ok(faults)
    }

    #[inline]
    fn maintain(&self) {
        self.wrote();
    }

    fn settle(&self) -> Result<(), Error> {
        Ok(OnHeap::settle(self)?)
    }

    fn quiesce(&self) -> Box<dyn Quiesced + '_> {
        OnHeap::quiesce(self)
    }

    fn merges(&self) -> Option<Merges> {
        OnHeap::merges(self)
    }
}

/// Maximum number of keys that a check walks under one guard: memory that a walk keeps for its visitor is freed only
/// with its guard.
pub const KEYS_PER_GUARD: usize = 100_000;

/// Checks that each key that a walk finds comes behind the one before, and that a get finds the same value.
fn check_order<I: OnHeap>(index: &I, faults: &mut Faults) {
    let mut keys = 0;
    let mut behind: Option<Vec<u8>> = None;
    loop {
        let guard = heap::pin();
        let mut last: Option<&[u8]> = None;
        let mut left = KEYS_PER_GUARD;
        let done = index.visit_range(
            behind.as_deref().map_or(Bound::Unbounded, Bound::Excluded),
            Bound::Unbounded,
            Direction::Forward,
            &guard,
            &mut |key, value| {
                keys += 1;
                left -= 1;
                let before = last.or(behind.as_deref());
                if before.is_some_and(|last| I::ORDER.compare(last, key).is_ge()) {
                    faults.note(|| format!("key {}: out of order", key.escape_ascii()));
                }
                last = Some(key);
                if !matches!(index.find(key, &guard), Ok(Some(read)) if read == value) {
                    faults.note(|| format!("key {}: a walk finds it, a get does not", key.escape_ascii()));
                }
                if faults.found.len() < Faults::MAX && left > 0 {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                }
            },
        );
        if let Err(error) = done {
            faults.note(|| error.to_string());
        }
        if left > 0 || !faults.found.is_empty() {
            break;
        }
        behind = last.map(<[u8]>::to_vec);
    }
    if faults.found.is_empty() && keys != faults.keys {
        let structure = faults.keys;
        faults.note(|| format!("a walk finds {keys} keys of {structure}"));
    }
}

/// An edit that puts no value above the limit.
struct Limited<'a> {
    edit: &'a mut dyn Edit,
    too_long: Option<usize>,
}

impl Limited<'_> {
    /// The result, if the edit could be applied.
    fn done(&self, action: Action) -> Result<Action, Error> {
        match self.too_long {
            Some(len) => Err(Error::ValueTooLong(len)),
            None => Ok(action),
        }
    }
}

impl Edit for Limited<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        let action = self.edit.decide(current);
        // The index may ask again: the last answer counts.
        self.too_long = None;
        if action == Action::Put && self.edit.value().len() > MAX_VALUE {
            self.too_long = Some(self.edit.value().len());
            return Action::Keep;
        }
        action
    }

    fn value(&self) -> &[u8] {
        self.edit.value()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts a value that is too long if the key is absent, and a short one if it is present.
    struct LongAtFirst(Vec<u8>);

    impl Edit for LongAtFirst {
        fn decide(&mut self, current: Option<&[u8]>) -> Action {
            let len = if current.is_none() { MAX_VALUE + 1 } else { 1 };
            self.0.resize(len, 0);
            Action::Put
        }

        fn value(&self) -> &[u8] {
            &self.0
        }
    }

    /// If an edit is asked several times, the last answer counts: an earlier value that was too long is no error if
    /// another value is put, and vice versa.
    #[test]
    fn the_last_answer_counts() {
        let edit = &mut LongAtFirst(Vec::new());
        let mut limited = Limited { edit, too_long: None };
        for _ in 0..2 {
            let action = limited.decide(None);
            assert_eq!(action, Action::Keep);
            assert!(matches!(limited.done(action), Err(Error::ValueTooLong(len)) if len == MAX_VALUE + 1));
            let action = limited.decide(Some(b"another"));
            assert_eq!(action, Action::Put);
            assert!(matches!(limited.done(action), Ok(Action::Put)));
        }
    }
}
