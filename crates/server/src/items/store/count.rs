//! The number of items, including dead ones that no command and no sweep has met yet.
//!
//! A pool does not say how many keys a map holds. So the keys are counted once, in order and a step at a time, beside
//! the writers, and edits keep the number up.
//!
//! Items that a flush has dropped are counted apart: their keys are there and take bytes until a command or the sweep
//! meets them.
//!
//! I1 An edit of a key up to the cursor, in the order of the index, changes the number; one of a key behind it does
//!    not, since the count is yet to come there.
//! I2 A step of the count, and a flush, exclude edits, so that each edit comes wholly before or after it. Edits do not
//!    exclude each other, except that a step or a flush that waits for an edit under way has the later edits wait, too.

use super::pending::Pending;
use super::usage::Usage;
use crate::items::item::PLACE;
use crossbeam_utils::sync::{ShardedLock, ShardedLockReadGuard};
use index::{Action, Edit, Error, Order};
use std::ops::Bound;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, PoisonError};
use wollemi::Map;

/// A count of the keys behind the first, which is the server's own record.
#[derive(Debug)]
pub struct Count {
    /// Below zero for a moment where the edit that follows another is the first to say so.
    items: AtomicI64,
    /// Items that a flush has dropped and that no edit has met since.
    dropped: AtomicI64,
    /// Bytes of both, which are part of `usage`.
    bytes: AtomicI64,
    usage: Arc<Usage>,
    /// The order in which the keys are counted.
    order: Order,
    through: AtomicBool,
    /// The last key counted.
    cursor: ShardedLock<Vec<u8>>,
}

impl Count {
    /// Nothing counted yet, of what all databases' items take, in an index of this order.
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

    /// The number, and whether it is exact or will still grow by keys not counted yet.
    pub fn get(&self) -> (u64, bool) {
        let exact = self.through.load(Ordering::Acquire);
        (self.items.load(Ordering::Relaxed).max(0) as u64, exact)
    }

    /// How many keys there are, those of dropped items included, as far as they are counted.
    pub fn keys(&self) -> u64 {
        let keys = self.items.load(Ordering::Relaxed) + self.dropped.load(Ordering::Relaxed);
        keys.max(0) as u64
    }

    /// Counts the next keys, at most `limit`; whether it is through.
    pub fn step(&self, map: &Map, limit: usize, is_flushed: &dyn Fn(&[u8]) -> bool) -> Result<bool, Error> {
        // What a panic leaves is a cursor that fits the number: both change after the scan.
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

    /// Carries out a flush: from then on there are no items.
    pub fn restart(&self, flush: impl FnOnce() -> Result<(), Error>) -> Result<(), Error> {
        let _cursor = self.cursor.write().unwrap_or_else(PoisonError::into_inner);
        flush()?;
        let dropped = self.items.swap(0, Ordering::Relaxed);
        self.dropped.fetch_add(dropped, Ordering::Relaxed);
        Ok(())
    }

    /// The count as it is. The caller keeps edits away.
    pub fn save(&self) -> Saved {
        Saved {
            items: self.items.load(Ordering::Relaxed),
            dropped: self.dropped.load(Ordering::Relaxed),
            bytes: self.bytes.load(Ordering::Relaxed),
            through: self.through.load(Ordering::Acquire),
            cursor: self.cursor.read().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }

    /// Makes it what it was. The caller keeps edits away.
    pub fn restore(&self, saved: Saved) {
        let mut cursor = self.cursor.write().unwrap_or_else(PoisonError::into_inner);
        self.items.store(saved.items, Ordering::Relaxed);
        self.dropped.store(saved.dropped, Ordering::Relaxed);
        self.add_bytes(saved.bytes - self.bytes.load(Ordering::Relaxed));
        self.through.store(saved.through, Ordering::Release);
        *cursor = saved.cursor;
    }

    /// Carries out an edit of an item.
    pub fn edit(
        &self,
        items: &Pending,
        key: &[u8],
        edit: &mut dyn Edit,
        is_flushed: &dyn Fn(&[u8]) -> bool,
    ) -> Result<Action, Error> {
        let counting = self.hold();
        let mut watched = Watched {
            edit,
            is_flushed,
            present: false,
            length: None,
        };
        let action = items.write(key, &mut watched)?;
        let before = (watched.present, watched.length);
        counting.note(
            key,
            before,
            action,
            match action {
                Action::Put => watched.value().len(),
                Action::Keep | Action::Remove => 0,
            },
        );
        Ok(action)
    }

    /// Keeps a step of the count, and a flush, from coming between edits.
    pub fn hold(&self) -> Counting<'_> {
        Counting {
            count: self,
            cursor: self.cursor.read().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// A count that does not go on.
pub struct Counting<'c> {
    count: &'c Count,
    cursor: ShardedLockReadGuard<'c, Vec<u8>>,
}

impl Counting<'_> {
    /// Notes an edit: whether an item was there that no flush has dropped, how long what was there was, and how long
    /// what was put is.
    pub fn note(&self, key: &[u8], (present, length): (bool, Option<usize>), action: Action, put: usize) {
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

/// A count at one moment.
pub struct Saved {
    items: i64,
    dropped: i64,
    bytes: i64,
    through: bool,
    cursor: Vec<u8>,
}

/// An edit, and whether an item that is not flushed was there when it decided.
struct Watched<'e> {
    edit: &'e mut dyn Edit,
    is_flushed: &'e dyn Fn(&[u8]) -> bool,
    present: bool,
    /// The length of what was there.
    length: Option<usize>,
}

/// Bytes that an item counts for.
fn size(key: &[u8], value: usize) -> i64 {
    (key.len() + value) as i64 + PLACE as i64
}

impl Edit for Watched<'_> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.present = current.is_some_and(|value| !(self.is_flushed)(value));
        self.length = current.map(<[u8]>::len);
        self.edit.decide(current)
    }
    fn value(&self) -> &[u8] {
        self.edit.value()
    }
}
