//! Hostile keys: small sets, of forms that make indexes split, merge and compress around them.

use crate::random::Random;

/// Minimum and maximum number of keys in a set.
const MIN_KEYS: usize = 4;
const MAX_KEYS: usize = 16;

/// The last byte of the neighbours' keys. No hot key ends with it.
const MARK: u8 = b'~';

/// Returns a set of 4 to 16 different keys, in order.
pub(super) fn hostile(random: &mut Random) -> Vec<Vec<u8>> {
    let count = MIN_KEYS + random.index(MAX_KEYS - MIN_KEYS + 1);
    let families = [prefixes, stems, last_bytes, around_eight, extreme_bytes];
    let mixed = random.one_in(4);
    let family = random.pick(&families);
    let mut keys = Vec::new();
    while keys.len() < count {
        let family = if mixed { random.pick(&families) } else { family };
        keys.push(family(random, count));
        keys.sort();
        keys.dedup();
    }
    keys
}

/// Keys that are prefixes of each other; the empty key may be among them.
fn prefixes(random: &mut Random, count: usize) -> Vec<u8> {
    b"abcdefghijklmnopqrstuvwxyz"[..random.index(count + 8)].to_vec()
}

/// Keys with one of two long stems, the shorter a prefix of the longer, and a suffix of up to three bytes.
fn stems(random: &mut Random, _: usize) -> Vec<u8> {
    let stem = random.pick(&[40, 300]);
    let rest = random.pick(&[&b""[..], b"x", b"xy", b"xyz", b"y", b"yz", b"z", b"zz"]);
    [&b"stem".repeat(stem / 4), rest].concat()
}

/// Keys of eight or nine bytes. Those of the same length differ in the last byte alone.
fn last_bytes(random: &mut Random, _: usize) -> Vec<u8> {
    let stem = random.pick(&[&b"1234567"[..], b"12345678"]);
    [stem, &[random.pick(&[0, 1, 2, 3, 0x7f, 0x80, 0x81, 0xfe, 0xff])]].concat()
}

/// Keys of 16 bytes that differ only at offsets 7 to 9, around the end of the first word.
fn around_eight(random: &mut Random, _: usize) -> Vec<u8> {
    let mut key = b"0123456789abcdef".to_vec();
    key[random.pick(&[7, 8, 8, 9])] = random.pick(&[0, 1, 0x7f, 0x80, b'A', b'B', 0xfe, 0xff]);
    key
}

/// Keys of 0x00 bytes only or of 0xff bytes only.
fn extreme_bytes(random: &mut Random, count: usize) -> Vec<u8> {
    vec![random.pick(&[0, 0xff]); random.index(count)]
}

/// Returns the neighbours of a hot key, which extend it. Writing them grows and shrinks the nodes that hot keys share.
pub(super) fn neighbours(hot: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    (0..=u8::MAX).map(move |byte| [hot, &[byte, MARK]].concat())
}

pub(super) fn is_neighbour(key: &[u8]) -> bool {
    key.last() == Some(&MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sets are small, in order and without duplicates, and no hot key looks like a neighbour. The empty key occurs.
    #[test]
    fn sets_are_small_and_in_order() {
        let mut empty = 0;
        for seed in 0..500 {
            let keys = hostile(&mut Random::new(seed, 1));
            assert!((MIN_KEYS..=MAX_KEYS).contains(&keys.len()));
            assert!(keys.is_sorted_by(|a, b| a < b));
            assert!(!keys.iter().any(|key| is_neighbour(key)));
            empty += usize::from(keys[0].is_empty());
        }
        assert!(empty > 50, "{empty}");
    }
}
