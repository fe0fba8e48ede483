//! The filter in front of a buffer tree (DPTree §2, §4.4), which rules out most absent keys.
//!
//! I1 A key's bits are set before its entry is acknowledged, and never cleared.

use pmem::LINE;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Bits per expected key: with five probes some 3% of the absent keys pass.
const BITS_PER_KEY: usize = 8;
const PROBES: u32 = 5;

/// A line of the filter, which has all of a key's probes, so that a lookup costs one line and no branch.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line([AtomicU64; WORDS]);

const WORDS: usize = LINE / size_of::<u64>();

/// Number of bits that select a bit of a line.
const BIT: u32 = (LINE * 8).trailing_zeros();

/// A Bloom filter.
#[derive(Debug)]
pub(crate) struct Bloom(Box<[Line]>);

impl Bloom {
    /// An empty filter for this many keys; with more keys, more absent ones pass.
    pub(crate) fn new(keys: usize) -> Bloom {
        let lines = (keys * BITS_PER_KEY).div_ceil(LINE * 8).next_power_of_two();
        Bloom((0..lines).map(|_| Line::default()).collect())
    }

    /// The words of the key's line that have its bits, with the bits.
    #[inline]
    fn probes(&self, hash: u64) -> impl Iterator<Item = (&AtomicU64, u64)> {
        let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let line = &self.0[(hash >> 16) as usize & (self.0.len() - 1)];
        (0..PROBES).map(move |probe| {
            let bit = mixed >> (64 - BIT * (probe + 1));
            (&line.0[(bit >> 6) as usize % WORDS], 1 << (bit & 63))
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
        let missing = self
            .probes(hash)
            .fold(0, |missing, (word, bit)| missing | (!word.load(Relaxed) & bit));
        missing == 0
    }
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
