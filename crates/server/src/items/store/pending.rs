//! The map under a store, and what a transaction has changed and not yet committed.
//!
//! While a transaction runs, edits are kept back in an [`Overlay`], which the stores of all databases share, and reads
//! look there first. No other command runs then (the databases' gate), so that the transaction alone sees it.

use index::{Action, Direction, Edit, Error, Guard, Index};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wollemi::{Durability, Map, Overlay, Visit};

/// A map, and what is kept back from it.
pub struct Pending {
    map: Map,
    /// The same map, for writes that are durable whatever the sync policy is.
    durable: Map,
    index: Arc<dyn Index>,
    /// Whether edits are kept back. Changes only while no other command runs.
    on: AtomicBool,
    overlay: Arc<Mutex<Overlay>>,
}

impl Pending {
    pub fn new(map: Map, overlay: Arc<Mutex<Overlay>>) -> Pending {
        Pending {
            index: map.index(),
            durable: map.with_durability(Durability::Immediate),
            map,
            on: AtomicBool::new(false),
            overlay,
        }
    }

    /// The index itself, outside of a transaction.
    pub fn index(&self) -> &dyn Index {
        &*self.index
    }

    /// The map itself, outside of a transaction.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Whether a transaction runs.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Keeps edits back from now on, or no longer.
    pub fn keep_back(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    // Each change of it is one insert: it is whole whatever panicked.
    fn overlay(&self) -> MutexGuard<'_, Overlay> {
        self.overlay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a key's value.
    pub fn read<T>(&self, key: &[u8], show: impl FnOnce(Option<&[u8]>) -> T) -> Result<T, Error> {
        if self.is_on() {
            return self.overlay().read(&self.map, key, show);
        }
        let guard = heap::pin();
        Ok(show(self.index.get(key, &guard)?.as_deref()))
    }

    /// Carries out an edit, or keeps it back.
    pub fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        match self.is_on() {
            true => self.overlay().edit(&self.map, key, edit),
            false => self.index.write(key, edit),
        }
    }

    /// Carries out an edit whose record becomes durable before anything that is answered after it, also where other
    /// writes are eventual; or keeps it back.
    pub fn write_durably(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        match self.is_on() {
            true => self.overlay().edit(&self.map, key, edit),
            false => self.write_at_once(key, edit),
        }
    }

    /// As [`write_durably`](Pending::write_durably), but keeps nothing back.
    pub fn write_at_once(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        self.durable.edit(key, edit).map_err(refused)
    }

    /// Waits until all is durable that this thread's turn has done.
    pub fn settle_turn(&self) -> Result<(), Error> {
        self.map.settle_turn().map_err(refused)
    }

    /// Visits the keys between the bounds in the order of the index, until the visitor breaks.
    pub fn scan(
        &self,
        (lower, upper): (Bound<&[u8]>, Bound<&[u8]>),
        direction: Direction,
        guard: &Guard,
        visit: &mut Visit<'_>,
    ) -> Result<(), Error> {
        if self.is_on() {
            let overlay = self.overlay();
            return overlay.scan(&self.map, (lower, upper), direction, visit);
        }
        self.index
            .walk(lower, upper, direction, guard, &mut |key, value| {
                visit(key, &value)
            })
    }
}

fn refused(error: wollemi::Error) -> Error {
    match error {
        wollemi::Error::Index(error) => error,
        error => Error::Refused(error.into()),
    }
}
