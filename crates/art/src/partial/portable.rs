//! The search without special instructions.

use super::Width;

/// The bits that `mask` selects, run by run.
#[inline]
pub(super) fn extract(word: u64, mask: u64) -> u64 {
    let (mut left, mut taken, mut place) = (mask, 0, 0);
    while left != 0 {
        let start = left.trailing_zeros();
        let run = (left >> start).trailing_ones();
        let ones = u64::MAX >> (64 - run);
        taken |= (word >> start & ones) << place;
        place += run;
        left &= !(ones << start);
    }
    taken
}

/// The dense partial key: the selected bits of each word, those of the first word in the highest places.
#[inline(always)]
pub(super) fn dense(words: &[u64], masks: &[u64], extract: impl Fn(u64, u64) -> u64) -> u64 {
    let mut dense = 0_u64;
    for (&word, &mask) in words.iter().zip(masks) {
        dense = dense.checked_shl(mask.count_ones()).unwrap_or(0) | extract(word, mask);
    }
    dense
}

pub(super) fn subsets(words: &[u64], masks: &[u64], partials: &[u8], width: Width) -> u64 {
    let lacking = !dense(words, masks, extract);
    let mut found = 0;
    for (i, partial) in partials.chunks_exact(width.bytes()).enumerate() {
        let mut bytes = [0; 8];
        bytes[..partial.len()].copy_from_slice(partial);
        found |= u64::from(u64::from_le_bytes(bytes) & lacking == 0) << i;
    }
    found
}
