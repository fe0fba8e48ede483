//! A test double: an index in a damaged pool.

use crate::write::gate::{Closed, Gate};
use crate::write::journal::{Durability, Journal};
use crate::write::map_index::{MapIndex, Plan, Recording};
use crate::write::stripes::StripeId;
use crate::write::traffic::Traffic;
use crate::write::watch::Watches;
use crate::{Error, IndexKind, Map};
use index::{Action, Direction, Edit, Faults, Guard, Index, Value, Visit};
use pmem::Hardware;
use std::ops::Bound;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Maximum number of scans; a walk that needs more counts as endless.
const MAX_SCANS: usize = 100;

/// An index of the given keys, all with the same value.
#[derive(Default)]
pub struct Damaged {
    keys: Vec<&'static [u8]>,
    value: &'static [u8],
    /// Whether scans fail after the last key. Otherwise they return the keys over and over, wherever they start.
    torn: bool,
    /// The keys removed so far.
    pub removed: Arc<Mutex<Vec<Vec<u8>>>>,
    scans: AtomicUsize,
    traffic: Arc<Traffic>,
}

impl Damaged {
    /// Returns an index of two keys, out of order.
    pub fn endless() -> Damaged {
        Damaged {
            keys: vec![b"b", b"a"],
            ..Damaged::default()
        }
    }

    /// Returns an index of three keys whose scans fail after the last one.
    pub fn torn(value: &'static [u8]) -> Damaged {
        Damaged {
            keys: vec![b"a", b"b", b"c"],
            value,
            torn: true,
            ..Damaged::default()
        }
    }

    pub fn map(self) -> Map {
        Map::new(IndexKind::default(), Arc::new(self), None)
    }
}

impl Index for Damaged {
    fn get<'g>(&'g self, _: &[u8], _: &'g Guard) -> Result<Option<Value<'g>>, index::Error> {
        Ok(None)
    }
    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, index::Error> {
        let action = edit.decide(Some(self.value));
        if action == Action::Remove {
            self.removed.lock().expect("no panic").push(key.to_vec());
        }
        Ok(action)
    }
    fn scan<'g>(
        &'g self,
        lower: Bound<&[u8]>,
        _: Bound<&[u8]>,
        _: Direction,
        _: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), index::Error> {
        let scans = self.scans.fetch_add(1, Ordering::Relaxed);
        assert!(scans < MAX_SCANS, "the walk does not end");
        let value = Value::Bytes(self.value);
        if !self.torn {
            let again = self.keys.iter().cycle();
            let _ = again.map(|key| visit(key, value)).find(|flow| flow.is_break());
            return Ok(());
        }
        for key in &self.keys {
            let is_behind = match lower {
                Bound::Excluded(lower) => *key > lower,
                _ => true,
            };
            if is_behind && visit(key, value).is_break() {
                return Ok(());
            }
        }
        let what = "a link";
        Err(heap::Error::Damaged { what, offset: 0 }.into())
    }
    fn check(&self) -> Result<Faults, index::Error> {
        Ok(Faults::default())
    }
}

impl MapIndex for Damaged {
    fn name(&self) -> &str {
        "damaged"
    }
    fn write_durably(
        &self,
        key: &[u8],
        edit: &mut dyn Edit,
        _: Option<Durability>,
    ) -> Result<Action, index::Error> {
        self.write(key, edit)
    }
    fn write_held(&self, key: &[u8], edit: &mut dyn Edit, _: Recording) -> Result<Action, index::Error> {
        self.write(key, edit)
    }
    fn bare(&self) -> &dyn Index {
        self
    }
    fn stripe_of(&self, _: &[u8]) -> StripeId {
        0
    }
    fn close_gate(&self) -> Result<Closed<'_>, index::Error> {
        self.traffic.gate.close(&Hardware::detect())
    }
    fn gate(&self) -> &Gate {
        &self.traffic.gate
    }
    fn journal(&self) -> Option<&Arc<Journal>> {
        self.traffic.journal.get()
    }
    fn watches(&self) -> &Arc<Watches> {
        &self.traffic.watches
    }
    fn commit(&self, _: &mut dyn FnMut() -> Result<Plan, Error>) -> Result<(), Error> {
        Err(index::Error::ReadOnly.into())
    }
}
