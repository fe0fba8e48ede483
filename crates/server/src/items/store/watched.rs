//! The optimistic check of `WATCH`: whether a key is unchanged since a client began to watch it.
//!
//! I1 Beginning to watch a key takes a unique, inside an edit that keeps a live item and removes a dead one: every
//!    later item of the key has a larger unique.
//! I2 A removal notes the item's unique in the slot of the key's hash; several keys share a slot. A removal in a
//!    transaction does so when the transaction commits.
//!
//! So a key that had an item is unchanged if it still has that item, and it is alive. A key that had none is unchanged
//! if it has none, not even a dead one, and no item with a larger unique was removed since. Since keys share slots, a
//! key that had no item may seem changed when an item of another key is removed: `EXEC` then fails needlessly. A change
//! is never missed.

use super::{Decision, Failure, ItemStore};
use crate::items::item::Item;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Slots for the uniques of removed items.
const SLOTS: usize = 1 << 12;

/// The largest unique of the removed items since the start, by the hash of their keys.
pub struct Removed {
    slots: Vec<AtomicU64>,
    /// The running transaction's removals: for each slot the largest unique.
    pending: Mutex<BTreeMap<usize, u64>>,
}

impl Removed {
    pub fn new() -> Removed {
        Removed {
            slots: (0..SLOTS).map(|_| AtomicU64::new(0)).collect(),
            pending: Mutex::default(),
        }
    }

    fn note(&self, slot: usize, unique: u64) {
        self.slots[slot].fetch_max(unique, Ordering::Release);
    }

    fn largest(&self, key: &[u8]) -> u64 {
        self.slots[slot(key)].load(Ordering::Acquire)
    }

    /// Ends the transaction: records its removals if it was committed, else forgets them.
    pub fn end(&self, committed: bool) {
        let pending = std::mem::take(&mut *self.pending());
        if committed {
            pending
                .into_iter()
                .for_each(|(slot, unique)| self.note(slot, unique));
        }
    }

    fn pending(&self) -> MutexGuard<'_, BTreeMap<usize, u64>> {
        // Each change is one insert or one removal of all, so the map is valid also after a panic.
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn slot(key: &[u8]) -> usize {
    crate::items::access::hash(key) as usize % SLOTS
}

/// What `WATCH` remembers of a key.
#[derive(Clone, Copy, Debug)]
pub struct WatchedItem {
    /// The unique of its live item; `None` if it had none.
    item: Option<u64>,
    /// The unique taken when the client began to watch; items stored later have larger ones.
    since: u64,
}

impl ItemStore {
    /// Notes the removal of the key's item with this unique, at once or when the running transaction commits.
    pub(super) fn note_removal(&self, key: &[u8], unique: u64) {
        if self.in_transaction() {
            let mut pending = self.removed.pending();
            let largest = pending.entry(slot(key)).or_default();
            *largest = unique.max(*largest);
        } else {
            self.removed.note(slot(key), unique);
        }
    }

    /// Begins to watch a key, in no transaction.
    pub fn watch_key(&self, key: &[u8], now: u64) -> Result<WatchedItem, Failure> {
        self.change(key, now, &mut Vec::new(), |item, since, _| {
            let item = item.map(|item| item.header.unique);
            Decision::Keep(WatchedItem { item, since })
        })
    }

    /// Returns whether the key is unchanged. The caller has exclusive use of the databases.
    pub fn is_unchanged(&self, key: &[u8], watched: WatchedItem, now: u64) -> Result<bool, Failure> {
        let mut flushed = false;
        let same = self.items.read(key, |value| {
            let Some(value) = value else {
                return Ok(watched.item.is_none() && self.removed.largest(key) < watched.since);
            };
            let Item { header, .. } = Item::read(value).ok_or(Failure::Foreign)?;
            flushed = self.is_flushed(&header);
            Ok(watched.item == Some(header.unique) && !self.is_dead(&header, now))
        })?;
        if flushed {
            self.see_flush()?;
        }
        same
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{NOW, open, set};
    use super::*;
    use index::model::ModelIndex;

    /// Creates a store without items, and watches the key in it.
    fn absent() -> (ItemStore, WatchedItem) {
        let store = open(&ModelIndex::new(), NOW);
        let watched = store.watch_key(b"key", NOW).expect("the model does not fail");
        assert!(is_unchanged(&store, watched, NOW));
        (store, watched)
    }

    fn is_unchanged(store: &ItemStore, watched: WatchedItem, now: u64) -> bool {
        store
            .is_unchanged(b"key", watched, now)
            .expect("the model does not fail")
    }

    fn flush(store: &ItemStore) {
        store.flush(None).expect("the model does not fail");
    }

    /// Sweeps the dead items. Returns how many there were.
    fn sweep(store: &ItemStore, now: u64) -> usize {
        let swept = store.sweep(&mut None, 100, now);
        swept.expect("the model does not fail").removed
    }

    /// An absent key that had an item meanwhile has changed, whatever became of the item.
    #[test]
    fn an_item_created_and_removed_is_a_change() {
        let (store, watched) = absent();
        set(&store, "key", "x", 0);
        assert!(!is_unchanged(&store, watched, NOW));
        store.delete(b"key", NOW).expect("the model does not fail");
        assert!(!is_unchanged(&store, watched, NOW), "deleted");

        let (store, watched) = absent();
        set(&store, "key", "x", 0);
        flush(&store);
        assert!(!is_unchanged(&store, watched, NOW), "flushed");
        assert_eq!(sweep(&store, NOW), 1);
        assert!(!is_unchanged(&store, watched, NOW), "flushed and swept");

        let (store, watched) = absent();
        set(&store, "key", "x", NOW + 1);
        assert!(!is_unchanged(&store, watched, NOW + 1), "expired");
        assert_eq!(sweep(&store, NOW + 1), 1);
        assert!(!is_unchanged(&store, watched, NOW + 1), "expired and swept");

        let (store, watched) = absent();
        set(&store, "key", "x", 0);
        let (_, gone) = store
            .evict(&mut Vec::new(), 100, true, NOW)
            .expect("the model does not fail");
        assert_eq!(gone.evicted, 1);
        assert!(!is_unchanged(&store, watched, NOW), "evicted");
    }

    /// An item that was dead when the client began to watch counts as absent: its removal, or a flush, is no change.
    #[test]
    fn a_key_that_was_dead_stays_absent() {
        let (store, _) = absent();
        set(&store, "key", "x", NOW + 1);
        set(&store, "other", "x", NOW + 1);
        let watched = store.watch_key(b"key", NOW + 1).expect("the model does not fail");
        assert!(is_unchanged(&store, watched, NOW + 1));
        assert_eq!(sweep(&store, NOW + 1), 1);
        flush(&store);
        assert!(is_unchanged(&store, watched, NOW + 1));
    }

    /// A live item is unchanged until it is replaced (even by an equal item), is flushed, or expires.
    #[test]
    fn an_item_is_unchanged_until_replaced_flushed_or_expired() {
        let (store, _) = absent();
        let watch = |now| store.watch_key(b"key", now).expect("the model does not fail");
        set(&store, "key", "x", 0);
        let watched = watch(NOW);
        assert!(is_unchanged(&store, watched, NOW));
        set(&store, "key", "x", NOW + 2);
        assert!(!is_unchanged(&store, watched, NOW));
        let watched = watch(NOW);
        assert!(is_unchanged(&store, watched, NOW + 1));
        assert!(!is_unchanged(&store, watched, NOW + 2));
        flush(&store);
        assert!(!is_unchanged(&store, watched, NOW));
    }
}
