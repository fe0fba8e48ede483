//! Keys, made before anything is timed.
//!
//! I1 Keys of one set are unique, and depend only on kind, seed, number, how many are loaded and how many there are
//!    besides.
//! I2 A set is one flat run of bytes in the order in which a workload uses it, so that reading the keys themselves
//!    is sequential and costs the timed loop next to nothing.
//!
//! The key made with number `i` is given the value `i` (little-endian), so a pass over known keys has a known sum.

mod file;
mod kind;

#[cfg(any(test, feature = "peers"))]
use crate::random::Random;
pub use kind::{KeyKind, nth_u64};

/// A run of keys and the numbers they were made with.
#[derive(Debug, Default)]
pub struct Keys {
    bytes: Vec<u8>,
    /// Where each key begins, and after the last where it ends.
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

    /// `count` of these keys in random order, none twice before all have been used.
    #[cfg(any(test, feature = "peers"))]
    pub fn shuffled(&self, count: usize, seed: u64) -> Keys {
        let mut random = Random::new(seed ^ 0x5eed);
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        let mut keys = Keys::with_capacity(count, self.bytes.len().min(count * kind::LONGEST));
        while keys.len() < count && !order.is_empty() {
            let pass = order.len().min(count - keys.len());
            random.shuffle(&mut order, pass);
            for &chosen in &order[..pass] {
                keys.push_from(self, chosen as usize);
            }
        }
        keys
    }

    /// Those that these numbers, each below [`len`](Keys::len), choose.
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

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    fn key(&self, i: usize) -> &[u8] {
        &self.bytes[self.bounds[i] as usize..self.bounds[i + 1] as usize]
    }

    /// The first `count` of them.
    pub fn first(&self, count: usize) -> Part<'_> {
        self.all().first(count)
    }

    /// All of them.
    pub fn all(&self) -> Part<'_> {
        Part {
            bytes: &self.bytes,
            bounds: &self.bounds,
            numbers: &self.numbers,
        }
    }

    /// The `i`th of `parts` nearly equal pieces.
    pub fn part(&self, i: usize, parts: usize) -> Part<'_> {
        self.all().part(i, parts)
    }
}

/// A piece of a run of keys.
#[derive(Clone, Copy, Debug)]
pub struct Part<'k> {
    bytes: &'k [u8],
    bounds: &'k [u64],
    numbers: &'k [u64],
}

impl<'k> Part<'k> {
    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Each key with its number.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (&'k [u8], u64)> + use<'k> {
        let bytes = self.bytes;
        let keys = self
            .bounds
            .windows(2)
            .map(move |at| &bytes[at[0] as usize..at[1] as usize]);
        keys.zip(self.numbers.iter().copied())
    }

    /// The first `count` of them.
    pub fn first(self, count: usize) -> Part<'k> {
        self.between(0, count.min(self.len()))
    }

    /// The `i`th of `parts` nearly equal pieces of it.
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

    /// A shuffle uses every key once before any twice, and keeps keys with their numbers.
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
