//! The filter in front of a buffer tree (DPTree §2, §4.4): most keys that are not in it are known not to be.
//!
//! I1 A key's bits are set before its entry is acknowledged, and never cleared.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bits for each key that is expected: with five probes about 2% of the absent keys pass.
const BITS_PER_KEY: usize = 8;
const PROBES: u32 = 5;

/// A Bloom filter.
#[derive(Debug)]
pub(crate) struct Bloom(Box<[AtomicU64]>);

impl Bloom {
    /// An empty filter for this many keys; more only let more absent ones pass.
    pub(crate) fn new(keys: usize) -> Bloom {
        let words = (keys * BITS_PER_KEY).div_ceil(64).next_power_of_two();
        Bloom((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    fn probes(&self, hash: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let step = hash.rotate_left(32) | 1;
        (0..PROBES).map(move |probe| {
            let bit = hash.wrapping_add(step.wrapping_mul(u64::from(probe)));
            let bit = bit ^ bit >> 29;
            let word = (bit >> 6) as usize & (self.0.len() - 1);
            (&self.0[word], 1 << (bit & 63))
        })
    }

    #[inline]
    pub(crate) fn add(&self, hash: u64) {
        for (word, bit) in self.probes(hash) {
            if word.load(Relaxed) & bit == 0 {
                word.fetch_or(bit, Relaxed);
            }
        }
    }

    /// Whether the key may have been added.
    #[inline]
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        self.probes(hash).all(|(word, bit)| word.load(Relaxed) & bit != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::codec::checksum;

    /// What was added passes, and of what was not, few do.
    #[test]
    fn added_keys_pass() {
        let filter = Bloom::new(10_000);
        let hash = |i: u64| checksum(&i.to_be_bytes());
        (0..10_000).for_each(|i| filter.add(hash(i)));
        assert!((0..10_000).all(|i| filter.may_have(hash(i))));
        let passed = (10_000..110_000).filter(|&i| filter.may_have(hash(i))).count();
        assert!(passed < 5_000, "{passed} of 100,000 absent keys pass");
    }
}
