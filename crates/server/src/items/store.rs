//! The items in a map, over any index, and the operations on them.
//!
//! I1 Every change of an item is one edit of its key: atomic, and durable when the call returns, unless the sync policy
//!    or the connection's turn defers that, or a transaction buffers the edit.
//! I2 A dead item (expired, or older than a `flush_all`) is absent for every command. A command that meets it may
//!    remove it, by an edit that looks again. A flush becomes visible like any other change: a reader that reports an
//!    item absent because of a flush has first read the flush through the index, so its answer waits until the flush is
//!    durable (`reads`).
//! I3 A transaction buffers edits until it commits. If it does not commit, the state beside the index (the record, the
//!    count, the noted removals and their number) becomes what it was before. Uniques that the transaction reserves
//!    stay reserved in any case.
//! I4 An edit that may store an item takes a unique under the lock on the key: of two items of one key the later has
//!    the larger unique.
//!
//! Here: the store, and an edit of one item (`edit`). Elsewhere: memcached's classic commands (`classic`), storing
//! items together (`puts`), reading (`reads`), removing (`removal`, `evict`), uniques and flushes (`recorded`),
//! transactions (`transact`), whether a key has changed (`watched`), the numbers of items and bytes and the frequency
//! of accesses (`count`, `usage`), and the map with a transaction's buffered edits (`pending`). Not here: the protocols
//! (`proto`, `commands`), the layouts (`item`, `record`).

pub mod classic;
mod count;
mod edit;
mod evict;
mod pending;
mod puts;
mod reads;
mod recorded;
mod removal;
#[cfg(test)]
pub mod tests;
mod transact;
mod usage;
mod watched;

use crate::Error;
use crate::items::item::{Header, Item};
use crate::items::record::{self, StoreRecord};
use count::{Count, Found, ItemEdit};
use edit::StoreEdit;
use index::{Action, Direction, Guard, Index};
use pending::Pending;
pub use recorded::ENOUGH;
use std::ops::{Bound, ControlFlow};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
pub use transact::Before;
pub use usage::Usage;
use watched::Removed;
pub use watched::WatchedItem;
use wollemi::{Map, Overlay};

/// Maximum number of keys that are looked up, or stored, together.
pub const BATCH: usize = 64;

/// The outcome of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Done.
    Done,
    /// Done; the number that the item now holds.
    Number(u64),
    /// The condition of `add`, `replace`, `append` or `prepend` does not hold, or the value would be too large.
    NotStored,
    /// The item has changed since the client saw its unique.
    Exists,
    /// No such item.
    NotFound,
    /// The value is no number.
    NotNumber,
}

/// The decision of an edit, with its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<T> {
    /// Leave a live item as it is, and remove a dead one.
    Keep(T),
    /// Put the value that was filled in.
    Put(T),
    /// Remove the item.
    Remove(T),
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The index failed.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// The key's value has no item header.
    #[error("the key holds a value that no Wollemi server has written")]
    Foreign,
    /// The items have reached the memory limit.
    #[error("out of memory storing object")]
    NoRoom,
}

/// The items in an index.
pub struct ItemStore {
    items: Pending,
    /// Maximum length of a memcached item's data, in bytes. Changes when the settings do.
    largest: Arc<AtomicUsize>,
    /// The next unique, and the one of the first edit.
    next: AtomicU64,
    first: u64,
    /// Items that clients have removed without taking a unique, or that a flush has dropped.
    removals: AtomicU64,
    /// Copies from the record, for readers.
    reserved: AtomicU64,
    flushed: AtomicU64,
    flush_at: AtomicU64,
    /// The record as it is stored.
    record: Mutex<StoreRecord>,
    count: Count,
    usage: Arc<Usage>,
    removed: Removed,
}

impl ItemStore {
    /// Opens the items in `map`, which is empty or was written by a store. Their bytes count into `usage`. A running
    /// transaction buffers its changes in `overlay`.
    pub fn open(
        map: Map,
        overlay: Arc<Mutex<Overlay>>,
        largest: Arc<AtomicUsize>,
        usage: Arc<Usage>,
        now: u64,
    ) -> Result<ItemStore, Error> {
        let items = Pending::new(map, overlay);
        let record = {
            let guard = heap::pin();
            match items.index().get(record::KEY, &guard)? {
                Some(value) => StoreRecord::read(&value)?,
                None if is_empty(items.index(), &guard)? => StoreRecord::FIRST,
                None => return Err(Error::NotOurs),
            }
        };
        let next = record.reserved;
        let count = Count::new(usage.clone(), items.index().order());
        let store = ItemStore {
            items,
            largest,
            next: AtomicU64::new(next),
            first: next,
            removals: AtomicU64::new(0),
            reserved: AtomicU64::new(next),
            flushed: AtomicU64::new(record.flushed),
            flush_at: AtomicU64::new(record.flush_at),
            record: Mutex::new(record),
            count,
            usage,
            removed: Removed::new(),
        };
        store.reserve()?;
        store.tick(now)?;
        Ok(store)
    }

    /// Returns how many changes there were since the store was opened: one for each decision of an edit that may store
    /// an item, also if it changed nothing, one for each [watched key](ItemStore::watch_key), and one for each item that a client
    /// has removed or a flush has dropped. As in Redis, evictions and the removal of dead items are not counted.
    pub fn edits(&self) -> u64 {
        let uniques = self.next.load(Ordering::Relaxed) - self.first;
        uniques + self.removals.load(Ordering::Relaxed)
    }

    /// Skips uniques, so that at most this many reserved ones are left. The caller excludes edits.
    #[cfg(feature = "items")]
    pub fn pass_uniques(&self, left: u64) {
        let next = self.reserved.load(Ordering::SeqCst).saturating_sub(left);
        self.next.fetch_max(next, Ordering::SeqCst);
    }

    /// Returns the number of items, and whether it is exact. Expired items count until they are removed; items that a
    /// flush has dropped do not. The number is exact once [`count_on`](ItemStore::count_on) has returned `true`.
    pub fn items(&self) -> (u64, bool) {
        self.count.get()
    }

    /// Returns the number of keys in the store's map, those of the record and of dead items included, as far as they
    /// are counted.
    pub fn keys(&self) -> u64 {
        self.count.keys() + 1
    }

    /// Counts the next items, at most `limit`. Returns whether all are counted.
    pub fn count_on(&self, limit: usize) -> Result<bool, Failure> {
        Ok(self
            .count
            .step(self.items.map(), limit, &|value| self.holds_flushed(value))?)
    }

    /// Returns whether the item in a value is older than a flush.
    fn holds_flushed(&self, value: &[u8]) -> bool {
        Item::read(value).is_some_and(|item| self.is_flushed(&item.header))
    }

    #[inline]
    fn is_flushed(&self, header: &Header) -> bool {
        header.unique < self.flushed.load(Ordering::Acquire)
    }

    fn edit(&self, key: &[u8], edit: &mut dyn ItemEdit) -> Result<Action, index::Error> {
        self.count.edit(&self.items, key, edit)
    }

    /// Describes this value, and the item in it, for the count of items.
    #[inline]
    fn found(&self, value: Option<&[u8]>, item: Option<Item<'_>>) -> Found {
        Found {
            present: value.is_some() && !item.is_some_and(|item| self.is_flushed(&item.header)),
            length: value.map(<[u8]>::len),
        }
    }

    #[inline]
    fn is_dead(&self, header: &Header, now: u64) -> bool {
        self.is_flushed(header) || (header.expiry != 0 && header.expiry <= now)
    }

    /// Edits an item. `rule` receives the live item and a new unique, and decides; it fills a value to put into its
    /// last argument, `scratch`, which still holds the value when this returns. The index may call `rule` again, for
    /// example after a full pool was given room; the last decision counts.
    pub fn change<T>(
        &self,
        key: &[u8],
        now: u64,
        scratch: &mut Vec<u8>,
        rule: impl FnMut(Option<Item<'_>>, u64, &mut Vec<u8>) -> Decision<T>,
    ) -> Result<T, Failure> {
        self.reserve_if_few()?;
        let mut change = StoreEdit {
            store: self,
            now,
            put: scratch,
            rule,
            old: None,
            outcome: None,
            found: Found::default(),
        };
        let action = self.edit(key, &mut change)?;
        let old = change.old;
        let outcome = change.outcome.ok_or(Failure::Foreign)?;
        match (action, old) {
            (Action::Put, _) => self.usage.note(key),
            (Action::Remove, Some(unique)) => self.note_removal(key, unique),
            (Action::Remove | Action::Keep, _) => {}
        }
        Ok(outcome)
    }
}

fn is_empty(index: &dyn Index, guard: &Guard) -> Result<bool, index::Error> {
    let mut empty = true;
    index.walk(
        Bound::Unbounded,
        Bound::Unbounded,
        Direction::Forward,
        guard,
        &mut |_, _| {
            empty = false;
            ControlFlow::Break(())
        },
    )?;
    Ok(empty)
}

impl std::fmt::Debug for ItemStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ItemStore")
            .field("record", &self.lock())
            .finish_non_exhaustive()
    }
}
