//! The map under a store, and the uncommitted changes of a transaction.
//!
//! A running transaction buffers its edits in an [`Overlay`], which the stores of all databases share, and its reads
//! look there first. No other command runs then (the databases' gate), so only the transaction sees them.

use index::{Action, Direction, Edit, Error, Guard, Index};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wollemi::{Durability, Map, Overlay, Visit};

/// A map, and the buffered edits of a transaction.
pub struct Pending {
    map: Map,
    /// The same map, for writes that are durable whatever the sync policy is.
    durable: Map,
    index: Arc<dyn Index>,
    /// Whether edits are buffered. Changes only while no other command runs.
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

    /// Returns the index itself, without the edits that a transaction has buffered.
    pub fn index(&self) -> &dyn Index {
        &*self.index
    }

    /// Returns the map itself, without the edits that a transaction has buffered.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Returns whether a transaction runs.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.on.load(Ordering::Relaxed)
    }

    /// Begins or ends the buffering of edits.
    pub fn keep_back(&self, on: bool) {
        self.on.store(on, Ordering::Relaxed);
    }

    // Each change is one insert, so the overlay is valid also after a panic.
    fn overlay(&self) -> MutexGuard<'_, Overlay> {
        self.overlay.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `show` with a key's value.
    pub fn read<T>(&self, key: &[u8], show: impl FnOnce(Option<&[u8]>) -> T) -> Result<T, Error> {
        if self.is_on() {
            return self.overlay().read(&self.map, key, show);
        }
        let guard = heap::pin();
        Ok(show(self.index.get(key, &guard)?.as_deref()))
    }

    /// Carries out an edit, or buffers it.
    pub fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        match self.is_on() {
            true => self.overlay().edit(&self.map, key, edit),
            false => self.index.write(key, edit),
        }
    }

    /// Carries out an edit that is durable when this returns or, in a turn, before the turn's later answers, also if
    /// other writes are eventual; or buffers the edit.
    pub fn write_durably(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        match self.is_on() {
            true => self.overlay().edit(&self.map, key, edit),
            false => self.write_at_once(key, edit),
        }
    }

    /// Does the same as [`write_durably`](Pending::write_durably), but never buffers.
    pub fn write_at_once(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        self.durable.edit(key, edit).map_err(refused)
    }

    /// Waits until all writes of this thread's turn are durable.
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
