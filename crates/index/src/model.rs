//! A reference index: the contract over a locked `BTreeMap`, in memory.
//!
//! For tests only: those of the conformance suite, and those of layers above for which any index will do.
//!
//! Keys and values are leaked, so that reads can borrow them indefinitely. Nothing is persistent; clones share their
//! content, so that a test can "reopen" a model.

use crate::{Action, Direction, Edit, Error, Faults, Guard, Index, MAX_KEY, MAX_VALUE, Value, Visit};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Map = BTreeMap<&'static [u8], &'static [u8]>;

/// The reference index.
#[derive(Clone, Debug, Default)]
pub struct ModelIndex {
    map: Arc<Mutex<Map>>,
}

impl ModelIndex {
    /// An empty index.
    pub fn new() -> ModelIndex {
        ModelIndex::default()
    }

    /// The bytes of all keys and values.
    pub fn used(&self) -> u64 {
        self.map()
            .iter()
            .map(|(key, value)| (key.len() + value.len()) as u64)
            .sum()
    }

    // A panicking edit has changed nothing yet, so the data behind a poisoned lock is consistent.
    fn map(&self) -> MutexGuard<'_, Map> {
        self.map.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first key between the bounds, in this direction.
    fn first(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>, direction: Direction) -> Option<ModelEntry> {
        if !ordered(lower, upper) {
            return None;
        }
        let map = self.map();
        let mut between = map.range::<[u8], _>((lower, upper));
        let entry = match direction {
            Direction::Forward => between.next(),
            Direction::Reverse => between.next_back(),
        };
        entry.map(|(&key, &value)| (key, value))
    }
}

type ModelEntry = (&'static [u8], &'static [u8]);

/// Whether `BTreeMap::range` accepts these bounds: it panics on crossed ones.
fn ordered(lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    match (lower, upper) {
        (Bound::Unbounded, _) | (_, Bound::Unbounded) => true,
        (Bound::Included(low), Bound::Included(high)) => low <= high,
        (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => {
            low < high
        }
    }
}

fn leak(bytes: &[u8]) -> &'static [u8] {
    Box::leak(Box::from(bytes))
}

fn value(bytes: &'static [u8]) -> Value<'static> {
    bytes.try_into().map_or(Value::Bytes(bytes), Value::Word)
}

fn check_key(key: &[u8]) -> Result<(), Error> {
    if key.len() > MAX_KEY {
        Err(Error::KeyTooLong(key.len()))
    } else {
        Ok(())
    }
}

fn check_bound(bound: Bound<&[u8]>) -> Result<(), Error> {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => check_key(key),
        Bound::Unbounded => Ok(()),
    }
}

impl Index for ModelIndex {
    fn get<'g>(&'g self, key: &[u8], _guard: &'g Guard) -> Result<Option<Value<'g>>, Error> {
        check_key(key)?;
        Ok(self.map().get(key).map(|bytes| value(bytes)))
    }

    fn write(&self, key: &[u8], edit: &mut dyn Edit) -> Result<Action, Error> {
        check_key(key)?;
        let mut map = self.map();
        let current = map.get(key).copied();
        match (edit.decide(current), current) {
            (Action::Put, _) => {
                let new = edit.value();
                if new.len() > MAX_VALUE {
                    return Err(Error::ValueTooLong(new.len()));
                }
                match map.get_mut(key) {
                    Some(place) => *place = leak(new),
                    None => drop(map.insert(leak(key), leak(new))),
                }
                Ok(Action::Put)
            }
            (Action::Remove, Some(_)) => {
                map.remove(key);
                Ok(Action::Remove)
            }
            (Action::Remove | Action::Keep, _) => Ok(Action::Keep),
        }
    }

    // One key at a time, so that writers get between and the visitor may use the index.
    fn scan<'g>(
        &'g self,
        mut lower: Bound<&[u8]>,
        mut upper: Bound<&[u8]>,
        direction: Direction,
        _guard: &'g Guard,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<(), Error> {
        check_bound(lower)?;
        check_bound(upper)?;
        while let Some((key, bytes)) = self.first(lower, upper, direction) {
            if visit(key, value(bytes)).is_break() {
                break;
            }
            match direction {
                Direction::Forward => lower = Bound::Excluded(key),
                Direction::Reverse => upper = Bound::Excluded(key),
            }
        }
        Ok(())
    }

    fn check(&self) -> Result<Faults, Error> {
        let keys = self.map().len() as u64;
        Ok(Faults {
            keys,
            objects: keys,
            found: Vec::new(),
        })
    }
}
