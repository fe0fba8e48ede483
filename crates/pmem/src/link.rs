//! Links: how persistent objects refer to each other.
//!
//! I1 The object that a [`Link`] names was durable before a reader could follow the link.
//!
//! A link is an offset with tag bits:
//!
//! ```text
//!  63          48 47                             4 3   1  0
//! +--------------+--------------------------------+-----+--+
//! |  tag (high)  |  offset from the pool's base   | tag | M|
//! +--------------+--------------------------------+-----+--+
//!                   a multiple of 16                     mark: stored, perhaps not yet durable
//! ```

use std::sync::atomic::AtomicU64;

/// A distance in bytes from the pool's base: below 2^48 and a multiple of 16. Never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Offset(u64);

impl Offset {
    /// The bits of a link that hold its offset.
    pub const MASK: u64 = 0x0000_ffff_ffff_fff0;

    /// The offset `bytes` from the base, if that is a valid offset.
    #[inline]
    pub const fn new(bytes: u64) -> Option<Offset> {
        if bytes & !Self::MASK == 0 && bytes != 0 {
            Some(Offset(bytes))
        } else {
            None
        }
    }

    /// Bytes from the base.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// The bits of a link beside its offset and its mark: 1 to 3 and 48 to 63. The index defines their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Tag(u64);

impl Tag {
    const BITS: u64 = !(Offset::MASK | Link::MARK);

    /// The tag in `bits`; bits that belong to the offset or the mark are dropped.
    #[inline]
    pub const fn new(bits: u64) -> Tag {
        Tag(bits & Self::BITS)
    }

    /// The tag's bits, in place.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// A tagged offset as stored in a slot, without its mark: null, or the place of a durable object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link(u64);

impl Link {
    /// Set by the store that publishes, until that store is known to be durable (link-and-persist).
    pub(crate) const MARK: u64 = 1;

    /// Refers to nothing.
    pub const NULL: Link = Link(0);

    #[inline]
    pub(crate) const fn from_word(word: u64) -> Link {
        Link(word & !Self::MARK)
    }

    /// Whether the link is null.
    #[inline]
    pub const fn is_null(self) -> bool {
        self.0 == 0
    }

    /// Where the object starts; `None` if the offset is zero, as in a null link.
    #[inline]
    pub const fn offset(self) -> Option<Offset> {
        Offset::new(self.0 & Offset::MASK)
    }

    /// The tag.
    #[inline]
    pub const fn tag(self) -> Tag {
        Tag::new(self.0)
    }

    #[inline]
    pub(crate) const fn with_offset(self, offset: Offset) -> Link {
        Link(self.0 & !Offset::MASK | offset.0)
    }

    /// The same object under another tag.
    #[inline]
    pub const fn with_tag(self, tag: Tag) -> Link {
        Link((self.0 & Offset::MASK) | tag.0)
    }

    /// All bits.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }
}

/// A persistent word that holds a link and makes an object reachable.
///
/// Either one thread at a time publishes into a slot (the holder of the lock on its object), or several do by
/// [`publish_if`](PSlot::publish_if). Any thread may load it.
#[repr(transparent)]
#[derive(Debug, Default)]
pub struct PSlot(pub(crate) AtomicU64);

impl PSlot {
    /// An empty slot, for a draft.
    #[inline]
    pub const fn null() -> PSlot {
        PSlot(AtomicU64::new(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An offset is a non-zero multiple of 16 below 2^48; no other number is one.
    #[test]
    fn offsets_are_checked() {
        for bytes in [16, 32, 4096, (1 << 48) - 16] {
            assert_eq!(Offset::new(bytes).map(Offset::get), Some(bytes));
        }
        for bytes in [0, 1, 8, 15, 17, (1 << 48) - 1, 1 << 48, u64::MAX, !15] {
            assert_eq!(Offset::new(bytes), None);
        }
    }

    /// Offset, tag and mark share a word without touching each other, at every bit.
    #[test]
    fn links_keep_their_parts_apart() {
        for bit in 0..64 {
            let word = 1u64 << bit;
            let link = Link::from_word(word);
            let offset = link.offset().map_or(0, Offset::get);
            assert_eq!(
                offset | link.tag().get(),
                if word == Link::MARK { 0 } else { word }
            );
            assert!(offset == 0 || link.tag() == Tag::default());
            assert_eq!(link.is_null(), word == Link::MARK);
            let tagged = link.with_tag(Tag::new(u64::MAX));
            assert_eq!(tagged.offset(), link.offset());
            assert_eq!(tagged.tag().get(), 0xffff_0000_0000_000e);
            assert_eq!(tagged.with_tag(link.tag()).bits(), link.bits());
        }
    }
}
