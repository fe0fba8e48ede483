//! The order of the leaves of an array.
//!
//! A leaf is represented by one word: the first bytes of its key after the common ones, inverted in a reverse scan,
//! above its number. Words are sorted by exchanges, without branches.

use crate::array::MAX_LEAVES;
use std::array::from_fn;

/// Number of leaves in a run at which no further item is taken.
pub(super) const RUN: usize = 24;
/// Room for the words of a run, and for padding sorted beside them.
pub(super) const BATCH: usize = 128;
const _: () = assert!(RUN + MAX_LEAVES + TWO_NETWORKS <= BATCH && BATCH.is_power_of_two());

/// The bits of a word that number a leaf.
pub(super) const NUMBER: u64 = BATCH as u64 - 1;

/// Number of words sorted by exchanges, in one step or in two: enough for nearly all arrays of random keys.
const NETWORK: usize = 8;
const TWO_NETWORKS: usize = 2 * NETWORK;

/// Sorts the `count` words from `from` on, which are those of one array, into `order` from `to` on; returns their
/// end. `key` returns the key of a word's leaf.
#[inline(always)]
pub(super) fn sort<'g>(
    words: &[u64; BATCH],
    from: usize,
    count: usize,
    order: &mut [u64; BATCH],
    to: usize,
    key: impl Fn(u64) -> &'g [u8],
    reverse: bool,
) -> usize {
    let (Some(unsorted), Some(sorted)) = (words.get(from..), order.get_mut(to..)) else {
        return to;
    };
    if count == 1 {
        sorted[0] = unsorted[0];
        return to + 1;
    }
    let same = if count <= NETWORK
        && let (Some(unsorted), Some(sorted)) = (unsorted.first_chunk(), sorted.first_chunk_mut())
    {
        *sorted = exchanged(filled::<NETWORK>(unsorted, count));
        have_same(sorted, count)
    } else if count <= TWO_NETWORKS
        && let (Some(unsorted), Some(sorted)) = (unsorted.first_chunk(), sorted.first_chunk_mut())
    {
        *sorted = exchanged_twice(&filled::<TWO_NETWORKS>(unsorted, count));
        have_same(sorted, count)
    } else {
        let sorted = &mut sorted[..count];
        sorted.copy_from_slice(&unsorted[..count]);
        sorted.sort_unstable();
        sorted.windows(2).any(|pair| pair[0] ^ pair[1] <= NUMBER)
    };
    let count = if same {
        by_keys(&mut sorted[..count], key, reverse)
    } else {
        count
    };
    to + count
}

/// The first `count` words, padded with words above all others.
#[inline(always)]
fn filled<const N: usize>(words: &[u64; N], count: usize) -> [u64; N] {
    from_fn(|i| if i < count { words[i] } else { u64::MAX })
}

/// Whether two of the first `count` words have the same key bytes; perhaps also if the last of them has the greatest
/// possible bytes.
#[inline(always)]
fn have_same<const N: usize>(sorted: &[u64; N], count: usize) -> bool {
    let same: usize = (1..N)
        .map(|i| usize::from(sorted[i - 1] ^ sorted[i] <= NUMBER))
        .sum();
    // The padding words are equal.
    same != (N - 1).saturating_sub(count)
}

/// Sorts again, by whole keys, and drops duplicates; returns the number of words left.
#[cold]
fn by_keys<'g>(words: &mut [u64], key: impl Fn(u64) -> &'g [u8], reverse: bool) -> usize {
    words.sort_unstable_by(|&a, &b| {
        let order = key(a).cmp(key(b));
        if reverse { order.reverse() } else { order }
    });
    // A duplicate key: it was removed meanwhile and inserted again, into another entry.
    let mut kept = 1;
    for i in 1..words.len() {
        if key(words[i]) != key(words[kept - 1]) {
            words[kept] = words[i];
            kept += 1;
        }
    }
    kept.min(words.len())
}

/// Exchanges the words at these places if they do not ascend.
macro_rules! exchange {
    ($words:ident: $($low:literal $high:literal),*) => {$(
        let (a, b) = ($words[$low], $words[$high]);
        ($words[$low], $words[$high]) = (a.min(b), a.max(b));
    )*};
}

/// Sorts by exchanges.
#[inline(always)]
fn exchanged(mut words: [u64; NETWORK]) -> [u64; NETWORK] {
    exchange!(words: 0 2, 1 3, 4 6, 5 7);
    exchange!(words: 0 4, 1 5, 2 6, 3 7);
    exchange!(words: 0 1, 2 3, 4 5, 6 7);
    exchange!(words: 2 4, 3 5);
    exchange!(words: 1 4, 3 6);
    exchange!(words: 1 2, 3 4, 5 6);
    words
}

/// Sorts each half, and merges them (Batcher's bitonic merge).
#[inline(never)]
fn exchanged_twice(words: &[u64; TWO_NETWORKS]) -> [u64; TWO_NETWORKS] {
    let low = exchanged(from_fn(|i| words[i]));
    let high = exchanged(from_fn(|i| words[NETWORK + i]));
    // The smaller half and the greater half, each of which is bitonic.
    let least = merged(from_fn(|i| low[i].min(high[NETWORK - 1 - i])));
    let max = merged(from_fn(|i| low[i].max(high[NETWORK - 1 - i])));
    from_fn(|i| if i < NETWORK { least[i] } else { max[i - NETWORK] })
}

/// Sorts a bitonic sequence: one that rises and then falls, or vice versa, wherever it begins.
#[inline(always)]
fn merged(mut words: [u64; NETWORK]) -> [u64; NETWORK] {
    exchange!(words: 0 4, 1 5, 2 6, 3 7);
    exchange!(words: 0 2, 1 3, 4 6, 5 7);
    exchange!(words: 0 1, 2 3, 4 5, 6 7);
    words
}

/// Eight bytes of the key from `from` on, as a number that orders keys; a key that ends among them is padded with
/// zeros.
#[inline(always)]
pub(super) fn first_bytes(key: &[u8], from: usize) -> u64 {
    let rest = key.get(from..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let bits = 8 * (8 - rest.len() as u32);
    if let Some(bytes) = key.last_chunk::<8>() {
        return u64::from_be_bytes(*bytes).checked_shl(bits).unwrap_or(0);
    }
    let mut bytes = [0; 8];
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of keys of a few bytes, duplicates included, ascend or descend, each key once.
    #[test]
    fn every_count_is_sorted() {
        let mut state = 1u64;
        for count in 0..=MAX_LEAVES {
            for kinds in [2, 5, 250] {
                let keys: Vec<Vec<u8>> = (0..count)
                    .map(|i| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let byte = (state >> 33) % kinds;
                        // Longer than the part of it in a word, and the greatest bytes among them.
                        let byte = if byte + 1 == kinds { 255 } else { byte as u8 };
                        [vec![byte; 7], vec![0; i % 3]].concat()
                    })
                    .collect();
                for reverse in [false, true] {
                    let flip = if reverse { u64::MAX } else { 0 };
                    let (mut words, mut order) = ([0; BATCH], [0; BATCH]);
                    for (i, key) in keys.iter().enumerate() {
                        words[3 + i] = (first_bytes(key, 0) ^ flip) & !NUMBER | i as u64;
                    }
                    let key = |word: u64| keys[(word & NUMBER) as usize].as_slice();
                    let end = sort(&words, 3, count, &mut order, 2, key, reverse);
                    let sorted: Vec<&[u8]> = order[2..end].iter().map(|&word| key(word)).collect();
                    let mut wanted: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                    wanted.sort_unstable();
                    wanted.dedup();
                    if reverse {
                        wanted.reverse();
                    }
                    assert_eq!(sorted, wanted, "of {count}");
                }
            }
        }
    }
}
