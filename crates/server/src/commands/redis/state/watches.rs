//! The keys that a connection watches, and whether they have changed.
//!
//! I1 A watched key has changed if its item's unique has, or if it was created or removed, or both (`store::watched`):
//!    every change of an item by a Redis command gives it a new unique, and no unique is given twice. memcached's
//!    `touch`, `gat` and `mg` keep the unique, and so go unnoticed.

use crate::freed;
use crate::items::store::{Failure, ItemStore, WatchedItem};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of keys that a connection may watch.
const MAX_WATCHED: usize = 1 << 16;
/// Maximum number of bytes of keys that a connection may watch.
const MAX_WATCHED_BYTES: usize = 16 << 20;

/// The watched keys of a database.
type WatchedKeys = HashMap<Vec<u8>, WatchedItem>;

/// The watched keys, as they were when the client began to watch them.
#[derive(Default)]
pub struct Watches {
    /// By the database that they are in.
    stores: Vec<(Arc<ItemStore>, WatchedKeys)>,
    count: usize,
    /// Bytes of all keys.
    bytes: usize,
}

impl Watches {
    /// Forgets all keys.
    pub fn clear(&mut self) {
        freed::note(self.bytes);
        *self = Watches::default();
    }

    /// Returns whether a key of this database is watched.
    pub fn has(&self, store: &Arc<ItemStore>, key: &[u8]) -> bool {
        let mut stores = self.stores.iter();
        stores.any(|(its, keys)| Arc::ptr_eq(its, store) && keys.contains_key(key))
    }

    /// Returns whether one more key may be watched.
    pub fn takes(&self, key: &[u8]) -> bool {
        self.count < MAX_WATCHED && self.bytes + key.len() <= MAX_WATCHED_BYTES
    }

    /// Watches a key that is not watched yet.
    pub fn add(&mut self, store: &Arc<ItemStore>, key: &[u8], watched: WatchedItem) {
        let place = self.stores.iter().position(|(its, _)| Arc::ptr_eq(its, store));
        let place = place.unwrap_or_else(|| {
            self.stores.push((store.clone(), WatchedKeys::new()));
            self.stores.len() - 1
        });
        self.stores[place].1.insert(key.to_vec(), watched);
        self.count += 1;
        self.bytes += key.len();
    }

    /// Returns whether a watched key has changed.
    pub fn have_changed(&self, now: u64) -> Result<bool, Failure> {
        for (store, keys) in &self.stores {
            for (key, watched) in keys {
                if !store.is_unchanged(key, *watched, now)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::store::tests::{NOW, open};
    use index::model::ModelIndex;

    /// Each key counts once in each database, until none is watched.
    #[test]
    fn watched_keys_are_counted() {
        let stores = [0, 1].map(|_| Arc::new(open(&ModelIndex::new(), NOW)));
        let mut watches = Watches::default();
        for _ in 0..2 {
            for (i, store) in stores.iter().enumerate() {
                for key in [&b"a"[..], b"long"] {
                    assert!(!watches.has(store, key));
                    let watched = store.watch_key(key, NOW).expect("the model does not fail");
                    watches.add(store, key, watched);
                    assert!(watches.has(store, key));
                }
                assert_eq!((watches.count, watches.bytes), (2 * (i + 1), 5 * (i + 1)));
            }
            watches.clear();
            assert_eq!((watches.count, watches.bytes), (0, 0));
        }
        watches.bytes = MAX_WATCHED_BYTES - 4;
        assert!(watches.takes(b"long") && !watches.takes(b"longer"));
        (watches.bytes, watches.count) = (0, MAX_WATCHED);
        assert!(!watches.takes(b"a"));
    }
}
