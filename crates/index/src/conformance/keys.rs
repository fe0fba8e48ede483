//! Key families: sets of distinct keys, each hostile in its own way.

use super::Random;
use crate::MAX_KEY;

/// Makes about this many distinct keys, in no particular order.
pub type Family = fn(&mut Random, usize) -> Vec<Vec<u8>>;

fn distinct(mut keys: Vec<Vec<u8>>, random: &mut Random) -> Vec<Vec<u8>> {
    keys.sort_unstable();
    keys.dedup();
    random.shuffle(&mut keys);
    keys
}

/// Random bytes, 0 to 20 long.
pub(super) fn random_bytes(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    let keys = (0..count).map(|_| {
        let len = random.below(21);
        random.bytes(len)
    });
    distinct(keys.collect(), random)
}

/// Keys of 9 bytes that differ from a common one in a single byte, which takes all 256 values at each position, and
/// their prefixes that end with that byte.
pub(super) fn every_byte(random: &mut Random, _count: usize) -> Vec<Vec<u8>> {
    let base = random.bytes(9);
    let mut keys = Vec::new();
    for position in 0..base.len() {
        for byte in 0..=255 {
            let mut key = base.clone();
            key[position] = byte;
            keys.push(key.clone());
            key.truncate(position + 1);
            keys.push(key);
        }
    }
    distinct(keys, random)
}

/// Keys of bytes 0x00 and 0xff only, including the empty key.
pub(super) fn extreme_bytes(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for len in 0..(count / 8).min(300) {
        keys.extend([vec![0; len], vec![0xff; len]]);
    }
    while keys.len() < count {
        let len = random.below(14);
        keys.push((0..len).map(|_| *random.pick(&[0, 0xff])).collect());
    }
    distinct(keys, random)
}

/// Each key a prefix of the next: "", "a", "aa", and so on.
pub(super) fn chain(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    distinct((0..count).map(|len| vec![b'a'; len]).collect(), random)
}

/// Keys of up to 64 KiB that part at the first, a middle or the last byte, and prefixes of these.
pub(super) fn long(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    let base = random.bytes(MAX_KEY);
    let keys = (0..count).map(|_| {
        let mut key = base.clone();
        match random.below(4) {
            0 => key[0] = random.number() as u8,
            1 => key[MAX_KEY - 1] = random.number() as u8,
            2 => key[random.below(MAX_KEY)] ^= 1,
            _ => key.truncate(random.below(MAX_KEY)),
        }
        key
    });
    distinct(keys.collect(), random)
}

/// Paths: long shared prefixes, few branches.
pub(super) fn paths(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    const NAMES: [&str; 8] = [
        "share",
        "documentation",
        "lib",
        "x86_64-linux-gnu",
        "python3.11",
        "site-packages",
        "a",
        "index.html",
    ];
    let keys = (0..count).map(|i| {
        let mut path = b"/usr".to_vec();
        for _ in 0..random.below(9) {
            path.push(b'/');
            path.extend(random.pick(&NAMES).bytes());
        }
        if random.one_in(2) {
            path.extend(format!("-{}", i % 200).bytes());
        }
        path
    });
    distinct(keys.collect(), random)
}

/// Consecutive 8-byte numbers, with a carry into the higher bytes among them.
pub(super) fn dense(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    let first = (1 << 24) - count as u64 / 2;
    distinct(
        (0..count as u64)
            .map(|i| (first + i).to_be_bytes().to_vec())
            .collect(),
        random,
    )
}

/// Random 8-byte numbers.
pub(super) fn numbers(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    distinct(
        (0..count)
            .map(|_| random.number().to_be_bytes().to_vec())
            .collect(),
        random,
    )
}

/// Up to 12 bytes from an alphabet of three: subtrees and leaf arrays fill early and unevenly.
pub(super) fn few_bytes(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    let keys = (0..count).map(|_| {
        let len = random.below(13);
        (0..len).map(|_| *random.pick(&[0, 1, 0x80])).collect()
    });
    distinct(keys.collect(), random)
}

/// Few nodes, each with up to 256 children.
pub(super) fn fans(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    let mut keys = Vec::new();
    for fan in 0..count.div_ceil(512) as u8 {
        for byte in 0..=255 {
            keys.push(vec![fan % 3, b'-', fan, byte]);
            keys.push([&[fan % 3, b'-', fan, byte][..], b"-deeper"].concat());
        }
    }
    keys.truncate(count);
    distinct(keys, random)
}

/// Some of each.
pub(super) fn mixed(random: &mut Random, count: usize) -> Vec<Vec<u8>> {
    let families: [Family; 8] = [
        random_bytes,
        every_byte,
        extreme_bytes,
        paths,
        dense,
        numbers,
        few_bytes,
        fans,
    ];
    let mut keys = chain(random, count.min(200));
    for family in families {
        keys.extend(family(random, count / 8).into_iter().take(count / 8));
    }
    keys.extend(long(random, 4));
    distinct(keys, random)
}
