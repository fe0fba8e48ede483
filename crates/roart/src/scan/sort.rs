//! The order of the leaves of an array.
//!
//! A leaf is one word: the first bytes of its key that not all share, inverted where a scan goes downward,
//! above its number. Words are sorted by exchanges, without branches.

use crate::array::MAX_LEAVES;
use std::array::from_fn;

/// Leaves of a run beside which no further item is taken.
pub(super) const RUN: usize = 24;
/// Room for the words of a run, and for those that are sorted beside them.
pub(super) const BATCH: usize = 128;
const _: () = assert!(RUN + MAX_LEAVES + TWICE <= BATCH && BATCH.is_power_of_two());

/// The bits of a word that number a leaf.
pub(super) const NUMBER: u64 = BATCH as u64 - 1;

/// How many are sorted by exchanges, in one go or two: the leaves of nearly all arrays of random keys.
const FEW: usize = 8;
const TWICE: usize = 2 * FEW;

/// Sorts the `count` words from `from` on, which are those of one array, into `order` from `to` on; returns
/// where they end. `key` gives the key of a word's leaf.
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
    let same = if count <= FEW
        && let (Some(unsorted), Some(sorted)) = (unsorted.first_chunk(), sorted.first_chunk_mut())
    {
        *sorted = exchanged(filled::<FEW>(unsorted, count));
        have_same(sorted, count)
    } else if count <= TWICE
        && let (Some(unsorted), Some(sorted)) = (unsorted.first_chunk(), sorted.first_chunk_mut())
    {
        *sorted = exchanged_twice(&filled::<TWICE>(unsorted, count));
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

/// The first `count` words, and behind them such as lie behind all others.
#[inline(always)]
fn filled<const N: usize>(words: &[u64; N], count: usize) -> [u64; N] {
    from_fn(|i| if i < count { words[i] } else { u64::MAX })
}

/// Whether two of the first `count` words have the same bytes of a key; perhaps also where the last of them
/// has the greatest bytes there are.
#[inline(always)]
fn have_same<const N: usize>(sorted: &[u64; N], count: usize) -> bool {
    let same: usize = (1..N)
        .map(|i| usize::from(sorted[i - 1] ^ sorted[i] <= NUMBER))
        .sum();
    // Those behind are the same.
    same != (N - 1).saturating_sub(count)
}

/// Sorts anew, by whole keys; returns how many there are.
#[cold]
fn by_keys<'g>(words: &mut [u64], key: impl Fn(u64) -> &'g [u8], reverse: bool) -> usize {
    words.sort_unstable_by(|&a, &b| {
        let order = key(a).cmp(key(b));
        if reverse { order.reverse() } else { order }
    });
    // A key twice: it was removed and inserted again, into another entry, meanwhile.
    let mut kept = 1;
    for i in 1..words.len() {
        if key(words[i]) != key(words[kept - 1]) {
            words[kept] = words[i];
            kept += 1;
        }
    }
    kept.min(words.len())
}

/// Exchanges those at these places that do not ascend.
macro_rules! exchange {
    ($words:ident: $($low:literal $high:literal),*) => {$(
        let (a, b) = ($words[$low], $words[$high]);
        ($words[$low], $words[$high]) = (a.min(b), a.max(b));
    )*};
}

/// Sorts by exchanges.
#[inline(always)]
fn exchanged(mut words: [u64; FEW]) -> [u64; FEW] {
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
fn exchanged_twice(words: &[u64; TWICE]) -> [u64; TWICE] {
    let low = exchanged(from_fn(|i| words[i]));
    let high = exchanged(from_fn(|i| words[FEW + i]));
    // The lesser half and the greater, each of which rises and then falls, or falls and then rises.
    let least = merged(from_fn(|i| low[i].min(high[FEW - 1 - i])));
    let max = merged(from_fn(|i| low[i].max(high[FEW - 1 - i])));
    from_fn(|i| if i < FEW { least[i] } else { max[i - FEW] })
}

/// Sorts what rises and then falls, or falls and then rises, wherever it begins.
#[inline(always)]
fn merged(mut words: [u64; FEW]) -> [u64; FEW] {
    exchange!(words: 0 4, 1 5, 2 6, 3 7);
    exchange!(words: 0 2, 1 3, 4 6, 5 7);
    exchange!(words: 0 1, 2 3, 4 5, 6 7);
    words
}

/// Eight bytes of the key from `from` on, as they order keys; a key that ends among them is filled up with
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

    /// Words of keys of a few bytes, the same ones among them, ascend or descend, each key once.
    #[test]
    fn every_count_is_sorted() {
        let mut state = 1u64;
        for count in 0..=MAX_LEAVES {
            for kinds in [2, 5, 250] {
                let keys: Vec<Vec<u8>> = (0..count)
                    .map(|i| {
                        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                        let byte = (state >> 33) % kinds;
                        // Longer than what a word has of it, and the greatest bytes among them.
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
