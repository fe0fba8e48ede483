//! Keys, made before anything is timed.
//!
//! I1 Keys of one set are unique, and depend only on kind, seed and number.
//! I2 A set is one flat run of bytes in the order in which a workload uses it, so that reading the keys themselves
//!    is sequential and costs the timed loop next to nothing.
//!
//! The key made with number `i` is given the value `i` (little-endian), so a pass over known keys has a known sum.

use clap::ValueEnum;
use serde::Serialize;
use std::collections::HashSet;

/// What keys look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Eight random bytes.
    U64,
    /// 4 to 128 random printable characters.
    Str,
    /// Eight random printable characters.
    Print8,
}

const PRINTABLE: std::ops::RangeInclusive<u8> = b'!'..=b'~';
const CHARACTERS: u64 = (*PRINTABLE.end() - *PRINTABLE.start() + 1) as u64;
const LONGEST: usize = 128;
/// Longer random keys than this do not collide; shorter ones are checked.
const MAY_COLLIDE: usize = 16;

/// The splitmix64 step: a bijection of 64-bit words.
fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A stream of random words.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }
    /// Below `bound`, which is far below 2^64.
    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
    fn printable(&mut self) -> u8 {
        PRINTABLE.start() + self.below(CHARACTERS) as u8
    }
}

/// Key number `i` of eight random bytes.
pub fn nth_u64(seed: u64, i: u64) -> [u8; 8] {
    mix(i ^ mix(seed)).to_be_bytes()
}

/// Key number `i` of eight printable characters: a bijection of 53-bit words, repeated until it lands below 94^8.
fn nth_print8(seed: u64, i: u64) -> [u8; 8] {
    const BITS: u32 = 53;
    const MASK: u64 = (1 << BITS) - 1;
    let mut word = (i ^ mix(seed)) & MASK;
    loop {
        // Each step is invertible modulo 2^53.
        word = word.wrapping_mul(0xbf58_476d_1ce4_e5b9) & MASK;
        word ^= word >> 27;
        word = word.wrapping_mul(0x94d0_49bb_1331_11eb) & MASK;
        word ^= word >> 31;
        word = word.wrapping_add(0x9e37_79b9_7f4a_7c15) & MASK;
        if word < CHARACTERS.pow(8) {
            break;
        }
    }
    let mut key = [0; 8];
    for character in key.iter_mut().rev() {
        *character = PRINTABLE.start() + (word % CHARACTERS) as u8;
        word /= CHARACTERS;
    }
    key
}

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

    /// `count` unique keys, numbered from zero in the order in which they are loaded.
    pub fn generate(kind: KeyKind, count: usize, seed: u64) -> Keys {
        let mean = match kind {
            KeyKind::U64 | KeyKind::Print8 => 8,
            KeyKind::Str => 67,
        };
        let mut keys = Keys::with_capacity(count, count * mean);
        let mut random = Random(mix(seed));
        let mut short = HashSet::new();
        let mut string = [0; LONGEST];
        for i in 0..count as u64 {
            match kind {
                KeyKind::U64 => keys.push(&nth_u64(seed, i), i),
                KeyKind::Print8 => keys.push(&nth_print8(seed, i), i),
                KeyKind::Str => loop {
                    let length = 4 + random.below(125) as usize;
                    let key = &mut string[..length];
                    key.fill_with(|| random.printable());
                    if length > MAY_COLLIDE || short.insert(Box::<[u8]>::from(&*key)) {
                        keys.push(key, i);
                        break;
                    }
                },
            }
        }
        keys
    }

    /// `count` of these keys in random order, none twice before all have been used.
    pub fn shuffled(&self, count: usize, seed: u64) -> Keys {
        let mut random = Random(mix(seed ^ 0x5eed));
        let mut order: Vec<u32> = (0..self.len() as u32).collect();
        let mut keys = Keys::with_capacity(count, self.bytes.len().min(count * LONGEST));
        while keys.len() < count && !order.is_empty() {
            let pass = order.len().min(count - keys.len());
            for i in 0..pass {
                let other = i + random.below((order.len() - i) as u64) as usize;
                order.swap(i, other);
                let chosen = order[i] as usize;
                keys.push(self.key(chosen), self.numbers[chosen]);
            }
        }
        keys
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    fn key(&self, i: usize) -> &[u8] {
        &self.bytes[self.bounds[i] as usize..self.bounds[i + 1] as usize]
    }

    /// The `i`th of `parts` nearly equal pieces.
    pub fn part(&self, i: usize, parts: usize) -> Part<'_> {
        let from = self.len() * i / parts;
        let to = self.len() * (i + 1) / parts;
        Part {
            bytes: &self.bytes,
            bounds: &self.bounds[from..=to],
            numbers: &self.numbers[from..to],
        }
    }
}

/// A piece of a run of keys.
#[derive(Clone, Copy)]
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

    /// The sum of the numbers: of the values that reading each key once must give.
    pub fn sum(&self) -> u64 {
        self.numbers
            .iter()
            .fold(0, |sum, &number| sum.wrapping_add(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets of every kind hold unique keys of the promised shape, and the same seed makes the same set.
    #[test]
    fn keys_are_unique_shaped_and_repeatable() {
        for kind in [KeyKind::U64, KeyKind::Str, KeyKind::Print8] {
            let keys = Keys::generate(kind, 50_000, 7);
            let unique: HashSet<&[u8]> = keys.part(0, 1).iter().map(|(key, _)| key).collect();
            assert_eq!(unique.len(), 50_000, "{kind:?}");
            for key in &unique {
                match kind {
                    KeyKind::U64 => assert_eq!(key.len(), 8),
                    KeyKind::Print8 => assert_eq!(key.len(), 8),
                    KeyKind::Str => assert!((4..=128).contains(&key.len())),
                }
                assert!(kind == KeyKind::U64 || key.iter().all(|byte| PRINTABLE.contains(byte)));
            }
            assert_eq!(keys.bytes, Keys::generate(kind, 50_000, 7).bytes);
            assert_ne!(keys.bytes, Keys::generate(kind, 50_000, 8).bytes);
        }
    }

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
        assert_eq!(keys.part(0, 1).sum(), 1000 * 1001 / 2);
    }
}
