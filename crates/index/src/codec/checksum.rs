//! Hashes that are stored, and so must never change.

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A 64-bit checksum of some bytes, stable across machines and releases.
#[inline]
pub fn checksum(bytes: &[u8]) -> u64 {
    if let Ok(word) = bytes.try_into() {
        // The most frequent length of keys, without a loop.
        return mix(mix(8 ^ MULTIPLIER ^ u64::from_le_bytes(word)));
    }
    let mut hash = bytes.len() as u64 ^ MULTIPLIER;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = mix(hash ^ u64::from_le_bytes(*word));
    }
    mix(hash ^ last_word(bytes, rest))
}

/// The `rest` of `bytes` behind their whole words, padded with zeros: uses loads of known length, without a call.
#[inline(always)]
fn last_word(bytes: &[u8], rest: &[u8]) -> u64 {
    if let Some(last) = bytes.last_chunk::<8>() {
        // The remaining bytes come last.
        return u64::from_le_bytes(*last) >> (8 * (7 - rest.len())) >> 8;
    }
    let len = rest.len();
    if let (Some(first), Some(last)) = (rest.first_chunk::<4>(), rest.last_chunk::<4>()) {
        let [first, last] = [first, last].map(|half| u64::from(u32::from_le_bytes(*half)));
        return first | last << (8 * (len - 4));
    }
    match *rest {
        [] => 0,
        _ => [0, len / 2, len - 1]
            .iter()
            .fold(0, |word, &at| word | u64::from(rest[at]) << (8 * at)),
    }
}

/// Multiplies to 128 bits and folds the halves.
#[inline]
fn mix(word: u64) -> u64 {
    let product = u128::from(word) * u128::from(MULTIPLIER);
    product as u64 ^ (product >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checksums are part of the format: these values may never change.
    #[test]
    fn checksums_are_stable() {
        let sums = [&b""[..], b"a", b"\xff", b"abcdefgh", b"abcdefghi"].map(checksum);
        assert_eq!(sums.map(|sum| sum >> 48), [48780, 21977, 16491, 3983, 11563]);
    }

    /// The last word is the rest, padded with zeros.
    #[test]
    fn the_last_word_is_padded() {
        let bytes: Vec<u8> = (0..40_u8).map(|i| 0x91 ^ i.wrapping_mul(7)).collect();
        for len in 0..=bytes.len() {
            let bytes = &bytes[..len];
            let rest = bytes.as_chunks::<8>().1;
            let mut padded = [0; 8];
            padded[..rest.len()].copy_from_slice(rest);
            assert_eq!(last_word(bytes, rest), u64::from_le_bytes(padded), "{len}");
        }
    }

    /// Every byte value at every position of a 9-byte key distinguishes keys, signed or not.
    #[test]
    fn each_byte_counts() {
        for position in 0..9 {
            let prints: std::collections::HashSet<u64> = (0..=255)
                .map(|byte| {
                    let mut key = [7; 9];
                    key[position] = byte;
                    checksum(&key)
                })
                .collect();
            assert_eq!(prints.len(), 256);
        }
    }
}
