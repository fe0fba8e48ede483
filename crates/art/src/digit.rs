//! Keys as strings of digits; each node branches on one of them.

use crate::common_prefix;
use std::fmt::Debug;

/// The division of a key into digits, most significant first.
pub trait Digit: Copy + Debug + Eq + Send + Sync + 'static {
    /// Bits of a digit.
    const BITS: u32;

    /// Number of possible digits.
    const RADIX: usize = 1 << Self::BITS;

    /// Digit `i`; `None` after the key's end.
    fn at(key: &[u8], i: usize) -> Option<u8>;

    /// Number of digits of a key.
    fn count(key: &[u8]) -> usize;

    /// Number of digits in the common prefix of two keys.
    fn shared(a: &[u8], b: &[u8]) -> usize;
}

/// Bytes (ART).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Byte;

impl Digit for Byte {
    const BITS: u32 = 8;

    #[inline(always)]
    fn at(key: &[u8], i: usize) -> Option<u8> {
        key.get(i).copied()
    }

    #[inline(always)]
    fn count(key: &[u8]) -> usize {
        key.len()
    }

    #[inline]
    fn shared(a: &[u8], b: &[u8]) -> usize {
        common_prefix(a, b)
    }
}

/// Half-bytes, the high one of each byte first (WORT §5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HalfByte;

impl Digit for HalfByte {
    const BITS: u32 = 4;

    #[inline(always)]
    fn at(key: &[u8], i: usize) -> Option<u8> {
        let byte = *key.get(i / 2)?;
        Some(if i.is_multiple_of(2) { byte >> 4 } else { byte & 15 })
    }

    #[inline(always)]
    fn count(key: &[u8]) -> usize {
        2 * key.len()
    }

    #[inline]
    fn shared(a: &[u8], b: &[u8]) -> usize {
        let bytes = common_prefix(a, b);
        let high = match (a.get(bytes), b.get(bytes)) {
            (Some(a), Some(b)) => a >> 4 == b >> 4,
            _ => false,
        };
        2 * bytes + usize::from(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agrees_with_its_digits<D: Digit>() {
        let digits = |key: &[u8]| (0..).map_while(|i| D::at(key, i)).collect::<Vec<_>>();
        let keys: Vec<Vec<u8>> = (0..=255)
            .flat_map(|byte| [vec![byte], vec![byte, 0], vec![0, byte], vec![16, byte, 16]])
            .collect();
        for a in &keys {
            assert_eq!(digits(a).len(), D::count(a));
            assert!(digits(a).iter().all(|&digit| usize::from(digit) < D::RADIX));
            for b in &keys {
                assert_eq!(digits(a).cmp(&digits(b)), a.cmp(b));
                let shared = digits(a)
                    .iter()
                    .zip(digits(b))
                    .take_while(|(x, y)| *x == y)
                    .count();
                assert_eq!(D::shared(a, b), shared, "{a:?} {b:?}");
            }
        }
    }

    /// Strings of digits are ordered like keys, and have the same common prefixes.
    #[test]
    fn digits_order_keys_as_bytes_do() {
        agrees_with_its_digits::<Byte>();
        agrees_with_its_digits::<HalfByte>();
    }
}
