//! Hashes that are stored, and so never change.

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// A 64-bit checksum of some bytes, stable across machines and releases.
#[inline]
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut hash = bytes.len() as u64 ^ MULTIPLIER;
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        hash = mix(hash ^ u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash ^ u64::from_le_bytes(last))
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

    /// Every byte value at every position of an 8-byte key tells keys apart, signed or not.
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
