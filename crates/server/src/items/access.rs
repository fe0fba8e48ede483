//! The last access of each item, and whether a client has fetched it since it was stored: memcached's meta commands
//! show both by the flags `l` and `h`. Volatile and approximate, since it is not worth a write to the pool.
//!
//! A table of fixed size with one word per slot. If another key takes a key's slot, the key counts as not fetched, and
//! as last accessed when the server started.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

const SLOTS: usize = 1 << 18;
const FETCHED: u64 = 1;

/// The accesses of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Whether a client has fetched it since it was stored.
    pub fetched: bool,
    /// The time of its last fetch or store, in seconds since the server started.
    pub second: u64,
}

/// The table. A slot holds the upper half of the key's hash, the second in 31 bits, and whether the key was fetched.
pub struct Access(Vec<AtomicU64>);

impl Default for Access {
    fn default() -> Access {
        let mut slots = Vec::new();
        slots.resize_with(SLOTS, AtomicU64::default);
        Access(slots)
    }
}

impl Access {
    /// Returns the accesses of a key.
    pub fn get(&self, key: &[u8]) -> Seen {
        let hash = hash(key);
        let word = self.slot(hash).load(Ordering::Relaxed);
        if word >> 32 != hash >> 32 {
            return Seen::default();
        }
        Seen {
            fetched: word & FETCHED != 0,
            second: (word & u64::from(u32::MAX)) >> 1,
        }
    }

    /// Records an access of a key.
    pub fn set(&self, key: &[u8], seen: Seen) {
        let hash = hash(key);
        let second = (seen.second << 1) & u64::from(u32::MAX);
        let word = (hash >> 32 << 32) | second | u64::from(seen.fetched);
        let slot = self.slot(hash);
        // A cache line that need not change stays shared among processors.
        if slot.load(Ordering::Relaxed) != word {
            slot.store(word, Ordering::Relaxed);
        }
    }

    /// Loads the keys' slots into the cache, in parallel.
    pub fn prefetch(&self, keys: &[&[u8]]) {
        for key in keys {
            black_box(self.slot(hash(key)).load(Ordering::Relaxed));
        }
    }

    fn slot(&self, hash: u64) -> &AtomicU64 {
        &self.0[hash as usize % SLOTS]
    }
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Access").finish_non_exhaustive()
    }
}

/// Hashes a key for this table, for the slots of removed items (`store::watched`), and for the sketch (`frequency`).
pub fn hash(key: &[u8]) -> u64 {
    let mix = |hash: u64, word: u64| {
        let product = u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15;
        (product >> 64) as u64 ^ product as u64
    };
    let mut hash = key.len() as u64 ^ 0x2545_f491_4f6c_dd1d;
    let mut words = key.chunks_exact(8);
    for word in &mut words {
        hash = mix(hash, word.try_into().map_or(0, u64::from_le_bytes));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(hash, u64::from_le_bytes(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lookup finds the last access of its key, and none of other keys.
    #[test]
    fn the_last_note_counts() {
        let access = Access::default();
        let noted = |fetched, second| Seen { fetched, second };
        for i in 0..200u64 {
            access.set(format!("key {i}").as_bytes(), noted(i % 2 == 0, i));
        }
        access.set(b"key 7", noted(true, 1000));
        assert_eq!(access.get(b"key 7"), noted(true, 1000));
        assert_eq!(access.get(b"never"), Seen::default());
        let kept = (0..200u64).filter(|i| access.get(format!("key {i}").as_bytes()).second >= *i);
        assert!(kept.count() > 190);
    }
}
