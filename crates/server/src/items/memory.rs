//! The memory limit of the items, and eviction.
//!
//! An item takes what its key and its value take, and [`PLACE`] bytes for its place in the index. A write says
//! beforehand by how much items may grow by it ([`Memory::reserve`]), and is carried out when that fits beside all that
//! is there.
//!
//! I1 While the limit is not lowered and all items are counted, `used + reserved` is at most the limit whenever a write
//!    has been admitted, and no write takes more than it has reserved: so `used` never exceeds the limit.
//! I2 `reserved` alone never exceeds it either: a writer that would reserve beyond it waits for writes that are under
//!    way, so that no two of them need more room between them than there can be. These never wait for a writer that
//!    reserves.
//!
//! Eviction: a clock hand goes round all items in key order, [`STEP`] at a time. It removes the dead ones of these, and
//! of the others the quarter that was asked for least (`frequency`); of equals, those stored first. Where live items
//! may not be evicted, a write that finds no room has the hand look at [`LOOK`] items; the next write continues from
//! there.

#[cfg(doc)]
use crate::items::item::PLACE;
use crate::items::store::{Failure, Store, Usage};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Items that the hand looks at in one step.
const STEP: usize = 32;

/// Items that the hand looks at for one write where live ones may not go: some tens of microseconds.
const LOOK: usize = 16 * STEP;

/// The limit, and what is needed to keep it.
#[derive(Debug)]
pub struct Memory {
    /// In bytes; 0: none.
    limit: AtomicU64,
    /// Whether items go when there are too many; or else writes are refused.
    evicts: AtomicBool,
    usage: Arc<Usage>,
    /// By how much those writes may let items grow that are under way.
    reserved: AtomicU64,
    evicted: AtomicU64,
    refused: AtomicU64,
    /// Held while items are removed, so that a write that finds nothing to remove is not refused beside a removal that
    /// makes room for it. A removal that stalls has other writes without room wait; those with room go on.
    hand: Mutex<Hand>,
}

/// Where the hand is: behind this key of this database.
#[derive(Debug, Default)]
struct Hand {
    database: usize,
    key: Vec<u8>,
}

/// Stores, with the numbers of their databases.
pub type Stores = Vec<(usize, Arc<Store>)>;

/// Room for a write, until it is dropped.
#[derive(Debug)]
pub struct Room<'m> {
    memory: &'m Memory,
    bytes: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.reserved.fetch_sub(self.bytes, Ordering::SeqCst);
        }
    }
}

impl Memory {
    /// The items may take this many bytes in all, or any number (0); whether items go when there are too many.
    pub fn new(limit: u64, evicts: bool) -> Memory {
        let memory = Memory {
            limit: AtomicU64::new(0),
            evicts: AtomicBool::new(evicts),
            usage: Arc::default(),
            reserved: AtomicU64::new(0),
            evicted: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            hand: Mutex::default(),
        };
        memory.set_limit(limit);
        memory
    }

    /// Takes the limit over, and whether items go.
    pub fn take_over(&self, limit: u64, evicts: bool) {
        self.set_limit(limit);
        self.set_evicts(evicts);
    }

    /// What the stores count into.
    pub fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    /// The limit in bytes; 0: none.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit. Where more is there, the next write that needs room makes it.
    pub fn set_limit(&self, bytes: u64) {
        if bytes > 0 {
            self.usage.estimate_for(bytes);
        }
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Whether items go when there are too many.
    pub fn evicts(&self) -> bool {
        self.evicts.load(Ordering::Relaxed)
    }

    /// Changes whether items go when there are too many.
    pub fn set_evicts(&self, evicts: bool) {
        self.evicts.store(evicts, Ordering::Relaxed);
    }

    /// Bytes that the items take, as far as they are counted.
    pub fn used(&self) -> u64 {
        self.usage.bytes()
    }

    /// Items that had to go.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Writes refused for want of room.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Begins to count anew what had to go and what was refused.
    pub fn reset_counts(&self) {
        self.evicted.store(0, Ordering::Relaxed);
        self.refused.store(0, Ordering::Relaxed);
    }

    /// Makes room for items to grow by this many bytes, or says that there is none; `stores` are those of all
    /// databases, with their numbers. The caller may write, holds back no edits, and has no other room.
    pub fn reserve(&self, stores: &dyn Fn() -> Stores, bytes: u64, now: u64) -> Result<Room<'_>, Failure> {
        let limit = self.limit();
        if limit == 0 || bytes == 0 {
            return Ok(Room {
                memory: self,
                bytes: 0,
            });
        }
        if bytes > limit {
            return Err(self.refuse());
        }
        while !self.take(bytes, limit) {
            std::thread::yield_now();
        }
        let room = Room { memory: self, bytes };
        while self.is_full(limit) {
            if !self.make_room(stores, limit, now)? {
                return Err(self.refuse());
            }
        }
        Ok(room)
    }

    fn refuse(&self) -> Failure {
        self.refused.fetch_add(1, Ordering::Relaxed);
        Failure::NoRoom
    }

    /// Reserves this many bytes, if with all others that are reserved they are within the limit.
    fn take(&self, bytes: u64, limit: u64) -> bool {
        let within = |reserved: u64| reserved.checked_add(bytes).filter(|&sum| sum <= limit);
        self.reserved
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, within)
            .is_ok()
    }

    fn is_full(&self, limit: u64) -> bool {
        self.used().saturating_add(self.reserved.load(Ordering::SeqCst)) > limit
    }

    /// Moves the clock hand until it has found an item to evict. `false` if there are no items, or, where live items
    /// may not be evicted, if none of those it passes is dead.
    fn make_room(&self, stores: &dyn Fn() -> Stores, limit: u64, now: u64) -> Result<bool, Failure> {
        let evicts = self.evicts();
        let mut looks = if evicts { usize::MAX } else { LOOK };
        // What a panic leaves is a place like any other.
        let mut hand = self.hand.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_full(limit) {
            return Ok(true); // Another thread was faster.
        }
        let stores = stores();
        // Once more than there are databases, as the hand may have begun in the middle of one.
        for _ in 0..=stores.len() {
            let place = stores.iter().position(|&(number, _)| number >= hand.database);
            let (number, store) = &stores[place.unwrap_or(0)];
            if *number != hand.database {
                *hand = Hand {
                    database: *number,
                    key: Vec::new(),
                };
            }
            while looks > 0 {
                looks = looks.saturating_sub(STEP);
                let (seen, gone) = store.evict(&mut hand.key, STEP, evicts, now)?;
                self.evicted.fetch_add(gone.evicted, Ordering::Relaxed);
                if seen < STEP {
                    hand.database = number + 1;
                }
                if gone.evicted + gone.dead > 0 {
                    return Ok(true);
                }
                if seen < STEP {
                    break;
                }
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests;
