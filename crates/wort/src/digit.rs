//! Keys as strings of digits: half-bytes in WORT, bytes in WOART and ART+CoW.

/// How a key is cut into digits, the first of which orders keys most.
pub(crate) trait Digit: Copy + std::fmt::Debug + Eq + Send + Sync + 'static {
    /// Bits of a digit.
    const BITS: u32;
    /// Bits that count the digits of the longest key.
    const COUNT_BITS: u32;

    /// Digit `i`; `None` where the key has ended.
    fn at(key: &[u8], i: usize) -> Option<u8>;

    /// How many digits two keys share at their start.
    fn shared(a: &[u8], b: &[u8]) -> usize;
}

/// Half-bytes, the high one of each byte first (WORT §5.1: nodes of 2^4 children).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HalfByte;

impl Digit for HalfByte {
    const BITS: u32 = 4;
    const COUNT_BITS: u32 = 17;

    #[inline(always)]
    fn at(key: &[u8], i: usize) -> Option<u8> {
        let byte = *key.get(i / 2)?;
        Some(if i.is_multiple_of(2) { byte >> 4 } else { byte & 15 })
    }

    #[inline]
    fn shared(a: &[u8], b: &[u8]) -> usize {
        let bytes = art::common_prefix(a, b);
        let high = match (a.get(bytes), b.get(bytes)) {
            (Some(a), Some(b)) => a >> 4 == b >> 4,
            _ => false,
        };
        2 * bytes + usize::from(high)
    }
}

const _: () = assert!(2 * index::MAX_KEY < 1 << HalfByte::COUNT_BITS);

/// Bytes (WORT §3.5: nodes of up to 2^8 children).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Byte;

impl Digit for Byte {
    const BITS: u32 = 8;
    const COUNT_BITS: u32 = 16;

    #[inline(always)]
    fn at(key: &[u8], i: usize) -> Option<u8> {
        key.get(i).copied()
    }

    #[inline]
    fn shared(a: &[u8], b: &[u8]) -> usize {
        art::common_prefix(a, b)
    }
}

const _: () = assert!(index::MAX_KEY < 1 << Byte::COUNT_BITS);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_bytes_order_keys_as_bytes_do() {
        let digits = |key: &[u8]| (0..).map_while(|i| HalfByte::at(key, i)).collect::<Vec<_>>();
        assert_eq!(digits(b""), [0; 0]);
        assert_eq!(digits(b"\x01\xf0"), [0, 1, 15, 0]);
        let keys: Vec<Vec<u8>> = (0..=255)
            .flat_map(|byte| [vec![byte], vec![byte, 0], vec![0, byte], vec![16, byte, 16]])
            .collect();
        for a in &keys {
            for b in &keys {
                assert_eq!(digits(a).cmp(&digits(b)), a.cmp(b));
                let shared = digits(a).iter().zip(digits(b)).take_while(|(x, y)| *x == y).count();
                assert_eq!(HalfByte::shared(a, b), shared, "{a:?} {b:?}");
            }
        }
    }
}
