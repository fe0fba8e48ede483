//! An estimate of how often keys were accessed lately: a sketch of fixed size (TinyLFU's, a count-min sketch that
//! ages).
//!
//! A key's hash chooses a cache line, and in it four counters of four bits; the estimate is the smallest of the four.
//! Each line ages by itself: once it has counted enough accesses, all its counters are halved.
//!
//! Not persistent, and not exact: threads that count in one line at one moment may lose a count.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Words of counters in a line; the last word has the number of accesses counted.
const WORDS: usize = 7;
const COUNTERS: u64 = WORDS as u64 * 16;
const MAX: u64 = 15;

/// A line's counters are halved once it has counted this many accesses (after a halving, half as many again).
const AGE: u64 = 100;

/// Bytes of items per line of 64 bytes.
const BYTES_A_LINE: u64 = 4096;
const FEWEST: u64 = 1 << 10;

#[derive(Debug, Default)]
#[repr(align(64))]
struct Line {
    counters: [AtomicU64; WORDS],
    counted: AtomicU64,
}

/// The sketch.
#[derive(Debug)]
pub struct Sketch(Box<[Line]>);

impl Sketch {
    /// The number of sizes: 64 KiB, each four times the one before it, up to 64 MiB.
    pub const SIZES: usize = 6;

    /// Returns the size for this many bytes of items: at least 64 bytes per 4 KiB, or the largest.
    pub fn size_for(bytes: u64) -> usize {
        let large_enough = |size: &usize| bytes / BYTES_A_LINE <= lines(*size);
        (0..Sketch::SIZES - 1)
            .find(large_enough)
            .unwrap_or(Sketch::SIZES - 1)
    }

    /// Creates an empty sketch of this size.
    pub fn new(size: usize) -> Sketch {
        Sketch((0..lines(size)).map(|_| Line::default()).collect())
    }

    fn line(&self, hash: u64) -> &Line {
        let place = (u128::from(hash) * self.0.len() as u128) >> 64;
        &self.0[place as usize]
    }

    /// Counts an access of the key with this hash.
    pub fn count(&self, hash: u64) {
        let line = self.line(hash);
        let mut grown = false;
        for place in places(hash) {
            let (word, shift) = (&line.counters[place / 16], place % 16 * 4);
            let old = word.load(Relaxed);
            if old >> shift & MAX < MAX {
                let new = old + (1 << shift);
                // A lost race loses the count; the sketch is an estimate.
                grown |= word.compare_exchange(old, new, Relaxed, Relaxed).is_ok();
            }
        }
        // A counter at its maximum triggers no aging.
        if grown && line.counted.fetch_add(1, Relaxed) + 1 == AGE {
            for word in &line.counters {
                word.store(word.load(Relaxed) >> 1 & 0x7777_7777_7777_7777, Relaxed);
            }
            line.counted.store(AGE / 2, Relaxed);
        }
    }

    /// Returns an estimate of how often the key with this hash was accessed lately, up to 15.
    pub fn estimate(&self, hash: u64) -> u64 {
        let line = self.line(hash);
        let counts =
            places(hash).map(|place| line.counters[place / 16].load(Relaxed) >> (place % 16 * 4) & MAX);
        counts.into_iter().min().unwrap_or(0)
    }
}

fn lines(size: usize) -> u64 {
    FEWEST << (2 * size)
}

/// Returns a hash's counters in its line.
fn places(hash: u64) -> [usize; 4] {
    // The upper bits have chosen the line.
    let mut bits = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits ^= bits >> 29;
    std::array::from_fn(|i| (((bits >> (i * 14) & 0x3fff) * COUNTERS) >> 14) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::access::hash;

    /// Each size suits its number of bytes, and the largest is for all above.
    #[test]
    fn sizes_fit() {
        for (bytes, size) in [
            (0, 0),
            (4 << 20, 0),
            ((4 << 20) + 4096, 1),
            (1 << 30, 4),
            (1 << 32, 5),
            (u64::MAX, 5),
        ] {
            assert_eq!(Sketch::size_for(bytes), size, "{bytes}");
        }
        assert_eq!(lines(Sketch::SIZES - 1), 1 << 20);
    }

    /// The sketch distinguishes frequent keys from many that are accessed once, and forgets keys that are no longer
    /// accessed.
    #[test]
    fn the_frequent_are_told_from_the_rare() {
        let sketch = Sketch::new(0);
        let key = |i: u64| hash(&i.to_le_bytes());
        for turn in 0..10 {
            (0..1000).for_each(|i| sketch.count(key(i)));
            (0..500).for_each(|i| sketch.count(key(1_000_000 + turn * 500 + i)));
        }
        let frequent = (0..1000).filter(|&i| sketch.estimate(key(i)) >= 5).count();
        let rare = (0..5000)
            .filter(|&i| sketch.estimate(key(1_000_000 + i)) >= 5)
            .count();
        assert!(frequent > 950, "{frequent} of 1000");
        assert!(rare < 250, "{rare} of 5000");
        for turn in 0..400 {
            (0..1000).for_each(|i| sketch.count(key(2_000_000 + (turn * 1000 + i) % 7000)));
        }
        let still = (0..1000).filter(|&i| sketch.estimate(key(i)) >= 8).count();
        assert!(still < 500, "{still} of 1000 are not forgotten");
    }
}
