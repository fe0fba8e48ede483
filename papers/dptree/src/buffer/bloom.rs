//! The filter in front of a buffer tree (DPTree §2, §4.4), which rules out most absent keys.
//!
//! I1 A key's bits are set before its entry is acknowledged, and never cleared.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bits per expected key: with four probes in one word some 1% of the absent keys pass.
const BITS_PER_KEY: usize = 12;
const PROBES: u32 = 4;

/// Number of bits that select a bit of a word.
const BIT: u32 = u64::BITS.trailing_zeros();

/// A Bloom filter. A word has all of a key's probes, so a lookup is one load, and adding a key one locked instruction.
#[derive(Debug)]
pub(crate) struct Bloom(Box<[AtomicU64]>);

impl Bloom {
    /// An empty filter for this many keys; with more keys, more absent ones pass.
    pub(crate) fn new(keys: usize) -> Bloom {
        let words = (keys * BITS_PER_KEY)
            .div_ceil(u64::BITS as usize)
            .next_power_of_two();
        Bloom((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// The key's word.
    #[inline]
    fn word(&self, hash: u64) -> &AtomicU64 {
        &self.0[(hash >> 16) as usize & (self.0.len() - 1)]
    }

    #[inline]
    pub(crate) fn add(&self, hash: u64) {
        let (word, bits) = (self.word(hash), bits(hash));
        if word.load(Relaxed) & bits != bits {
            word.fetch_or(bits, Relaxed);
        }
    }

    /// Whether the key may have been added.
    #[inline]
    pub(crate) fn may_have(&self, hash: u64) -> bool {
        let bits = bits(hash);
        self.word(hash).load(Relaxed) & bits == bits
    }

    #[inline]
    pub(crate) fn prefetch(&self, hash: u64) {
        pmem::prefetch(self.word(hash));
    }
}

/// The key's bits in its word.
#[inline]
fn bits(hash: u64) -> u64 {
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (1..=PROBES).fold(0, |bits, probe| {
        bits | 1 << (mixed >> (64 - BIT * probe) & u64::from(u64::BITS - 1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::codec::checksum;

    /// Added keys pass, and few others do.
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
