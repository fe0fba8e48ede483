//! Key words: a short key, except for its first byte, and the state of its entry.
//!
//! ```text
//!  63                            8 7     5   4     3        2       1      0
//! +-------------------------------+-------+---+--------+---------+------+------+
//! |  bytes 1 to 7, zeros behind   | count | 0 | parity | present | used | mark |
//! +-------------------------------+-------+---+--------+---------+------+------+
//! ```
//!
//! *Count* is the number of these bytes, so that words are ordered like their keys. The word of a never-used entry is
//! zero. *Parity* makes the number of set bits even, not counting the mark.

/// The store of the entry may not be durable.
pub(crate) const MARK: u64 = 1;
const USED: u64 = 1 << 1;
const PRESENT: u64 = 1 << 2;
const PARITY: u64 = 1 << 3;
const UNUSED: u64 = 1 << 4;
const COUNT_SHIFT: u32 = 5;
/// The bits that identify a key.
const KEY: u64 = !(MARK | PRESENT | PARITY | UNUSED);

/// The longest key.
pub(crate) const LONGEST: usize = 8;

/// A key, as stored in a used entry.
#[derive(Clone, Copy, Debug, Hash, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyWord(u64);

impl KeyWord {
    /// The word of `key`, if it is short enough and not empty.
    #[inline(always)]
    pub(crate) fn of(key: &[u8]) -> Option<KeyWord> {
        let bytes = match <&[u8; 8]>::try_from(key) {
            Ok(bytes) => u64::from_be_bytes(*bytes),
            Err(_) if key.is_empty() || key.len() > LONGEST => return None,
            Err(_) => {
                let mut bytes = [0; 8];
                bytes[..key.len()].copy_from_slice(key);
                u64::from_be_bytes(bytes)
            }
        };
        Some(KeyWord(bytes << 8 | (key.len() as u64 - 1) << COUNT_SHIFT | USED))
    }

    /// The key in an entry's word; `None` if the entry was never used.
    #[inline(always)]
    pub(crate) fn stored(word: u64) -> Option<KeyWord> {
        (word != 0).then_some(KeyWord::in_use(word))
    }

    /// A word behind every key.
    pub(crate) const BEHIND: KeyWord = KeyWord(u64::MAX);

    /// The key in the word of a used entry.
    #[inline(always)]
    pub(crate) fn in_use(word: u64) -> KeyWord {
        KeyWord(word & KEY)
    }

    /// The word as a number, in the order of the keys; successive keys differ by more than one.
    #[inline(always)]
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The key whose word is this number, or the number right before or behind it.
    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> KeyWord {
        KeyWord(bits & KEY | USED)
    }

    /// Whether an entry's word is this key's.
    #[inline(always)]
    pub(crate) fn is_in(self, word: u64) -> bool {
        word & KEY == self.0
    }

    /// The word to store for a present or a removed key.
    #[inline]
    pub(crate) fn to_store(self, present: bool) -> u64 {
        let word = self.0 | if present { PRESENT } else { 0 };
        word | if word.count_ones() & 1 == 1 { PARITY } else { 0 }
    }

    /// The bytes of the key from position `from` on, padded with zeros, the first one most significant.
    #[inline(always)]
    pub(crate) fn bytes_from(self, from: usize) -> u64 {
        (self.0 & !0xff) << (8 * (from - 1))
    }

    /// The key's length.
    #[inline(always)]
    pub(crate) fn key_len(self) -> usize {
        (self.0 >> COUNT_SHIFT & 7) as usize + 1
    }

    /// The key that begins with `first`, and its length.
    #[inline(always)]
    pub(crate) fn key(self, first: u8) -> ([u8; LONGEST], usize) {
        (
            (u64::from(first) << 56 | self.0 >> 8).to_be_bytes(),
            self.key_len(),
        )
    }

    /// Whether the key begins with another one, given that the first byte is the same.
    #[inline]
    pub(crate) fn begins_with(self, other: KeyWord) -> bool {
        self.shared(other) == other.key_len()
    }

    /// Length of the common prefix of two keys with the same first byte.
    pub(crate) fn shared(self, other: KeyWord) -> usize {
        let same = ((self.0 ^ other.0) & !0xff).leading_zeros() as usize / 8;
        (1 + same).min(self.key_len()).min(other.key_len())
    }
}

/// Whether an entry's word marks its key as present.
#[inline(always)]
pub(crate) fn is_present(word: u64) -> bool {
    word & PRESENT != 0
}

/// The fault of a word that is not zero.
pub(crate) fn fault(word: u64) -> Option<&'static str> {
    let Some(key) = KeyWord::stored(word).filter(|_| word & USED != 0 && word & UNUSED == 0) else {
        return Some("an entry of an inline leaf array has unused bits set");
    };
    if (word & !MARK).count_ones() & 1 == 1 {
        return Some("an entry of an inline leaf array does not match its parity");
    }
    let behind = key.bytes_from(1).checked_shl(8 * (key.key_len() as u32 - 1));
    (behind.unwrap_or(0) != 0).then_some("an entry of an inline leaf array has more bytes than it counts")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Vec<Vec<u8>> {
        let mut keys = Vec::new();
        for len in 1..=8 {
            for byte in [0, 1, 127, 128, 255] {
                for last in [0, 1, 255] {
                    let mut key = vec![byte; len];
                    (key[0], key[len - 1]) = (9, if len > 1 { last } else { 9 });
                    keys.push(key);
                }
            }
        }
        keys.sort();
        keys.dedup();
        keys
    }

    /// Words are ordered like keys, distinguish them, and can be converted back.
    #[test]
    fn words_are_their_keys() {
        let keys = keys();
        for a in &keys {
            let word = KeyWord::of(a).unwrap();
            let (bytes, len) = word.key(9);
            assert_eq!(&bytes[..len], a);
            for present in [false, true] {
                let stored = word.to_store(present);
                assert_eq!(
                    (KeyWord::stored(stored), is_present(stored), fault(stored)),
                    (Some(word), present, None)
                );
                assert!(word.is_in(stored | MARK));
            }
            for b in &keys {
                let other = KeyWord::of(b).unwrap();
                assert_eq!(word.cmp(&other), a.cmp(b));
                assert_eq!(word.shared(other), art::common_prefix(a, b));
                assert_eq!(word.begins_with(other), a.starts_with(b));
            }
        }
        assert_eq!((KeyWord::of(b""), KeyWord::of(b"nine byte")), (None, None));
    }

    /// A flipped bit is detected, unless it is the mark; so is one in a never-used word.
    #[test]
    fn flipped_bits_show() {
        for key in keys() {
            for present in [false, true] {
                let stored = KeyWord::of(&key).unwrap().to_store(present);
                for bit in 1..64 {
                    assert!(fault(stored ^ 1 << bit).is_some(), "bit {bit} of {stored:#x}");
                }
            }
        }
        assert!((0..64).all(|bit| fault(1 << bit).is_some()));
    }
}
