//! A thread's operations, and whether their results were right.

use crate::engine::Scanned;
use crate::script::Last;

/// What an update sets in a value. Values keep to 63 bits, since some peers do.
pub const UPDATED: u64 = 1 << 62;

/// What a thread has done.
#[derive(Debug, Default)]
pub struct Tally {
    /// Keys, or scans.
    pub ops: u64,
    /// The sum of what was read.
    pub sum: u64,
    /// Operations that did not find what they should have.
    pub wrong: u64,
}

impl Tally {
    /// Key number `number` was read.
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

    /// Something was done that has no value, or was not.
    #[inline]
    pub fn done(&mut self, done: bool) {
        self.wrong += u64::from(!done);
    }

    /// Keys whose numbers sum up to `numbers` were read at once; `missing` of them had no value.
    #[inline]
    pub fn batch(&mut self, sum: u64, numbers: u64, missing: usize) {
        self.sum = self.sum.wrapping_add(sum);
        self.wrong += missing as u64;
        self.wrong += u64::from(sum.wrapping_sub(numbers) & (UPDATED - 1) != 0);
    }

    /// `length` keys were asked for, from key number `number` on, which is there. A scan may end sooner only where
    /// fewer keys follow; those inserted meanwhile it may have met or not.
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

    /// A scan is right that begins with its key and goes as far as asked, or to the end at least of what was loaded; no
    /// other one is.
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
        // A scan of the six last keys, and one inserted meanwhile.
        assert_eq!((wrong(94, 94, 6), wrong(94, 94, 7), wrong(94, 94, 5)), (0, 0, 1));
        assert_eq!((wrong(99, 99, 1), wrong(99, 99, 0)), (0, 1));
    }
}
