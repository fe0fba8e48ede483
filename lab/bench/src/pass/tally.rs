//! A thread's operations, and whether their results were right.

use crate::engine::Scanned;
use crate::script::Last;

/// The bit that an update sets in a value. Values have at most 63 bits, as some peers require.
pub const UPDATED: u64 = 1 << 62;

/// The operations of a thread, and how many went wrong.
#[derive(Debug, Default)]
pub struct Tally {
    /// The number of keys, or scans.
    pub ops: u64,
    /// The sum of the values read.
    pub sum: u64,
    /// Operations with wrong results.
    pub wrong: u64,
}

impl Tally {
    /// Records a read of key number `number`.
    #[inline]
    pub fn read(&mut self, number: u64, value: Option<u64>) {
        match value {
            Some(value) => {
                self.sum = self.sum.wrapping_add(value);
                self.wrong += u64::from(value & !UPDATED != number);
            }
            None => self.wrong += 1,
        }
    }

    /// Records an operation without a value, and whether it succeeded.
    #[inline]
    pub fn done(&mut self, done: bool) {
        self.wrong += u64::from(!done);
    }

    /// Records a batch of reads of keys whose numbers sum to `numbers`; `missing` of them were not found.
    #[inline]
    pub fn batch(&mut self, sum: u64, numbers: u64, missing: usize) {
        self.sum = self.sum.wrapping_add(sum);
        self.wrong += missing as u64;
        self.wrong += u64::from(sum.wrapping_sub(numbers) & (UPDATED - 1) != 0);
    }

    /// Records a scan of `length` keys from key number `number`, which is present. A scan may end early only if fewer
    /// keys follow; it may or may not include keys inserted meanwhile.
    #[inline]
    pub fn scan(&mut self, scanned: Scanned, key: &[u8], number: u64, length: usize, last: Last<'_>) {
        self.sum = self.sum.wrapping_add(scanned.sum);
        let enough =
            scanned.keys == length || (scanned.keys < length && scanned.keys >= last.at_least(key, length));
        self.wrong += u64::from(!enough || scanned.first & !UPDATED != number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::greatest;

    /// A scan is right only if it begins with its key and reads as many keys as requested, or at least all loaded keys
    /// that follow.
    #[test]
    fn scans_are_checked() {
        let keys: Vec<[u8; 1]> = (0..100).map(|i| [i]).collect();
        let last = greatest(keys.iter().map(|key| &key[..]), 10);
        let wrong = |number: u8, first: u64, keys: usize| {
            let mut tally = Tally::default();
            let scanned = Scanned { first, keys, sum: 5 };
            tally.scan(scanned, &[number], number.into(), 10, Last::new(&last));
            assert_eq!(tally.sum, 5);
            tally.wrong
        };
        assert_eq!((wrong(40, 40, 10), wrong(40, 40 | UPDATED, 10)), (0, 0));
        assert_eq!((wrong(40, 41, 10), wrong(40, 0, 0), wrong(0, 0, 0)), (1, 1, 1));
        assert_eq!((wrong(40, 40, 9), wrong(40, 40, 11), wrong(90, 90, 9)), (1, 1, 1));
        // A scan of the last six keys, also with one inserted meanwhile.
        assert_eq!((wrong(94, 94, 6), wrong(94, 94, 7), wrong(94, 94, 5)), (0, 0, 1));
        assert_eq!((wrong(99, 99, 1), wrong(99, 99, 0)), (0, 1));
    }
}
