//! The tag bits of links in radix nodes (ROART §3.3: entry compression, `empty:8 | key:8 | pointer:48`).
//!
//! ```text
//!           63       56 55       48            3    1
//! in a node:    aux    | key byte  | … offset … | kind |
//! ```
//!
//! (In place of both, a link in one of ROART's leaf arrays has a fingerprint.)
//!
//! `aux` is, for a link to an inner node, its skip ([`LONG_SKIP`] means that many or more); to a leaf array, its size
//! class; to an inline leaf array, its shape; to a leaf, zero.

use pmem::{Fault, Link, Media, Offset, PSlot, Tag};

/// The kind of object that a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Nothing: an empty slot.
    Null = 0,
    /// A key and its value.
    Leaf = 1,
    /// A leaf array (ROART §3.2).
    Array = 2,
    /// An inner node of up to 4 children.
    N4 = 3,
    /// An inner node of up to 16 children.
    N16 = 4,
    /// An inner node of up to 48 children.
    N48 = 5,
    /// An inner node of up to 256 children.
    N256 = 6,
    /// A leaf array that holds short pairs themselves. Only ROART writes it: in other indexes it means damage.
    Inline = 7,
}

impl Kind {
    /// Whether it is one of the inner nodes.
    #[inline]
    pub fn is_inner(self) -> bool {
        matches!(self, Kind::N4 | Kind::N16 | Kind::N48 | Kind::N256)
    }
}

/// The fields of a radix link.
pub trait Tagged: Copy {
    /// The kind of its object.
    fn kind(self) -> Kind;
    /// Whether it leads to an inner node.
    fn is_inner(self) -> bool;
    /// Whether it is of this kind, with an `aux` of zero: one comparison.
    fn is_plain(self, kind: Kind) -> bool;
    /// The key byte of the child in its node.
    fn byte(self) -> u8;
    /// The skip of an inner node (255: at least 255), the size class of a leaf array, or the shape of an
    /// inline one.
    fn aux(self) -> u8;
}

impl Tagged for Link {
    #[inline(always)]
    fn kind(self) -> Kind {
        match self.bits() >> 1 & 7 {
            0 => Kind::Null,
            1 => Kind::Leaf,
            2 => Kind::Array,
            3 => Kind::N4,
            4 => Kind::N16,
            5 => Kind::N48,
            6 => Kind::N256,
            _ => Kind::Inline,
        }
    }
    #[inline(always)]
    fn is_inner(self) -> bool {
        (self.bits() >> 1 & 7).wrapping_sub(Kind::N4 as u64) <= Kind::N256 as u64 - Kind::N4 as u64
    }
    #[inline(always)]
    fn is_plain(self, kind: Kind) -> bool {
        self.bits() & (0xff << 56 | 7 << 1) == (kind as u64) << 1
    }
    #[inline(always)]
    fn byte(self) -> u8 {
        (self.bits() >> 48) as u8
    }
    #[inline(always)]
    fn aux(self) -> u8 {
        (self.bits() >> 56) as u8
    }
}

/// The tag of a child of a node.
#[inline]
pub const fn child_tag(kind: Kind, byte: u8, aux: u8) -> Tag {
    Tag::new((aux as u64) << 56 | (byte as u64) << 48 | (kind as u64) << 1)
}

/// The aux of a link to a node that skips this many digits or more: the node's level gives the number.
pub const LONG_SKIP: u8 = 255;

/// The slot and its link, if that is the child for `byte`.
#[inline(always)]
pub fn matching<'g, M: Media>(media: &M, slot: &'g PSlot, byte: u8) -> Option<(&'g PSlot, Link)> {
    let link = slot.load(media);
    (!link.is_null() && link.byte() == byte).then_some((slot, link))
}

/// Whether two links lead to the same object.
#[inline]
pub fn same_object(a: Link, b: Link) -> bool {
    a.offset() == b.offset() && a.kind() == b.kind()
}

/// A fault at the object that a link leads to.
#[cold]
pub fn damaged(what: &'static str, link: Link) -> Fault {
    Fault {
        what,
        offset: link.bits() & Offset::MASK,
    }
}
