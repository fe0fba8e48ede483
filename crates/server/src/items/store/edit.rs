//! The edits of items, which look at an item and change it under the lock on its key.

use super::count::{Found, ItemEdit};
use super::{Decision, ItemStore};
use crate::items::item::Item;
use index::{Action, Edit};
use std::sync::atomic::Ordering;

/// Removes a key if `rule` holds for its value. Each decision calls `rule`, also if there is no value.
pub struct Remove<'s, F> {
    store: &'s ItemStore,
    rule: F,
    found: Found,
}

impl<F: FnMut(Option<&[u8]>) -> bool> Remove<'_, F> {
    pub fn new(store: &ItemStore, rule: F) -> Remove<'_, F> {
        Remove {
            store,
            rule,
            found: Found::default(),
        }
    }
}

impl<F: FnMut(Option<&[u8]>) -> bool> Edit for Remove<'_, F> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.found = self.store.found(current, current.and_then(Item::read));
        match (self.rule)(current) {
            true => Action::Remove,
            false => Action::Keep,
        }
    }
    fn value(&self) -> &[u8] {
        &[]
    }
}

impl<F: FnMut(Option<&[u8]>) -> bool> ItemEdit for Remove<'_, F> {
    fn found(&self) -> Found {
        self.found
    }
}

/// The edit of [`ItemStore::change`].
pub struct StoreEdit<'s, R, T> {
    pub store: &'s ItemStore,
    /// The current time in milliseconds since 1970.
    pub now: u64,
    /// The buffer for the value to put.
    pub put: &'s mut Vec<u8>,
    /// Receives the live item and a new unique, and decides.
    pub rule: R,
    /// The unique of the item that was there, dead or alive.
    pub old: Option<u64>,
    /// The rule's result; `None` if the value is no item.
    pub outcome: Option<T>,
    pub found: Found,
}

impl<R, T> Edit for StoreEdit<'_, R, T>
where
    R: FnMut(Option<Item<'_>>, u64, &mut Vec<u8>) -> Decision<T>,
{
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        let old = current.and_then(Item::read);
        self.found = self.store.found(current, old);
        if current.is_some() && old.is_none() {
            return Action::Keep;
        }
        self.old = old.map(|item| item.header.unique);
        let live = old.filter(|item| !self.store.is_dead(&item.header, self.now));
        let unique = self.store.next.fetch_add(1, Ordering::SeqCst);
        let (action, outcome) = match (self.rule)(live, unique, self.put) {
            Decision::Put(outcome) => (Action::Put, outcome),
            Decision::Remove(outcome) => (Action::Remove, outcome),
            // An edit that meets a dead item removes it.
            Decision::Keep(outcome) if live.is_none() => (Action::Remove, outcome),
            Decision::Keep(outcome) => (Action::Keep, outcome),
        };
        self.outcome = Some(outcome);
        action
    }

    fn value(&self) -> &[u8] {
        self.put
    }
}

impl<R, T> ItemEdit for StoreEdit<'_, R, T>
where
    R: FnMut(Option<Item<'_>>, u64, &mut Vec<u8>) -> Decision<T>,
{
    fn found(&self) -> Found {
        self.found
    }
}
