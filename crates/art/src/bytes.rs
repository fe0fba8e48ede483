//! Bytes in words, eight per word: partial keys, and the child index of an N48.
//!
//! The child index has a byte for each key byte, which holds the slot of its child. If an index word is a commit
//! word, whose lowest bit is reserved, the byte is twice the slot's number, counted from 1; zero: no child.

/// Byte number `at` of a byte array in words, given the `word` that contains it.
#[inline(always)]
pub const fn byte_at(word: u64, at: usize) -> u8 {
    (word >> shift(at)) as u8
}

/// `word` with that byte replaced.
#[inline(always)]
pub const fn with_byte(word: u64, at: usize, byte: u8) -> u64 {
    word & !(0xff << shift(at)) | (byte as u64) << shift(at)
}

const fn shift(at: usize) -> u32 {
    (at % 8 * 8) as u32
}

/// Marks the bytes of `word` that equal `byte`, by their highest bits. Beyond the first there may be false matches.
#[inline(always)]
pub const fn bytes_like(word: u64, byte: u8) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    let apart = word ^ (EACH * byte as u64);
    apart.wrapping_sub(EACH) & !apart & EACH << 7
}

/// The index of the word of a child index that has the byte for a key byte.
#[inline(always)]
pub const fn index_word(byte: u8) -> usize {
    byte as usize / 8
}

/// The slot that a word of a child index holds for `byte`.
#[inline(always)]
pub const fn named(word: u64, byte: u8) -> Option<usize> {
    ((byte_at(word, byte as usize) >> 1) as usize).checked_sub(1)
}

/// `word` with another slot for `byte`, one of the first 127, or none.
#[inline(always)]
pub const fn naming(word: u64, byte: u8, slot: Option<usize>) -> u64 {
    let name = match slot {
        Some(slot) => (slot as u8 + 1) << 1,
        None => 0,
    };
    with_byte(word, byte as usize, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_in_words() {
        let word = u64::from_le_bytes([7, 0, 255, 7, 1, 8, 128, 6]);
        for (at, byte) in word.to_le_bytes().into_iter().enumerate() {
            let found = bytes_like(word, byte);
            assert_ne!(found & 0x80 << (8 * at), 0, "{byte}");
            let first = found.trailing_zeros() as usize / 8;
            assert_eq!(byte_at(word, first), byte);
        }
        assert_eq!(bytes_like(word, 2), 0);
    }

    #[test]
    fn bytes_change_alone() {
        let word = 0x8877_6655_4433_2211;
        for at in 0..32 {
            assert_eq!(byte_at(word, at), 0x11 * (at as u8 % 8 + 1));
            let changed = with_byte(word, at, 0xfe);
            for other in at / 8 * 8..at / 8 * 8 + 8 {
                let expected = if other == at { 0xfe } else { byte_at(word, other) };
                assert_eq!(byte_at(changed, other), expected);
            }
        }
    }

    #[test]
    fn an_index_word_names_slots() {
        for byte in 0..=255 {
            for slot in 0..48 {
                let word = naming(0, byte, Some(slot));
                assert_eq!(word & 1, 0);
                assert_eq!(named(word, byte), Some(slot));
                assert_eq!(named(word, byte ^ 1), None);
                assert_eq!(naming(word, byte, None), 0);
            }
        }
    }
}
