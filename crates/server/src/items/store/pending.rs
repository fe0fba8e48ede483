//! The index under a store, and what a transaction has changed and not yet committed.
//!
//! While a transaction runs, edits are kept back here, and reads look here first. Nobody else acts then (the databases'
//! gate), so what is kept back is seen by the transaction alone.
//!
//! I1 What is kept back is, key by key, what the index shall hold when the transaction is committed.

use index::{Action, Direction, Edit, Error, Guard, Index, MAX_KEY, MAX_VALUE};
use std::collections::BTreeMap;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What keys shall hold; `None`: nothing.
pub type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// A change that is kept back.
type Change<'c> = (&'c Vec<u8>, &'c Option<Vec<u8>>);

/// What a scan calls for each key and its value.
pub type Visit<'v> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'v;

/// The most bytes that one database's part of a transaction may change.
const MOST: usize = 256 << 20;

/// An index, and what is kept back from it.
pub struct Pending {
    index: Arc<dyn Index>,
    /// Whether edits are kept back. Changes only while nobody else acts.
    on: AtomicBool,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    changes: Changes,
    bytes: usize,
    /// There was more than a transaction may change, and something is missing from `changes`.
    too_much: bool,
}

impl Kept {
    fn put(&mut self, key: &[u8], value: Option<&[u8]>) {
        let len = |value: Option<&[u8]>| value.map_or(0, <[u8]>::len);
        self.bytes += key.len() + len(value);
        let value = value.map(<[u8]>::to_vec);
        if let Some(old) = self.changes.insert(key.to_vec(), value) {
            self.bytes -= key.len() + len(old.as_deref());
        }
    }
}

impl Pending {
    pub fn new(index: Arc<dyn Index>) -> Pending {
        Pending {
            index,
            on: AtomicBool::new(false),
            kept: Mutex::default(),
        }
    }

    /// The index itself, for who is in no transaction.
    pub fn index(&self) -> &dyn Index {
        &*self.index
    }

    /// Whether a transaction runs.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Keeps edits back from now on.
    pub fn begin(&self) {
        self.on.store(true, Ordering::Relaxed);
    }

    /// Keeps edits back no longer, and forgets those that were.
    pub fn end(&self) {
        self.on.store(false, Ordering::Relaxed);
        let kept = std::mem::take(&mut *self.kept());
        crate::freed::note(kept.bytes);
    }

    /// What is kept back; `None` where that is more than a transaction may change.
    pub fn changes(&self) -> Option<Changes> {
        let mut kept = self.kept();
        (kept.bytes <= MOST && !kept.too_much).then(|| std::mem::take(&mut kept.changes))
    }

    // Each change of it is one insert: it is whole whatever panicked.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a key's value.
    pub fn read<T>(&self, key: &[u8], show: impl FnOnce(Option<&[u8]>) -> T) -> Result<T, Error> {
        if self.is_on()
            && let Some(value) = self.kept().changes.get(key)
        {
            return Ok(show(value.as_deref()));
        }
        let guard = heap::pin();
        Ok(show(self.index.get(key, &guard)?.as_deref()))
    }

    /// Carries out an edit, or keeps it back.
    pub fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        if !self.is_on() {
            return self.index.write(key, edit);
        }
        if key.len() > MAX_KEY {
            return Err(Error::KeyTooLong(key.len()));
        }
        let mut kept = self.kept();
        let mut was_there = false;
        let mut decide = |current: Option<&[u8]>| {
            was_there = current.is_some();
            edit.decide(current)
        };
        let action = match kept.changes.get(key) {
            Some(value) => decide(value.as_deref()),
            None => decide(self.index.get(key, &heap::pin())?.as_deref()),
        };
        match action {
            Action::Put if edit.value().len() > MAX_VALUE => {
                return Err(Error::ValueTooLong(edit.value().len()));
            }
            // A transaction of more will be refused: what it does from here on is of no account.
            Action::Put if kept.bytes > MOST => kept.too_much = true,
            Action::Put => kept.put(key, Some(edit.value())),
            Action::Remove if was_there => kept.put(key, None),
            Action::Remove | Action::Keep => return Ok(Action::Keep),
        }
        Ok(action)
    }

    /// Visits the keys between the bounds in order, until told to break.
    pub fn scan(
        &self,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        guard: &Guard,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        let kept = self.is_on().then(|| self.kept());
        let mut between: Box<dyn Iterator<Item = Change<'_>> + '_> = match &kept {
            Some(kept) if !crossed(lower, upper) => {
                let range = kept.changes.range::<[u8], _>((lower, upper));
                match direction {
                    Direction::Forward => Box::new(range),
                    Direction::Reverse => Box::new(range.rev()),
                }
            }
            _ => Box::new(std::iter::empty()),
        };
        let mut next = between.next();
        let mut ended = false;
        self.index
            .scan(lower, upper, direction, guard, &mut |key, value| {
                // What is kept back of keys that come before this one.
                while let Some((before, kept)) = next
                    && match direction {
                        Direction::Forward => before.as_slice() < key,
                        Direction::Reverse => before.as_slice() > key,
                    }
                {
                    next = between.next();
                    if let Some(value) = kept
                        && visit(before, value).is_break()
                    {
                        ended = true;
                        return ControlFlow::Break(());
                    }
                }
                let shown = match next {
                    Some((same, kept)) if same.as_slice() == key => {
                        next = between.next();
                        kept.as_deref().map(|value| visit(key, value))
                    }
                    _ => Some(visit(key, &value)),
                };
                let flow = shown.unwrap_or(ControlFlow::Continue(()));
                ended = flow.is_break();
                flow
            })?;
        while let Some((key, kept)) = next
            && !ended
        {
            next = between.next();
            if let Some(value) = kept {
                ended = visit(key, value).is_break();
            }
        }
        Ok(())
    }
}

/// Whether no key is between these bounds; `BTreeMap::range` panics on those that cross.
fn crossed(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    match (lower, upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
        (Bound::Included(low), Bound::Included(high)) => low > high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
            low >= high
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::model::Model;
    use index::{Remove, Upsert};
    use proptest::prelude::*;

    type Step = (u8, Option<Vec<u8>>);

    fn apply(pending: &Pending, (key, value): &Step) {
        let done = match value {
            Some(value) => pending.write(&[*key], &mut Upsert(value)),
            None => pending.write(&[*key], &mut Remove),
        };
        done.expect("the model does not fail");
    }

    fn seen(
        pending: &Pending,
        bounds: (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        most: usize,
    ) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut seen = Vec::new();
        let scanned = pending.scan(bounds, direction, &heap::pin(), &mut |key, value| {
            seen.push((key.to_vec(), value.to_vec()));
            match seen.len() < most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        scanned.expect("the model does not fail");
        seen
    }

    proptest! {
        /// A transaction sees what it would see had it changed the index, while the index is as it was; and what it
        /// leaves, written there, makes it true.
        #[test]
        fn a_transaction_sees_its_own_changes(
            before in prop::collection::vec(any::<Step>(), 0..30),
            within in prop::collection::vec(any::<Step>(), 0..30),
            low: u8, high: u8, most in 1..20usize,
        ) {
            let (base, other) = (Model::new(), Model::new());
            let (ours, direct) = (Pending::new(Arc::new(base.clone())), Pending::new(Arc::new(other)));
            for step in &before {
                apply(&ours, step);
                apply(&direct, step);
            }
            let all = (Bound::Unbounded, Bound::Unbounded);
            let untouched = seen(&ours, all, Direction::Forward, usize::MAX);
            ours.begin();
            for step in &within {
                apply(&ours, step);
                apply(&direct, step);
            }
            let (low, high) = ([low], [high]);
            for direction in [Direction::Forward, Direction::Reverse] {
                for bounds in [all, (Bound::Included(&low[..]), Bound::Excluded(&high[..]))] {
                    prop_assert_eq!(seen(&ours, bounds, direction, most), seen(&direct, bounds, direction, most));
                }
            }
            for key in 0..=u8::MAX {
                let read = |pending: &Pending| pending.read(&[key], |value| value.map(<[u8]>::to_vec)).ok();
                prop_assert_eq!(read(&ours), read(&direct));
            }
            let changes = ours.changes().expect("few");
            ours.end();
            prop_assert_eq!(seen(&ours, all, Direction::Forward, usize::MAX), untouched);
            for (key, value) in changes {
                apply(&ours, &(key[0], value));
            }
            let after = seen(&direct, all, Direction::Forward, usize::MAX);
            prop_assert_eq!(seen(&ours, all, Direction::Forward, usize::MAX), after);
        }
    }
}
