//! Chunks that a thread has claimed from a heap and not used yet: for each class, one word of a bitmap.

use crate::alloc::class::{MAX_CLASSES, SIZES, SMALL};
use crate::alloc::page::{Claim, pairs};
use crate::alloc::reservation::Reservation;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A thread's claims from one heap.
#[derive(Debug)]
pub(crate) struct Cache {
    singles: [Slot; MAX_CLASSES],
    /// For the classes below a line: claims in which every free chunk's neighbour is free too.
    pairs: [Slot; 2],
    /// Pages set apart for the thread.
    pub(crate) reservation: Mutex<Reservation>,
}

/// Chunks claimed from one word of a bitmap.
#[derive(Debug, Default)]
struct Slot {
    start: AtomicU64,
    free: AtomicU64,
}

impl Slot {
    /// Takes the chunks of `bits` out of the `free` ones, and returns the place of the first.
    #[inline(always)]
    fn take(&self, free: u64, bits: u64, size: u32) -> u64 {
        self.free.store(free & !bits, Relaxed);
        self.start.load(Relaxed) + u64::from(bits.trailing_zeros()) * u64::from(size)
    }

    #[inline(always)]
    fn take_first(&self, size: u32) -> Option<u64> {
        let free = self.free.load(Relaxed);
        if free == 0 {
            return None;
        }
        Some(self.take(free, free & free.wrapping_neg(), size))
    }

    fn take_pair(&self, size: u32) -> Option<u64> {
        let free = self.free.load(Relaxed);
        let first = pairs(free);
        if first == 0 {
            return None;
        }
        let bit = first & first.wrapping_neg();
        Some(self.take(free, bit | bit << 1, size))
    }

    fn fill(&self, claim: Claim) -> Option<Claim> {
        let left = self.claim();
        self.start.store(claim.start, Relaxed);
        self.free.store(claim.bits, Relaxed);
        left
    }

    fn claim(&self) -> Option<Claim> {
        let bits = self.free.load(Relaxed);
        (bits != 0).then(|| Claim {
            start: self.start.load(Relaxed),
            bits,
        })
    }
}

impl Cache {
    pub(crate) fn new() -> Cache {
        Cache {
            singles: [const {
                Slot {
                    start: AtomicU64::new(0),
                    free: AtomicU64::new(0),
                }
            }; MAX_CLASSES],
            pairs: Default::default(),
            reservation: Mutex::default(),
        }
    }

    /// The place of the chunk that the next call will take, if one is claimed.
    #[inline(always)]
    pub(crate) fn next(&self, class: usize, size: u32) -> Option<u64> {
        let slot = &self.singles[class];
        let free = slot.free.load(Relaxed);
        let first = u64::from(free.trailing_zeros()) * u64::from(size);
        (free != 0).then(|| slot.start.load(Relaxed) + first)
    }

    /// Takes a chunk of the class, whose chunks have `size` bytes, if one is claimed.
    #[inline(always)]
    pub(crate) fn take(&self, class: usize, size: u32) -> Option<u64> {
        self.singles[class].take_first(size)
    }

    /// Takes two neighbours that share a line.
    pub(crate) fn take_pair(&self, class: usize) -> Option<u64> {
        let size = SIZES[class];
        self.singles[class]
            .take_pair(size)
            .or_else(|| self.pairs[class].take_pair(size))
    }

    /// Inserts claimed chunks in place of those that the cache had left, and returns these.
    pub(crate) fn fill(&self, class: usize, claim: Claim) -> Option<Claim> {
        self.singles[class].fill(claim)
    }

    /// Inserts claimed pairs in place of those that the cache had left, and returns these.
    pub(crate) fn fill_pairs(&self, class: usize, claim: Claim) -> Option<Claim> {
        self.pairs[class].fill(claim)
    }

    /// All claimed but unused chunks.
    pub(crate) fn claims(&self) -> impl Iterator<Item = Claim> {
        self.singles.iter().chain(&self.pairs).filter_map(Slot::claim)
    }
}

/// Whether pairs of a class's chunks can share a line.
pub(crate) fn pairs_up(class: usize) -> bool {
    class < 2
}

const _: () = assert!(SIZES[1] == 32 && SIZES[2] == 64 && SMALL >= 64);
