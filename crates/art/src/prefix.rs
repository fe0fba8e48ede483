//! The bytes in front of a node's level.

/// Up to eight bytes that precede a node's level, the nearest last.
///
/// A node keeps the bytes before its own level, not those after its parent's. Neither changes while the node
/// lives, so a split above it writes nothing into it (compare ROART §3.3.2, step iv).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    bytes: [u8; 8],
    len: usize,
}

impl Prefix {
    /// The most bytes that are kept.
    pub const MAX: usize = 8;

    /// The last bytes of `path`, which is a key up to the node's level.
    #[inline]
    pub fn of(path: &[u8]) -> Prefix {
        let len = path.len().min(Self::MAX);
        let mut bytes = [0; 8];
        bytes[..len].copy_from_slice(&path[path.len() - len..]);
        Prefix { bytes, len }
    }

    /// From the stored word, of which `level.min(8)` bytes count.
    #[inline]
    pub fn from_word(word: u64, level: usize) -> Prefix {
        Prefix {
            bytes: word.to_le_bytes(),
            len: level.min(Self::MAX),
        }
    }

    /// As it is stored.
    #[inline]
    pub fn to_word(self) -> u64 {
        u64::from_le_bytes(self.bytes)
    }

    /// The last `count` bytes, if so many are kept.
    #[inline]
    pub fn last(&self, count: usize) -> Option<&[u8]> {
        self.len
            .checked_sub(count)
            .map(|from| &self.bytes[from..self.len])
    }

    /// The bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Whether two keys are the same: without a call for the most usual length.
#[inline(always)]
pub fn same(a: &[u8], b: &[u8]) -> bool {
    match (<&[u8; 8]>::try_from(a), <&[u8; 8]>::try_from(b)) {
        (Ok(a), Ok(b)) => u64::from_le_bytes(*a) == u64::from_le_bytes(*b),
        _ => a == b,
    }
}

/// How many bytes two strings share at their start.
#[inline]
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let len = a.len().min(b.len());
    let (a, b) = (&a[..len], &b[..len]);
    let (words_a, rest_a) = a.as_chunks::<8>();
    let (words_b, rest_b) = b.as_chunks::<8>();
    for (i, (x, y)) in words_a.iter().zip(words_b).enumerate() {
        let differ = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differ != 0 {
            return i * 8 + differ.trailing_zeros() as usize / 8;
        }
    }
    let whole = words_a.len() * 8;
    whole + rest_a.iter().zip(rest_b).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_prefix_counts_equal_bytes() {
        for len in 0..40 {
            let a = vec![9; len];
            assert_eq!(common_prefix(&a, &a), len);
            for at in 0..len {
                let mut b = a.clone();
                b[at] = 200;
                assert_eq!(common_prefix(&a, &b), at);
                assert_eq!(common_prefix(&a, &b[..=at]), at);
                assert_eq!(common_prefix(&a, &a[..at]), at);
            }
        }
    }

    #[test]
    fn prefix_keeps_the_nearest_bytes() {
        let path = b"0123456789ab";
        let prefix = Prefix::of(path);
        assert_eq!(prefix.as_bytes(), b"456789ab");
        assert_eq!(Prefix::from_word(prefix.to_word(), path.len()), prefix);
        assert_eq!(Prefix::of(b"xy").as_bytes(), b"xy");
        assert_eq!(
            Prefix::from_word(Prefix::of(b"xy").to_word(), 2).as_bytes(),
            b"xy"
        );
    }
}
