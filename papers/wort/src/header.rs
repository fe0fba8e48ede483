//! The compression header (WORT §3.3, Fig. 2): depth, prefix length and prefix in one word.
//!
//! ```text
//!            half-bytes   bytes
//! depth         17          16     digits that lead to the node, including its digit in the parent
//! length        17          16     digits that the node's keys share from there on
//! prefix        7 x 4       4 x 8  the first of these, as many as fit
//! unused        2           0
//! ```
//!
//! I1 The header changes by one failure-atomic store, so depth and prefix always match (§3.4).
//! I2 Depth + length is the node's *level*, the digit it branches on, and never changes while the node lives: a
//!    reader that reaches a node, by an old link or a new one, finds the right child.
//! I3 A depth other than the one at which a walk arrives means that the prefix is not the one between the node and
//!    its parent: a split is in progress or was interrupted by a crash, or the node has taken its parent's place. Any
//!    key below the node gives the right prefix (Algorithm 2).
//! I4 A node's first header is durable before the node can be reached. Whichever of its headers a crash leaves after
//!    that is right for the depth that it states, and has the same level. So later headers need no write-back.

use art::Digit;
use std::marker::PhantomData;

/// A header, as of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<D: Digit>(u64, PhantomData<D>);

impl<D: Digit> Header<D> {
    /// Number of bits that count the digits of the longest key.
    const COUNT_BITS: u32 = (index::MAX_KEY * (8 / D::BITS as usize)).ilog2() + 1;
    const COUNT: u64 = (1 << Self::COUNT_BITS) - 1;
    const PREFIX_SHIFT: u32 = 2 * Self::COUNT_BITS;

    /// Maximum number of digits of the prefix that are stored.
    pub(crate) const KEPT: usize = ((64 - Self::PREFIX_SHIFT) / D::BITS) as usize;

    /// The header of a node at `level`, whose keys begin like `key`, reached after `depth` digits.
    pub(crate) fn of(key: &[u8], depth: usize, level: usize) -> Header<D> {
        debug_assert!(depth <= level && level as u64 <= Self::COUNT);
        let mut word = depth as u64 | ((level - depth) as u64) << Self::COUNT_BITS;
        for i in 0..(level - depth).min(Self::KEPT) {
            let digit = D::at(key, depth + i).unwrap_or_default();
            word |= u64::from(digit) << (Self::PREFIX_SHIFT + i as u32 * D::BITS);
        }
        Header::from_word(word)
    }

    /// The header in a stored word.
    #[inline(always)]
    pub(crate) const fn from_word(word: u64) -> Header<D> {
        Header(word, PhantomData)
    }

    /// The word to store.
    #[inline(always)]
    pub(crate) const fn to_word(self) -> u64 {
        self.0
    }

    /// Number of digits that lead to the node.
    #[inline(always)]
    pub(crate) const fn depth(self) -> usize {
        (self.0 & Self::COUNT) as usize
    }

    /// Number of digits of the prefix, stored or not.
    #[inline(always)]
    pub(crate) const fn len(self) -> usize {
        (self.0 >> Self::COUNT_BITS & Self::COUNT) as usize
    }

    /// The digit that the node branches on (I2).
    #[inline(always)]
    pub(crate) const fn level(self) -> usize {
        self.depth() + self.len()
    }

    /// The stored digits of the prefix.
    #[inline]
    pub(crate) fn prefix(self) -> impl ExactSizeIterator<Item = u8> {
        let digits = self.0 >> Self::PREFIX_SHIFT;
        let one = (1 << D::BITS) - 1;
        (0..self.len().min(Self::KEPT)).map(move |i| (digits >> (i as u32 * D::BITS) & one) as u8)
    }

    /// Whether the whole prefix is stored.
    #[inline]
    pub(crate) const fn is_whole(self) -> bool {
        self.len() <= Self::KEPT
    }

    /// Whether all unused bits are zero.
    pub(crate) fn is_clean(self) -> bool {
        let used = Self::PREFIX_SHIFT + self.prefix().len() as u32 * D::BITS;
        used >= u64::BITS || self.0 >> used == 0
    }

    /// The right header for a node reached after `depth` digits, from the digits that this one stores; `None` if they
    /// do not suffice.
    pub(crate) fn after(self, depth: usize) -> Option<Header<D>> {
        let (own, level) = (self.depth(), self.level());
        if depth == own {
            return Some(self);
        }
        if depth < own || depth > level || !self.is_whole() {
            return None;
        }
        let counts = depth as u64 | ((level - depth) as u64) << Self::COUNT_BITS;
        let digits = self.0 >> Self::PREFIX_SHIFT >> ((depth - own) as u32 * D::BITS);
        Some(Header::from_word(counts | digits << Self::PREFIX_SHIFT))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use art::HalfByte;

    type Half = Header<HalfByte>;

    #[test]
    fn a_header_tells_what_it_was_made_of() {
        let key = b"\x01\x23\x45\x67\x89\xab\xcd\xef";
        for level in 0..=16 {
            for depth in 0..=level {
                let header = Half::of(key, depth, level);
                assert_eq!((header.depth(), header.level()), (depth, level));
                assert_eq!(header.is_whole(), level - depth <= 7);
                let kept: Vec<u8> = (depth..level).take(7).map(|i| i as u8).collect();
                assert_eq!(header.prefix().collect::<Vec<_>>(), kept);
                assert!(header.is_clean());
                for further in depth..=level {
                    let after = Some(Half::of(key, further, level));
                    let known = level - depth <= 7 || further == depth;
                    assert_eq!(header.after(further), after.filter(|_| known));
                }
                assert_eq!(header.after(level + 1), None);
            }
        }
    }

    #[test]
    fn the_longest_keys_are_counted() {
        let key = vec![0xa5; index::MAX_KEY];
        let last = 2 * index::MAX_KEY;
        for (depth, level) in [(0, last), (last - 1, last), (last, last)] {
            let header = Half::of(&key, depth, level);
            assert_eq!((header.depth(), header.level()), (depth, level));
        }
    }

    /// Any bits can be decoded.
    #[test]
    fn damaged_headers_do_no_harm() {
        for word in [u64::MAX, u64::MAX >> 1, 0x5555_5555_5555_5555, 1 << 63] {
            let header = Half::from_word(word);
            assert!(header.prefix().len() <= Half::KEPT);
            for depth in [0, header.depth() + 1, header.level(), usize::MAX] {
                let _ = header.after(depth);
            }
            let _ = header.is_clean();
        }
    }
}
