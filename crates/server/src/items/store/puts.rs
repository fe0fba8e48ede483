//! Storing several items unconditionally. ROART prefetches the memory that their edits access, in parallel, and makes
//! most of them durable together; other indexes store them one by one.

use super::count::{Counting, Found};
use super::{Failure, ItemStore};
use crate::items::item::Item;
use index::{Action, Edit, Edits, Error};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

impl ItemStore {
    /// Stores an item under each of these keys, in order, each by an edit of its own. `fill` makes the value of the
    /// `i`-th item, with the unique that it is given, perhaps under the locks of several keys, so it must be short and
    /// must not log. `done` receives the outcome of each item, in order, once all are done. Called in no transaction,
    /// at most `BATCH` keys at a time.
    pub fn put_many(
        &self,
        keys: &[&[u8]],
        scratch: &mut Vec<u8>,
        fill: impl FnMut(usize, u64, &mut Vec<u8>),
        mut done: impl FnMut(usize, Result<(), Failure>),
    ) -> Result<(), Failure> {
        self.reserve_if_few()?;
        let mut group = Group {
            store: self,
            keys,
            counting: self.count.hold(),
            value: scratch,
            fill,
            failed: Vec::new(),
            i: 0,
            found: Found::default(),
            foreign: false,
        };
        self.items.index().write_many(keys, &mut group);
        let mut failed = group.failed.into_iter().peekable();
        for i in 0..keys.len() {
            let failed = failed.next_if(|(at, _)| *at == i);
            done(i, failed.map_or(Ok(()), |(_, failure)| Err(failure)));
        }
        Ok(())
    }
}

struct Group<'p, F> {
    store: &'p ItemStore,
    keys: &'p [&'p [u8]],
    counting: Counting<'p>,
    /// The buffer for the value to put.
    value: &'p mut Vec<u8>,
    fill: F,
    /// The items that were not stored, and why.
    failed: Vec<(usize, Failure)>,
    /// The place of the current edit's key in `keys`.
    i: usize,
    found: Found,
    /// Whether the old value is no item.
    foreign: bool,
}

impl<F> Edit for Group<'_, F>
where
    F: FnMut(usize, u64, &mut Vec<u8>),
{
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        let old = current.and_then(Item::read);
        self.found = self.store.found(current, old);
        self.foreign = current.is_some() && old.is_none();
        if self.foreign {
            return Action::Keep;
        }
        let unique = self.store.next.fetch_add(1, Ordering::SeqCst);
        (self.fill)(self.i, unique, self.value);
        Action::Put
    }

    fn value(&self) -> &[u8] {
        self.value
    }
}

impl<F> Edits for Group<'_, F>
where
    F: FnMut(usize, u64, &mut Vec<u8>),
{
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        self.i = i;
        self
    }

    fn done(&mut self, i: usize, done: Result<Action, Error>) -> ControlFlow<()> {
        match done {
            Ok(action) => {
                let key = self.keys[i];
                let after = self.value.len();
                self.counting.note(key, self.found, action, after);
                match self.foreign {
                    true => self.failed.push((i, Failure::Foreign)),
                    false => self.store.usage.note(key),
                }
            }
            Err(error) => self.failed.push((i, error.into())),
        }
        ControlFlow::Continue(())
    }
}
