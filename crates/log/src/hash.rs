//! The hash of a fragment's body: XXH3 of 64 bits, without a seed.
//!
//! A value of a hundred bytes makes a body of 129 to 240 bytes with a key and a map's name of 21 to 132 bytes together
//! (`docs/format.md`). The crate's function for these lengths
//! takes its rounds in loops over any secret and any seed. Here both are constants, and a hash takes half as many
//! instructions.

use xxhash_rust::const_xxh3::const_custom_default_secret;
use xxhash_rust::xxh3::xxh3_64;

/// Bytes of the rounds that all middle lengths have.
const FIRST: usize = 128;

/// Maximum bytes after these.
const MAX_REST: usize = 112;

/// The two words of the secret for a round.
type Words = [u64; 2];

/// The secret that the algorithm names as the default.
const SECRET: [u8; 192] = const_custom_default_secret(0);

/// The secret's words for the first rounds, for those that follow, and for the last sixteen bytes.
const FIRST_WORDS: [Words; FIRST / 16] = rounds(0);
const REST_WORDS: [Words; MAX_REST / 16] = rounds(3);
const LAST_WORDS: [Words; 1] = rounds(119);

/// Returns the secret's words for consecutive rounds, from a byte of the secret on.
const fn rounds<const N: usize>(at: usize) -> [Words; N] {
    let mut rounds = [[0; 2]; N];
    let mut i = 0;
    while i < N {
        rounds[i] = [word(at + 16 * i), word(at + 16 * i + 8)];
        i += 1;
    }
    rounds
}

const fn word(at: usize) -> u64 {
    match SECRET.split_at(at).1.first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes),
        None => panic!("a word within the secret"),
    }
}

/// Hashes the bytes.
#[inline]
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    match (bytes.split_first_chunk(), bytes.last_chunk()) {
        (Some((first, rest)), Some(last)) if (1..=MAX_REST).contains(&rest.len()) => {
            middle(first, rest, last)
        }
        _ => xxh3_64(bytes),
    }
}

/// Hashes 129 to 240 bytes: `first` and `rest`, which end with `last`.
fn middle(first: &[u8; FIRST], rest: &[u8], last: &[u8; 16]) -> u64 {
    const LENGTH_FACTOR: u64 = 0x9e37_79b1_85eb_ca87;
    let mut sum = ((FIRST + rest.len()) as u64).wrapping_mul(LENGTH_FACTOR);
    for (bytes, words) in first.as_chunks().0.iter().zip(&FIRST_WORDS) {
        sum = sum.wrapping_add(round(bytes, words));
    }
    sum = spread(sum);
    for (bytes, words) in rest.as_chunks().0.iter().zip(&REST_WORDS) {
        sum = sum.wrapping_add(round(bytes, words));
    }
    spread(sum.wrapping_add(round(last, &LAST_WORDS[0])))
}

/// Multiplies sixteen bytes, each half with the secret in it, to 128 bits, and folds the product's halves.
#[inline]
fn round(bytes: &[u8; 16], words: &Words) -> u64 {
    let bytes = u128::from_le_bytes(*bytes);
    let [low, high] = [bytes as u64 ^ words[0], (bytes >> 64) as u64 ^ words[1]];
    let product = u128::from(low) * u128::from(high);
    product as u64 ^ (product >> 64) as u64
}

/// Lets each bit of the sum change all bits of the hash.
#[inline]
fn spread(sum: u64) -> u64 {
    const FACTOR: u64 = 0x1656_6791_9e37_79f9;
    let product = (sum ^ sum >> 37).wrapping_mul(FACTOR);
    product ^ product >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of bytes of any length is that of the crate.
    #[test]
    fn it_is_xxh3() {
        let bytes: Vec<u8> = (0..600u32)
            .map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8)
            .collect();
        for len in 0..=300 {
            for from in [0, 1, 7, 300] {
                let bytes = &bytes[from..][..len];
                assert_eq!(hash(bytes), xxh3_64(bytes), "{len} bytes from {from}");
            }
        }
    }
}
