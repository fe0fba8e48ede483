//! The written pairs: the key derives from a number, the value from the number and a stamp.

use crate::Error;
use crate::keys::nth_u64;
use crate::peers::kept::Pair;
use crate::random::{Random, mix};
use std::ops::Deref;

/// The maximum lengths of keys and values, in bytes.
const MAX_KEY: usize = 16;
const MAX_VALUE: usize = 128;

/// Bytes stored inline, so that making them costs almost nothing beside a write.
pub struct Bytes<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> Deref for Bytes<N> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// The lengths of keys (at most 16 bytes) and values (8 to 128 bytes).
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub key: usize,
    pub value: usize,
    pub seed: u64,
}

impl Shape {
    /// Returns the usual shape: keys of 16 bytes, values of 100.
    pub fn usual(seed: u64) -> Shape {
        Shape {
            key: MAX_KEY,
            value: 100,
            seed,
        }
    }

    /// Returns key `number`, which consists of random bytes.
    pub fn key(&self, number: u64) -> Bytes<MAX_KEY> {
        let mut bytes = [0; MAX_KEY];
        bytes[..8].copy_from_slice(&nth_u64(self.seed, number));
        bytes[8..].copy_from_slice(&nth_u64(!self.seed, number));
        Bytes { bytes, len: self.key }
    }

    /// Returns a value of key `number`: the number, then incompressible bytes that depend on the stamp.
    fn value(&self, number: u64, stamp: u64) -> Bytes<MAX_VALUE> {
        let mut bytes = [0; MAX_VALUE];
        let mut random = Random::new(stamp);
        let (words, _) = bytes.as_chunks_mut();
        for word in &mut words[..self.value.div_ceil(8)] {
            *word = random.next().to_le_bytes();
        }
        words[0] = number.to_le_bytes();
        Bytes {
            bytes,
            len: self.value,
        }
    }

    /// Calls `take` with `each` pairs: keys whose numbers are drawn from those below `keys`, with new values.
    pub fn draw(
        &self,
        random: &mut Random,
        keys: usize,
        each: usize,
        take: impl FnOnce(&[Pair<'_>]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let stamp = random.next();
        let numbers = (0..each).map(|_| random.below(keys as u64));
        self.of(numbers, stamp, take)
    }

    /// Calls `take` with the pairs of all numbers below `keys` in key order, `each` at a time.
    pub fn all(
        &self,
        keys: usize,
        each: usize,
        mut take: impl FnMut(&[Pair<'_>]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        // Key order suits most trees; filling is not measured.
        let mut numbers: Vec<u64> = (0..keys as u64).collect();
        numbers.sort_unstable_by_key(|&number| nth_u64(self.seed, number));
        numbers
            .chunks(each)
            .try_for_each(|some| self.of(some.iter().copied(), mix(some[0]), &mut take))
    }

    fn of(
        &self,
        numbers: impl Iterator<Item = u64>,
        stamp: u64,
        take: impl FnOnce(&[Pair<'_>]) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut pairs = numbers.map(|number| (self.key(number), self.value(number, stamp ^ number)));
        let (Some(first), second) = (pairs.next(), pairs.next()) else {
            return Ok(());
        };
        let Some(second) = second else {
            return take(&[(&first.0, &first.1)]);
        };
        let pairs: Vec<_> = [first, second].into_iter().chain(pairs).collect();
        let pairs: Vec<Pair<'_>> = pairs.iter().map(|(key, value)| (&**key, &**value)).collect();
        take(&pairs)
    }

    /// Checks that this is a value of key `number`.
    pub fn check(&self, engine: &str, number: u64, found: Option<&[u8]>) -> Result<(), Error> {
        let is_it = |value: &[u8]| value.len() == self.value && value.starts_with(&number.to_le_bytes());
        match found {
            Some(value) if is_it(value) => Ok(()),
            _ => Err(Error::Wrong(format!(
                "{engine}: key {number} has the value {found:x?}"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A missing value, one of another length and another key's value are errors.
    #[test]
    fn values_are_told_apart() {
        let shape = Shape::usual(7);
        let value = shape.value(3, 5);
        assert_eq!((shape.key(3).len(), value.len()), (16, 100));
        assert!(shape.check("x", 3, Some(&value)).is_ok());
        for wrong in [None, Some(&value[..99]), Some(&*shape.value(4, 5))] {
            assert!(shape.check("x", 3, wrong).is_err());
        }
        assert_ne!(*shape.value(3, 6), *value);
    }

    /// All keys come once and in order, including those of a partial last chunk.
    #[test]
    fn all_keys_come() {
        let shape = Shape {
            key: 8,
            value: 8,
            seed: 1,
        };
        let mut keys = Vec::new();
        shape
            .all(10, 4, |pairs| {
                keys.extend(pairs.iter().map(|(key, _)| key.to_vec()));
                Ok(())
            })
            .unwrap();
        let mut all: Vec<_> = (0..10).map(|i| shape.key(i).to_vec()).collect();
        all.sort();
        assert_eq!(keys, all);
    }
}
