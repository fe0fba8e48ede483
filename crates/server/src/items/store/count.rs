//! The number of items, including expired ones that no command and no sweep has removed yet.
//!
//! A pool does not record the number of keys in a map. So after the start the server counts the keys once, in order and
//! in steps between which writers run, and edits update the number.
//!
//! Items that a flush has dropped are counted separately: their keys exist and take bytes until a command or the sweep
//! removes or replaces them.
//!
//! I1 An edit of a key up to the cursor, in the order of the index, updates the number. An edit of a key ahead of the
//!    cursor does not, since the count has not reached that key.
//! I2 A step of the count, and a flush, exclude edits, so that each edit comes wholly before or after it. Edits do not
//!    exclude each other, except that later edits wait, too, while a step or a flush waits for an edit under way.

use super::pending::Pending;
use super::usage::Usage;
use crate::items::item::PLACE;
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard};
use index::{Action, Edit, Error, Order};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, PoisonError};
use wollemi::Map;

/// A count of all keys but the first, which is the server's own record.
#[derive(Debug)]
pub struct Count {
    /// Briefly negative when a removal is counted before the put that preceded it.
    items: AtomicI64,
    /// Items that a flush has dropped and that no edit has removed or replaced since.
    dropped: AtomicI64,
    /// Bytes of both, which are part of `usage`.
    bytes: AtomicI64,
    usage: Arc<Usage>,
    /// The order in which the keys are counted.
    order: Order,
    through: AtomicBool,
    /// The last key counted; empty before the first step and after the last.
    cursor: ShardedLock<Vec<u8>>,
}

impl Count {
    /// Creates a count of an index with this order, in which nothing is counted yet. Its bytes are part of `usage`.
    pub fn new(usage: Arc<Usage>, order: Order) -> Count {
        Count {
            items: AtomicI64::new(0),
            dropped: AtomicI64::new(0),
            bytes: AtomicI64::new(0),
            usage,
            order,
            through: AtomicBool::new(false),
            cursor: ShardedLock::default(),
        }
    }

    fn add_bytes(&self, bytes: i64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.usage.add(bytes);
    }

    /// Returns the number of items, and whether it is exact. It is not while keys are still to be counted.
    pub fn get(&self) -> (u64, bool) {
        let exact = self.through.load(Ordering::Acquire);
        (self.items.load(Ordering::Relaxed).max(0) as u64, exact)
    }

    /// Returns the number of keys, those of dropped items included, as far as they are counted.
    pub fn keys(&self) -> u64 {
        let keys = self.items.load(Ordering::Relaxed) + self.dropped.load(Ordering::Relaxed);
        keys.max(0) as u64
    }

    /// Counts the next keys, at most `limit`. Returns whether all are counted.
    pub fn step(&self, map: &Map, limit: usize, is_flushed: &dyn Fn(&[u8]) -> bool) -> Result<bool, Error> {
        // After a panic the cursor still fits the number: both change after the scan.
        let mut cursor = self.cursor.write().unwrap_or_else(PoisonError::into_inner);
        if self.through.load(Ordering::Acquire) {
            return Ok(true);
        }
        let (mut counted, mut bytes) = (0, 0);
        let walked = map.walk(Bound::Excluded(&cursor), limit, |key, value| {
            counted += i64::from(!is_flushed(value));
            bytes += size(key, value.len());
        })?;
        self.items.fetch_add(counted, Ordering::Relaxed);
        self.dropped
            .fetch_add(walked.seen as i64 - counted, Ordering::Relaxed);
        self.add_bytes(bytes);
        let through = walked.last.is_none();
        *cursor = walked.last.unwrap_or_default();
        if through {
            self.through.store(true, Ordering::Release);
        }
        Ok(through)
    }

    /// Carries out a flush, after which there are no items. Returns how many it has dropped, as far as they were
    /// counted.
    pub fn flush(&self, write: impl FnOnce() -> Result<(), Error>) -> Result<u64, Error> {
        let _cursor = self.cursor.write().unwrap_or_else(PoisonError::into_inner);
        write()?;
        let dropped = self.items.swap(0, Ordering::Relaxed);
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
        Ok(dropped.max(0) as u64)
    }

    /// Returns a copy of the count. The caller excludes edits and steps.
    pub fn save(&self) -> Saved {
        Saved {
            items: self.items.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            through: self.through.load(Ordering::Acquire),
            cursor: self.cursor.read().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Restores a copy of the count. The caller excludes edits and steps.
    pub fn restore(&self, saved: Saved) {
        let mut cursor = self.cursor.write().unwrap_or_else(PoisonError::into_inner);
        self.items.store(saved.items, Ordering::Relaxed);
        self.dropped.store(saved.dropped, Ordering::Relaxed);
        self.add_bytes(saved.bytes - self.bytes.load(Ordering::Relaxed));
        self.through.store(saved.through, Ordering::Release);
        *cursor = saved.cursor;
    }

    /// Carries out an edit of an item.
    pub fn edit(&self, items: &Pending, key: &[u8], edit: &mut dyn ItemEdit) -> Result<Action, Error> {
        let counting = self.hold();
        let action = items.write(key, edit)?;
        let put = match action {
            Action::Put => edit.value().len(),
            Action::Keep | Action::Remove => 0,
        };
        counting.note(key, edit.found(), action, put);
        Ok(action)
    }

    /// Excludes steps of the count, and flushes, until the guard is dropped.
    pub fn hold(&self) -> Counting<'_> {
        Counting {
            count: self,
            cursor: self.cursor.read().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// Excludes steps of the count and flushes, and counts edits.
pub struct Counting<'c> {
    count: &'c Count,
    cursor: ShardedLockReadGuard<'c, Vec<u8>>,
}

impl Counting<'_> {
    /// Counts an edit: what it found, what it did, and the length of the value that it put.
    pub fn note(&self, key: &[u8], found: Found, action: Action, put: usize) {
        let Found { present, length } = found;
        let is_ahead = || self.count.order.compare(key, &self.cursor).is_gt();
        if !self.count.through.load(Ordering::Acquire) && is_ahead() {
            return;
        }
        let before = length.map_or(0, |length| size(key, length));
        let (items, bytes) = match action {
            Action::Keep => return,
            Action::Put => (i64::from(!present), size(key, put) - before),
            Action::Remove => (-i64::from(present), -before),
        };
        if length.is_some() && !present {
            self.count.dropped.fetch_sub(1, Ordering::Relaxed);
        }
        if items != 0 {
            self.count.items.fetch_add(items, Ordering::Relaxed);
        }
        if bytes != 0 {
            self.count.add_bytes(bytes);
        }
    }
}

/// A copy of a count.
pub struct Saved {
    items: i64,
    dropped: i64,
    bytes: i64,
    through: bool,
    cursor: Vec<u8>,
}

/// What an edit found under its key when it last decided.
#[derive(Clone, Copy, Debug, Default)]
pub struct Found {
    /// Whether there was a value, other than an item that a flush had dropped.
    pub present: bool,
    /// The length of the value.
    pub length: Option<usize>,
}

/// An edit of a client's key, which tells the count what it has found there.
pub trait ItemEdit: Edit {
    /// Returns what the last decision found.
    fn found(&self) -> Found;
}

/// Returns the bytes that an item takes.
fn size(key: &[u8], value: usize) -> i64 {
    (key.len() + value) as i64 + PLACE as i64
}
