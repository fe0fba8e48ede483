//! Compressed paths: the prefix in a node's header.
//!
//! ```text
//!  63                           24 23        8 7   1   0
//! +-------------------------------+-----------+-----+------+
//! | its first bytes, at most five |  length   |  0  | mark |
//! +-------------------------------+-----------+-----+------+
//! ```
//!
//! It is one commit word, so that it changes by one store, and a thread that acts on it persists it. It represents the
//! bytes after the node's byte in its parent, up to the node's level. The level never changes (RECIPE §6.4), and so the
//! prefix is right if and only if it begins directly after the node's byte in its parent. Its length shows where it
//! begins.
//!
//! I1 Whatever its length L, right or not, its bytes are the first of the L bytes that precede the level in all keys
//!    below.

/// A prefix as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prefix(u64);

/// Maximum number of bytes stored.
const KEPT: usize = 5;

impl Prefix {
    pub(super) const EMPTY: Prefix = Prefix(0);

    /// The prefix for these bytes, at most 65535.
    pub(super) fn of(bytes: &[u8]) -> Prefix {
        let mut word = [0; 8];
        let kept = bytes.len().min(KEPT);
        word[3..3 + kept].copy_from_slice(&bytes[..kept]);
        Prefix(u64::from_le_bytes(word) | (bytes.len() as u64 & 0xffff) << 8)
    }

    pub(super) fn from_word(word: u64) -> Prefix {
        Prefix(word)
    }

    pub(super) fn to_word(self) -> u64 {
        self.0
    }

    pub(super) fn len(self) -> usize {
        usize::from((self.0 >> 8) as u16)
    }

    /// Whether it covers the bytes from `depth`, which leads to the node, to the node's level.
    pub(super) fn fits(self, depth: usize, level: usize) -> bool {
        depth + self.len() == level
    }

    /// The stored bytes.
    pub(super) fn kept(self) -> ([u8; KEPT], usize) {
        let [_, _, _, kept @ ..] = self.0.to_le_bytes();
        (kept, self.len().min(KEPT))
    }

    /// All bytes, if all are stored.
    pub(super) fn whole(&self) -> Option<([u8; KEPT], usize)> {
        (self.len() <= KEPT).then(|| self.kept())
    }

    /// Whether the stored bytes are those before `level` in `key`, and no unused bits are set.
    pub(super) fn agrees(self, key: &[u8], level: usize) -> bool {
        level
            .checked_sub(self.len())
            .and_then(|from| key.get(from..level))
            .is_some_and(|bytes| Prefix::of(bytes) == self)
    }
}
