//! What a transaction has changed: seen by its own reads, and by nobody else before it is committed.

use crate::Map;
use crate::commit::KeyState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The changed keys of a map, and their values; `None`: removed.
pub(super) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

/// The changed keys, by map.
#[derive(Debug, Default)]
pub(super) struct Overlay(BTreeMap<String, (Map, Changes)>);

impl Overlay {
    /// The changes of a map, if there are any.
    pub fn of(&self, map: &Map) -> Option<&Changes> {
        self.0.get(map.name()).map(|(_, changes)| changes)
    }

    /// What a key was changed to, if it was.
    pub fn get(&self, map: &Map, key: &[u8]) -> Option<&Option<Vec<u8>>> {
        self.of(map)?.get(key)
    }

    /// Changes a key.
    pub fn set(&mut self, map: &Map, key: &[u8], value: Option<&[u8]>) {
        let value = value.map(<[u8]>::to_vec);
        if let Some((_, changes)) = self.0.get_mut(map.name()) {
            changes.insert(key.to_vec(), value);
            return;
        }
        let changes = Changes::from([(key.to_vec(), value)]);
        self.0.insert(map.name().to_owned(), (map.clone(), changes));
    }

    /// How many keys are changed.
    pub fn len(&self) -> usize {
        self.0.values().map(|(_, changes)| changes.len()).sum()
    }

    /// The changes, as a commit makes them.
    pub fn into_changes(self) -> Arc<[KeyState]> {
        let maps = self.0.into_values();
        maps.flat_map(|(map, changes)| {
            changes.into_iter().map(move |(key, value)| KeyState {
                map: map.clone(),
                key,
                value,
            })
        })
        .collect()
    }
}
