//! The memory limit of the items, and eviction.
//!
//! An item takes the bytes of its key and its value, and [`PLACE`] bytes for its place in the index. Before a write is
//! carried out, it reserves the bytes by which items may grow ([`MemoryLimit::reserve`]).
//!
//! I1 Once all items are counted, and while the limit is neither lowered nor set where there was none,
//!    `used + reserved` is at most the limit whenever a write is admitted, and no write takes more than it has
//!    reserved: so `used` never exceeds the limit.
//! I2 `reserved` alone does not exceed the limit either: a writer that would exceed it waits until other writes return
//!    their reservations, so that the reserving writes together never need more room than there can be. Admitted writes
//!    never wait for a writer that reserves.
//!
//! Eviction: a clock hand goes round all items in the order of the index, [`STEP`] at a time. It removes the dead items
//! among these, or, if there are none, the quarter that was accessed least (`frequency`); among equals, those stored
//! first. If live items may not be evicted, a write without room moves the hand over [`LOOK`] items; the next write
//! continues from there.

#[cfg(doc)]
use crate::items::item::PLACE;
use crate::items::store::{Failure, ItemStore, Usage};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Items that the hand passes in one step.
const STEP: usize = 32;

/// Items that the hand passes for one write if live ones may not be evicted: some tens of microseconds.
const LOOK: usize = 16 * STEP;

/// The limit, and the state that keeps it.
#[derive(Debug)]
pub struct MemoryLimit {
    /// In bytes; 0: none.
    limit: AtomicU64,
    /// Whether writes without room evict items; otherwise they are refused.
    evicts: AtomicBool,
    usage: Arc<Usage>,
    /// Bytes that are reserved by writes that are admitted or still make room.
    reserved: AtomicU64,
    evicted: AtomicU64,
    refused: AtomicU64,
    /// Held while items are removed, so that a write is not refused while another thread makes room for it. While a
    /// removal stalls, other writes without room wait; those with room continue.
    hand: Mutex<Hand>,
}

/// The place of the hand: behind this key of this database.
#[derive(Debug, Default)]
struct Hand {
    database: usize,
    key: Vec<u8>,
}

/// Stores, with the numbers of their databases.
pub type Stores = Vec<(usize, Arc<ItemStore>)>;

/// Room for a write, until it is dropped.
#[derive(Debug)]
pub struct Room<'m> {
    memory: &'m MemoryLimit,
    bytes: u64,
}

impl Drop for Room<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.memory.reserved.fetch_sub(self.bytes, Ordering::SeqCst);
        }
    }
}

impl MemoryLimit {
    /// Creates a limit of this many bytes for all items; 0: none. `evicts` says whether writes without room evict
    /// items.
    pub fn new(limit: u64, evicts: bool) -> MemoryLimit {
        let memory = MemoryLimit {
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

    /// Changes the limit, and whether items are evicted.
    pub fn take_over(&self, limit: u64, evicts: bool) {
        self.set_limit(limit);
        self.set_evicts(evicts);
    }

    /// Returns the counter of the stores' bytes.
    pub fn usage(&self) -> &Arc<Usage> {
        &self.usage
    }

    /// Returns the limit in bytes; 0: none.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit. If the items exceed it, the next write that needs room evicts items, or is refused.
    pub fn set_limit(&self, bytes: u64) {
        if bytes > 0 {
            self.usage.estimate_for(bytes);
        }
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Returns whether writes without room evict items.
    pub fn evicts(&self) -> bool {
        self.evicts.load(Ordering::Relaxed)
    }

    /// Changes whether writes without room evict items.
    pub fn set_evicts(&self, evicts: bool) {
        self.evicts.store(evicts, Ordering::Relaxed);
    }

    /// Returns the bytes that the items take, as far as they are counted.
    pub fn used(&self) -> u64 {
        self.usage.bytes()
    }

    /// Returns the number of evicted items.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    /// Returns the number of writes refused for want of room.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    /// Sets the numbers of evicted items and refused writes to zero.
    pub fn reset_counts(&self) {
        self.evicted.store(0, Ordering::Relaxed);
        self.refused.store(0, Ordering::Relaxed);
    }

    /// Reserves room for items to grow by this many bytes. `stores` returns those of all databases. The caller has
    /// passed the databases' gate, is in no transaction, and has no other room.
    ///
    /// # Errors
    ///
    /// [`Failure::NoRoom`] if there is no room, or the failure of an eviction.
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

    /// Reserves this many bytes, if all reserved bytes are then within the limit.
    fn take(&self, bytes: u64, limit: u64) -> bool {
        let within = |reserved: u64| reserved.checked_add(bytes).filter(|&sum| sum <= limit);
        self.reserved
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, within)
            .is_ok()
    }

    fn is_full(&self, limit: u64) -> bool {
        self.used().saturating_add(self.reserved.load(Ordering::SeqCst)) > limit
    }

    /// Moves the clock hand until it has removed an item, unless another thread has made room. Returns `false` if there
    /// are no items, or, if live items may not be evicted, if none of those that the hand has passed was dead.
    fn make_room(&self, stores: &dyn Fn() -> Stores, limit: u64, now: u64) -> Result<bool, Failure> {
        let evicts = self.evicts();
        let mut looks = if evicts { usize::MAX } else { LOOK };
        // After a panic the place is still valid.
        let mut hand = self.hand.lock().unwrap_or_else(PoisonError::into_inner);
        if !self.is_full(limit) {
            return Ok(true); // Another thread was faster.
        }
        let stores = stores();
        // One turn more than there are databases, as the hand may begin in the middle of a database.
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
