//! The trait that an index on a heap implements, from which the contract follows.
//!
//! The limits on keys and values, and the second try of a write that found the pool full while recovery was still
//! looking for room, are the same for all of them.

use crate::contract::write_each;
use crate::{
    Action, Direction, Edit, Edits, Error, Faults, Guard, Index, MAX_KEY, MAX_VALUE, Merges, Order, Quiesced,
    Value, Visit,
};
use heap::{Heap, Trace};
use pmem::{Fault, Media};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// Carries out the edit that it is given, of one key; what it answers is done, for others and for good, at the latest
/// when [`OnHeap::edit_many`] returns.
pub type CarryOut<'c> = dyn FnMut(&mut dyn Edit) -> Result<Action, heap::Error> + 'c;

/// Called with each key's number and what carries out the edit of it.
pub type EachEdit<'e> = dyn FnMut(usize, &mut CarryOut<'_>) -> ControlFlow<()> + 'e;

/// An index on a heap, under a root of its own. It gets [`Index`] by implementing this.
///
/// No key that these calls are given is longer than [`MAX_KEY`], and no edit puts a value longer than [`MAX_VALUE`]. A
/// read borrows what it returns or visits from the guard, under which nothing of it is reused.
pub trait OnHeap: Send + Sync + Sized {
    /// What the heap's memory is.
    type Media: Media;

    /// What the heap's root directory calls such an index.
    const KIND: u32;

    /// The order in which it is walked, as [`Index::order`] says.
    const ORDER: Order = Order::Keys;

    /// Whether its writers hold no lock while they [decide](crate::Edit::decide), so that one which another has outrun
    /// decides again.
    const IS_LOCK_FREE: bool = false;

    /// Makes an empty index under the root `name`.
    ///
    /// # Errors
    ///
    /// If the name is taken or not a name, or the pool is full.
    fn create(heap: &Heap<Self::Media>, name: &[u8]) -> Result<Self, heap::Error>;

    /// The index under the root `name`; `None` if there is no such root.
    ///
    /// # Errors
    ///
    /// If the root is of another kind, or damaged.
    fn open(heap: &Heap<Self::Media>, name: &[u8]) -> Result<Option<Self>, heap::Error>;

    /// Whether such an index is under the root `name`, as [`open`](OnHeap::open) says it. Takes no longer where the
    /// index holds more.
    ///
    /// # Errors
    ///
    /// If the root is of another kind, or damaged.
    fn is_there(heap: &Heap<Self::Media>, name: &[u8]) -> Result<bool, heap::Error> {
        Ok(Self::open(heap, name)?.is_some())
    }

    /// The tracer: tells the heap which objects such an index keeps alive.
    fn tracer() -> Arc<dyn Trace<Self::Media>>;

    /// The heap it lives in.
    fn heap(&self) -> &Heap<Self::Media>;

    /// The key's value.
    ///
    /// # Errors
    ///
    /// Where the pool makes no sense; so for all reads.
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

    /// Prefetches what reads and edits of these keys will look at, as [`Index::prefetch`] does.
    ///
    /// # Errors
    ///
    /// As for [`find`](OnHeap::find); the read or write itself will meet what is wrong.
    fn prefetch_many(&self, keys: &[&[u8]], guard: &Guard) -> Result<(), Fault> {
        let _ = (keys, guard);
        Ok(())
    }

    /// Carries out an edit of one key, as [`Index::write`] does.
    ///
    /// # Errors
    ///
    /// Where the pool is full or makes no sense. Nothing was changed then.
    fn edit(&self, key: &[u8], edit: &mut dyn Edit, guard: &Guard) -> Result<Action, heap::Error>;

    /// Has edits of these keys carried out in their order, until `each` breaks: it is called once for each, perhaps
    /// under the locks of those before it. All are durable when this returns.
    fn edit_many(&self, keys: &[&[u8]], guard: &Guard, each: &mut EachEdit<'_>) {
        // The edit itself will meet what is wrong.
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

    /// Called after a write that has changed something, when its guard is gone: for what the index does at leisure.
    #[inline]
    fn wrote(&self) {}

    /// As [`Index::settle`].
    fn settle(&self) -> Result<(), heap::Error> {
        Ok(())
    }

    /// As [`Index::quiesce`].
    fn quiesce(&self) -> Box<dyn Quiesced + '_> {
        Box::new(())
    }

    /// As [`Index::merges`].
    fn merges(&self) -> Option<Merges> {
        None
    }

    /// Walks everything and reports structure faults. The caller lets no other thread write meanwhile. That walks and
    /// gets then agree, and that walks are in order, is checked for all indexes alike.
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
            // The read or write itself will meet what is wrong.
            let _ = self.prefetch_many(keys, guard);
        }
    }

    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        check_key(key)?;
        let mut edit = Limited { edit, too_long: None };
        // Where the pool is full nothing was changed, and what recovery finds, or was retired lately, may make room.
        // Both wait for guards, so ours goes first.
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
                    // To be tried again without the guard, which keeps back what the others have retired.
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

/// Keys that are compared with their gets under one guard.
const AT_ONCE: usize = 100_000;

/// Every key that a walk finds comes behind the one before, and a get finds the same value.
fn check_order<I: OnHeap>(index: &I, faults: &mut Faults) {
    let mut keys = 0;
    let mut behind: Option<Vec<u8>> = None;
    loop {
        // References that a walk keeps for its visitor end with its guard.
        let guard = heap::pin();
        let mut last: Option<&[u8]> = None;
        let mut left = AT_ONCE;
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

/// An edit that puts nothing longer than a value may be.
struct Limited<'a> {
    edit: &'a mut dyn Edit,
    too_long: Option<usize>,
}

impl Limited<'_> {
    /// What came of it, if it could be carried out.
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
        // An index that has been outrun asks again: the last answer counts.
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

    /// Puts a value that is too long where the key is absent, and a short one where it is there.
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

    /// Of an edit that is asked several times the last answer counts: a value that was too long is no error of a put of
    /// another value, nor the other way round.
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
