//! The kinds of keys, and their generation.

use super::Keys;
use crate::random::{Random, mix, permute};
use clap::ValueEnum;
use serde::Serialize;
use std::collections::HashSet;

/// The form of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Eight random bytes.
    U64,
    /// 4 to 128 random printable characters (ROART §4.2).
    Str,
    /// Eight random printable characters.
    Print8,
    /// The words from 1 on, big-endian, in random order (WORT §4).
    Dense,
    /// Evenly spaced words, big-endian, in random order (WORT §4); keys not loaded lie between loaded ones.
    Sparse,
    /// Runs of 64 consecutive words that begin at random words, all in random order (WORT §4).
    Clustered,
    /// `user` and 20 digits: YCSB's string keys of 24 bytes (RECIPE §7).
    Ycsb,
    /// The lines of the given file.
    File,
}

const PRINTABLE: std::ops::RangeInclusive<u8> = b'!'..=b'~';
const CHARACTERS: u64 = (*PRINTABLE.end() - *PRINTABLE.start() + 1) as u64;
pub(super) const MAX_LEN: usize = 128;
/// Random keys longer than this do not collide; shorter ones are checked.
const MAX_COLLIDING_LEN: usize = 16;
/// The number of consecutive words in a clustered run.
const RUN: u64 = 64;
/// The number of words in a range, within which a run lies: runs in different ranges share no word.
const RANGE: u64 = 1 << 16;

impl KeyKind {
    /// Returns whether every key has eight bytes.
    #[cfg(feature = "peers")]
    pub fn is_word(self) -> bool {
        !matches!(self, KeyKind::Str | KeyKind::Ycsb | KeyKind::File)
    }

    /// Returns the mean length, used to reserve memory.
    fn mean(self) -> usize {
        match self {
            KeyKind::Str => 67,
            KeyKind::Ycsb => 24,
            _ => 8,
        }
    }
}

/// Returns key number `i` of eight random bytes.
pub fn nth_u64(seed: u64, i: u64) -> [u8; 8] {
    mix(i ^ mix(seed)).to_be_bytes()
}

/// Returns key number `i` of eight printable characters.
fn nth_print8(seed: u64, i: u64) -> [u8; 8] {
    let mut word = permute(i, CHARACTERS.pow(8), seed);
    let mut key = [0; 8];
    for character in key.iter_mut().rev() {
        *character = PRINTABLE.start() + (word % CHARACTERS) as u8;
        word /= CHARACTERS;
    }
    key
}

/// Returns key number `i` of `loaded` evenly spaced words and `more` words between them. The two sets together are
/// evenly spaced as well. Each comes in random order.
fn nth_sparse(seed: u64, loaded: u64, more: u64, i: u64) -> [u8; 8] {
    let (loaded, more) = (u128::from(loaded), u128::from(more));
    let total = loaded + more;
    let place = |number: u64, of: u128, seed| u128::from(permute(number, of as u64, seed));
    // Of `t` places the `l` loaded words take `⌊jt/l⌋` for j from 0, the `m` others `⌈kt/m⌉ - 1` for k from 1.
    let at = if u128::from(i) < loaded {
        place(i, loaded, seed) * total / loaded
    } else {
        ((place(i - loaded as u64, more, !seed) + 1) * total).div_ceil(more) - 1
    };
    // Below 2^64, since `at` is below `total`.
    let word = (at << u64::BITS) / total;
    (word as u64).to_be_bytes()
}

/// Returns key number `i` of clustered words: each run has its own random range and begins at a random word in it.
fn nth_clustered(seed: u64, i: u64) -> [u8; 8] {
    let (run, word) = (i / RUN, i % RUN);
    let range = permute(run, u64::MAX / RANGE + 1, seed);
    let begin = mix(run ^ mix(seed)) % (RANGE - RUN);
    (range * RANGE + begin + word).to_be_bytes()
}

fn printable(random: &mut Random) -> u8 {
    PRINTABLE.start() + random.below(CHARACTERS) as u8
}

impl Keys {
    /// Generates `count` unique keys, numbered from zero in the order in which they are loaded.
    pub fn generate(kind: KeyKind, count: usize, seed: u64) -> Keys {
        Keys::generate_more(kind, count, 0, seed)
    }

    /// Generates `count` unique keys to load, and `more` keys that follow them; sparse keys lie between them instead.
    pub fn generate_more(kind: KeyKind, count: usize, more: usize, seed: u64) -> Keys {
        let total = count + more;
        let mut keys = Keys::with_capacity(total, total * kind.mean());
        let (loaded, mut random) = (count as u64, Random::new(seed));
        // Loaded keys come in random order where the kind would order them by number.
        let place = |i: u64| if i < loaded { permute(i, loaded, seed) } else { i };
        let mut short = HashSet::new();
        let mut string = [0; MAX_LEN];
        for i in 0..total as u64 {
            match kind {
                KeyKind::U64 => keys.push(&nth_u64(seed, i), i),
                KeyKind::Sparse => keys.push(&nth_sparse(seed, loaded, more as u64, i), i),
                KeyKind::Print8 => keys.push(&nth_print8(seed, i), i),
                KeyKind::Dense => keys.push(&(place(i) + 1).to_be_bytes(), i),
                KeyKind::Clustered => keys.push(&nth_clustered(seed, place(i)), i),
                KeyKind::Ycsb => keys.push(format!("user{:020}", mix(i ^ mix(seed))).as_bytes(), i),
                KeyKind::Str => loop {
                    let length = 4 + random.below(125) as usize;
                    let key = &mut string[..length];
                    key.fill_with(|| printable(&mut random));
                    if length > MAX_COLLIDING_LEN || short.insert(Box::<[u8]>::from(&*key)) {
                        keys.push(key, i);
                        break;
                    }
                },
                // Read from a file by `Keys::read`.
                KeyKind::File => break,
            }
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets of every kind hold unique keys of the documented form, and the same seed makes the same set.
    #[test]
    fn keys_are_unique_shaped_and_repeatable() {
        for &kind in KeyKind::value_variants() {
            if kind == KeyKind::File {
                continue;
            }
            let keys = Keys::generate_more(kind, 50_000, 1000, 7);
            let unique: HashSet<&[u8]> = keys.part(0, 1).iter().map(|(key, _)| key).collect();
            assert_eq!(unique.len(), 51_000, "{kind:?}");
            for key in &unique {
                match kind {
                    KeyKind::Str => assert!((4..=MAX_LEN).contains(&key.len())),
                    KeyKind::Ycsb => assert_eq!(key.len(), 24),
                    _ => assert_eq!(key.len(), 8, "{kind:?}"),
                }
                let text = matches!(kind, KeyKind::Str | KeyKind::Print8 | KeyKind::Ycsb);
                assert!(!text || key.iter().all(|byte| PRINTABLE.contains(byte)));
            }
            let all = |keys: &Keys| {
                keys.part(0, 1)
                    .iter()
                    .flat_map(|(key, _)| key.to_vec())
                    .collect::<Vec<u8>>()
            };
            assert_eq!(
                all(&keys),
                all(&Keys::generate_more(kind, 50_000, 1000, 7)),
                "{kind:?}"
            );
            if kind != KeyKind::Dense {
                assert_ne!(
                    all(&keys),
                    all(&Keys::generate_more(kind, 50_000, 1000, 8)),
                    "{kind:?}"
                );
            }
        }
    }

    fn words(keys: &Keys) -> Vec<u64> {
        let word = |key: &[u8]| u64::from_be_bytes(key.try_into().unwrap());
        keys.part(0, 1).iter().map(|(key, _)| word(key)).collect()
    }

    /// Dense keys are the words from 1 on, out of order; additional keys continue them.
    #[test]
    fn dense_keys_are_dense() {
        let mut words = words(&Keys::generate_more(KeyKind::Dense, 1000, 3, 1));
        assert_eq!(words.split_off(1000), [1001, 1002, 1003]);
        assert!(!words.is_sorted());
        words.sort_unstable();
        assert_eq!(words, (1..=1000).collect::<Vec<_>>());
    }

    /// Sparse keys are evenly spaced over all words, out of order: the loaded ones alone, the additional ones alone,
    /// and both together.
    #[test]
    fn sparse_keys_are_evenly_spaced() {
        let loaded = words(&Keys::generate(KeyKind::Sparse, 1024, 1));
        let alone: Vec<u64> = (0..1024).map(|i| permute(i, 1024, 1) << 54).collect();
        assert_eq!(loaded, alone);
        for (loaded, more) in [(1000, 24), (512, 512), (24, 1000), (1023, 1)] {
            let mut words = words(&Keys::generate_more(KeyKind::Sparse, loaded, more, 1));
            for part in [&words[..loaded], &words[loaded..]] {
                // Each eighth of the words holds an eighth of the keys, or one more.
                let count = |eighth| part.iter().filter(|word| **word >> 61 == eighth).count();
                let least = part.len() / 8;
                assert!(
                    (0..8)
                        .map(count)
                        .all(|count| (least..=least + 1).contains(&count))
                );
                assert!(part.len() < 2 || !part.is_sorted());
            }
            words.sort_unstable();
            assert_eq!(words, (0..1024).map(|i| i << 54).collect::<Vec<u64>>());
        }
    }

    /// Clustered keys come in runs of 64 that share no range. As many cross a multiple of 256 as expected by chance.
    #[test]
    fn clustered_keys_come_in_runs() {
        const RUNS: u64 = 1000;
        let mut words = words(&Keys::generate(KeyKind::Clustered, (RUNS * RUN) as usize, 1));
        assert!(!words.is_sorted());
        words.sort_unstable();
        let mut crossing = 0;
        for run in words.chunks(RUN as usize) {
            assert_eq!(run[63] - run[0], 63);
            assert_eq!(run[63] / RANGE, run[0] / RANGE);
            crossing += u64::from(run[63] / 256 != run[0] / 256);
        }
        let ranges: HashSet<u64> = words.iter().map(|word| word / RANGE).collect();
        assert_eq!(ranges.len() as u64, RUNS);
        // 63 of 256 beginnings cross. The keys, and so the count, are the same on every machine.
        assert!(
            (RUNS / 5..RUNS * 3 / 10).contains(&crossing),
            "{crossing} of {RUNS}"
        );
    }
}
