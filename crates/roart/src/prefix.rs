//! The bytes before a node's level (ROART §3.1).

/// Up to eight bytes that precede a node's level, the nearest last.
///
/// A node stores the bytes before its own level, not those after its parent's level. Neither level nor bytes change
/// while the node lives, so a split above it writes nothing into it (compare ROART §3.3.2, step iv).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    bytes: [u8; 8],
    len: usize,
}

impl Prefix {
    /// Maximum number of bytes stored.
    pub(crate) const MAX: usize = 8;

    /// The last bytes of `path`, which is a key up to the node's level.
    #[inline]
    pub(crate) fn of(path: &[u8]) -> Prefix {
        let len = path.len().min(Self::MAX);
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&path[path.len() - len..]);
        Prefix { bytes, len }
    }

    /// The word to store in a node to which `path` leads.
    #[inline]
    pub(crate) fn word_of(path: &[u8]) -> u64 {
        match path.last_chunk() {
            Some(last) => u64::from_le_bytes(*last),
            None => path
                .iter()
                .rev()
                .fold(0, |word, &byte| word << 8 | u64::from(byte)),
        }
    }

    /// The word to store in a node to which the key's first `level` bytes lead, if it has that many.
    #[inline]
    pub(crate) fn word_at(key: &[u8], level: usize) -> Option<u64> {
        match key.first_chunk() {
            Some(first) if level < Self::MAX => Some(u64::from_le_bytes(*first) & ((1 << (8 * level)) - 1)),
            _ => key.get(..level).map(Prefix::word_of),
        }
    }

    /// The prefix in a stored word, of which `level.min(8)` bytes count.
    #[inline]
    pub(crate) fn from_word(word: u64, level: usize) -> Prefix {
        Prefix {
            bytes: word.to_le_bytes(),
            len: level.min(Self::MAX),
        }
    }

    /// The word to store.
    #[inline]
    pub(crate) fn to_word(self) -> u64 {
        u64::from_le_bytes(self.bytes)
    }

    /// The last `count` bytes, if that many are stored.
    #[inline]
    pub(crate) fn last(&self, count: usize) -> Option<&[u8]> {
        self.len
            .checked_sub(count)
            .map(|from| &self.bytes[from..self.len])
    }

    /// The bytes.
    #[inline]
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefix_keeps_the_nearest_bytes() {
        let path = b"0123456789ab";
        let prefix = Prefix::of(path);
        assert_eq!(prefix.as_bytes(), b"456789ab");
        assert_eq!(Prefix::from_word(prefix.to_word(), path.len()), prefix);
        for path in [&path[..], &path[..8], &path[..7], b""] {
            assert_eq!(Prefix::word_of(path), Prefix::of(path).to_word());
        }
        for key in [&path[..], &path[..8], &path[..7], b""] {
            for level in 0..=key.len() {
                assert_eq!(Prefix::word_at(key, level), Some(Prefix::word_of(&key[..level])));
            }
            assert_eq!(Prefix::word_at(key, key.len() + 1), None);
        }
        assert_eq!(Prefix::of(b"xy").as_bytes(), b"xy");
        assert_eq!(
            Prefix::from_word(Prefix::of(b"xy").to_word(), 2).as_bytes(),
            b"xy"
        );
    }
}
