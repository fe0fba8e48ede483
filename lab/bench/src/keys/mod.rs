//! Keys, made before anything is timed.
//!
//! I1 Keys of one set are unique, and depend only on the kind, the seed, their number, and the numbers of loaded and of
//!    additional keys; those of a file, only on the file.
//! I2 A set is one flat run of bytes in the order in which a workload uses it, so that the timed loop reads keys
//!    sequentially, at almost no cost.
//!
//! The key with number `i` has the value `i` (little-endian), so a pass over known keys has a known sum.

mod file;
mod kind;

#[cfg(any(test, feature = "peers"))]
use crate::random::Random;
pub use kind::{KeyKind, nth_u64};

/// Keys and their numbers.
#[derive(Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    /// The beginning of each key, and the end of the last.
    bounds: Vec<u64>,
    numbers: Vec<u64>,
}

impl Keys {
    fn with_capacity(keys: usize, bytes: usize) -> Keys {
        let mut bounds = Vec::with_capacity(keys + 1);
        bounds.push(0);
        Keys {
            bytes: Vec::with_capacity(bytes),
            bounds,
            numbers: Vec::with_capacity(keys),
        }
    }

    fn push(&mut self, key: &[u8], number: u64) {
        self.bytes.extend_from_slice(key);
        self.bounds.push(self.bytes.len() as u64);
        self.numbers.push(number);
    }

    /// Takes the keys from this position on away, and returns them.
    #[cfg(feature = "peers")]
    pub fn split_off(&mut self, at: usize) -> Keys {
        let start = self.bounds[at];
        let bounds = self.bounds.split_off(at);
        self.bounds.push(start);
        Keys {
            bytes: self.bytes.split_off(start as usize),
            bounds: bounds.into_iter().map(|bound| bound - start).collect(),
            numbers: self.numbers.split_off(at),
        }
    }

    /// Returns `count` of these keys in random order; all are used before any repeats.
    #[cfg(any(test, feature = "peers"))]
    pub fn shuffled(&self, count: usize, seed: u64) -> Keys {
        let mut random = Random::new(seed ^ 0x5eed);
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        let mut keys = Keys::with_capacity(count, self.bytes.len().min(count * kind::MAX_LEN));
        while keys.len() < count && !order.is_empty() {
            let pass = order.len().min(count - keys.len());
            random.shuffle(&mut order, pass);
            for &chosen in &order[..pass] {
                keys.push_from(self, chosen as usize);
            }
        }
        keys
    }

    /// Returns the keys at these positions, each below [`len`](Keys::len).
    pub fn chosen(&self, order: &[u32]) -> Keys {
        let mean = self.bytes.len() / self.len().max(1) + 1;
        let mut keys = Keys::with_capacity(order.len(), order.len() * mean);
        for &chosen in order {
            keys.push_from(self, chosen as usize);
        }
        keys
    }

    fn push_from(&mut self, from: &Keys, chosen: usize) {
        self.push(from.key(chosen), from.numbers[chosen]);
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    fn key(&self, i: usize) -> &[u8] {
        &self.bytes[self.bounds[i] as usize..self.bounds[i + 1] as usize]
    }

    /// Returns the first `count` keys.
    pub fn first(&self, count: usize) -> Part<'_> {
        self.all().first(count)
    }

    /// Returns all keys.
    pub fn all(&self) -> Part<'_> {
        Part {
            bytes: &self.bytes,
            bounds: &self.bounds,
            numbers: &self.numbers,
        }
    }

    /// Returns the `i`th of `parts` nearly equal pieces.
    pub fn part(&self, i: usize, parts: usize) -> Part<'_> {
        self.all().part(i, parts)
    }
}

/// A contiguous part of a set of keys.
#[derive(Clone, Copy, Debug)]
pub struct Part<'k> {
    bytes: &'k [u8],
    bounds: &'k [u64],
    numbers: &'k [u64],
}

impl<'k> Part<'k> {
    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Iterates over the keys and their numbers.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&'k [u8], u64)> + use<'k> {
        let bytes = self.bytes;
        let keys = self
            .bounds
            .windows(2)
            .map(move |at| &bytes[at[0] as usize..at[1] as usize]);
        keys.zip(self.numbers.iter().copied())
    }

    /// Returns the first `count` keys.
    pub fn first(self, count: usize) -> Part<'k> {
        self.between(0, count.min(self.len()))
    }

    /// Returns the `i`th of `parts` nearly equal pieces.
    pub fn part(self, i: usize, parts: usize) -> Part<'k> {
        self.between(self.len() * i / parts, self.len() * (i + 1) / parts)
    }

    fn between(self, from: usize, to: usize) -> Part<'k> {
        Part {
            bytes: self.bytes,
            bounds: &self.bounds[from..=to],
            numbers: &self.numbers[from..to],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// A shuffle uses every key once before repeating any, and keeps keys with their numbers.
    #[test]
    fn a_shuffle_is_a_permutation_then_another() {
        let keys = Keys::generate(KeyKind::Str, 1000, 1);
        let shuffled = keys.shuffled(2500, 2);
        assert_eq!(shuffled.len(), 2500);
        let entries: Vec<_> = shuffled.part(0, 1).iter().collect();
        for pass in [&entries[..1000], &entries[1000..2000]] {
            assert_eq!(pass.iter().collect::<HashSet<_>>().len(), 1000);
        }
        for (key, number) in entries {
            assert_eq!(keys.key(number as usize), key);
        }
    }

    /// The parts of a set make up the whole, in order.
    #[test]
    fn parts_make_the_whole() {
        let keys = Keys::generate(KeyKind::U64, 1001, 3);
        let joined: Vec<_> = (0..7).flat_map(|i| keys.part(i, 7).iter()).collect();
        assert_eq!(joined, keys.part(0, 1).iter().collect::<Vec<_>>());
        let halves: Vec<_> = (0..2).flat_map(|i| keys.first(501).part(i, 2).iter()).collect();
        assert_eq!(halves, joined[..501]);
    }
}
