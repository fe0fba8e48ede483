//! Positions: the bits of keys, numbered so that any two keys differ in one.
//!
//! HOT requires keys of which none is a prefix of another. So each byte of a key is a symbol of nine bits: a
//! *continuation bit*, which says that the key has this byte, and the byte. After the key's end all bits are zero.
//! The order of these bit strings is that of the keys' bytes, with prefixes first.

use art::common_prefix;

/// The number of a bit: nine times the number of its byte; plus, for a bit of the byte itself, 1 (the highest) to 8.
pub(super) type Position = u32;

/// Bits per symbol.
const SYMBOL: usize = 9;

/// The position of the continuation bit of a byte.
pub(super) const fn continuation_bit(byte: usize) -> Position {
    (byte * SYMBOL) as Position
}

/// The position of the bit of a byte that has this many higher bits.
pub(super) const fn bit_of(byte: usize, higher: u32) -> Position {
    continuation_bit(byte) + 1 + higher
}

/// The byte of a position, and the number of higher bits in that byte; `None` for the continuation bit.
pub(super) const fn parts(position: Position) -> (usize, Option<u32>) {
    let (byte, bit) = (position as usize / SYMBOL, position % SYMBOL as Position);
    (byte, bit.checked_sub(1))
}

/// The bit of a key there.
pub(super) fn bit(key: &[u8], position: Position) -> bool {
    match parts(position) {
        (byte, None) => key.len() > byte,
        (byte, Some(higher)) => key.get(byte).is_some_and(|byte| byte << higher & 0x80 != 0),
    }
}

/// The first position at which two keys differ; `None` if they are the same.
#[inline]
pub(super) fn first_difference(a: &[u8], b: &[u8]) -> Option<Position> {
    let shared = common_prefix(a, b);
    match (a.get(shared), b.get(shared)) {
        (None, None) => None,
        (Some(a), Some(b)) => Some(bit_of(shared, (a ^ b).leading_zeros())),
        _ => Some(continuation_bit(shared)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At the first difference the greater key has a one and the other a zero, for all keys.
    #[test]
    fn bits_are_in_the_order_of_keys() {
        let parts: [&[u8]; 8] = [b"", b"\0", b"\xff", b"a", b"b", b"ab", b"\0\0", b"\x80"];
        let keys: Vec<Vec<u8>> = parts
            .iter()
            .flat_map(|a| parts.iter().map(move |b| [*a, *b].concat()))
            .chain([vec![0; 65_535], vec![0; 65_534], vec![255; 65_535]])
            .collect();
        for a in &keys {
            for b in &keys {
                let Some(first) = first_difference(a, b) else {
                    assert_eq!(a, b);
                    continue;
                };
                assert_eq!((bit(a, first), bit(b, first)), (a > b, b > a), "{a:x?} {b:x?}");
                for before in first.saturating_sub(30)..first {
                    assert_eq!(bit(a, before), bit(b, before), "{a:x?} {b:x?}");
                }
            }
        }
    }
}
