//! The tags of links: what they lead to, and what a reader must know of it before it comes there.
//!
//! ```text
//!               63          53 52   48            3    1
//! of a chain:   |    gone     | depth | … offset … | kind |    kind 1 to 7: a delta, a mark or a base
//! part:         | 10 |        n       | … offset … |   0  |    a base of which the first n entries count
//! a cell:       | 01 |      level     | … offset … |   0  |
//! a record:     | 00 |        1       | … offset … |   0  |
//! the root:     | 00 |        0       | … offset … |   0  |
//! ```
//!
//! A chain's link tells how many deltas and marks lie above the base (`depth`) and, in a head, which of the chain's pairs
//! was removed last (`gone`, 0 for none): the base's entry `gone - 1`, or the delta of a depth above [`FIRST_DELTA`].
//! Where it is [`ALL_GONE`], in a head or behind deltas, no entry of the base counts any more.

use pmem::{Link, Tag};

const KIND_SHIFT: u32 = 1;
const INFO_SHIFT: u32 = 48;
const DEPTH_BITS: u32 = 5;
const APART_SHIFT: u32 = 14;
const CELL: u16 = 1 << APART_SHIFT;
const PART: u16 = 2 << APART_SHIFT;
const APART_INFO: u16 = (1 << APART_SHIFT) - 1;

/// The most deltas and marks above a base.
pub(super) const MAX_DEEP: u16 = (1 << DEPTH_BITS) - 1;

/// What is added to a delta's depth to name its pair in a head.
pub(super) const FIRST_DELTA: u16 = 2015;

/// What says that no entry of the base counts.
const ALL_GONE: u16 = u16::MAX >> DEPTH_BITS;
const _: () = assert!(FIRST_DELTA + MAX_DEEP < ALL_GONE);

/// Maximum number of pairs of a leaf, so that a head can name each.
pub(super) const MAX_PAIRS: usize = FIRST_DELTA as usize;

/// A leaf of as many pairs takes no more before it has split: what comes meanwhile leaves it below [`MAX_PAIRS`].
pub(super) const CROWDED: usize = MAX_PAIRS / 2;

/// Levels that a tree may have.
pub(super) const LEVELS: u8 = 64;

/// What a link leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What is no part of a chain: a cell, a record, the root; or a part of a base.
    Apart,
    /// A delta: the pair of a key, in place.
    Put,
    /// A delta: the pair of a key, a record.
    PutRecord,
    /// A delta: which child takes the keys of a range.
    Route,
    /// A mark: the upper half is a new node's.
    Split,
    /// A mark: the right sibling's content is this node's.
    Merge,
    /// A mark: the node is about to go, and is not written any more.
    Frozen,
    /// The node's content.
    Base,
}

const KINDS: [Kind; 8] = [
    Kind::Apart,
    Kind::Put,
    Kind::PutRecord,
    Kind::Route,
    Kind::Split,
    Kind::Merge,
    Kind::Frozen,
    Kind::Base,
];

/// What a link that is no part of a chain leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Apart {
    Root,
    Record,
    Cell(u8),
    /// A base, of which this many entries count.
    Part(usize),
}

const fn tag(kind: Kind, info: u16) -> Tag {
    Tag::new((info as u64) << INFO_SHIFT | (kind as u64) << KIND_SHIFT)
}

/// The tag of the link to an index's root.
pub(super) const ROOT: Tag = tag(Kind::Apart, 0);

/// The tag of a link to a record.
pub(super) const RECORD: Tag = tag(Kind::Apart, 1);

/// The tag of a link to a base of which all entries count.
pub(super) const BASE: Tag = tag(Kind::Base, 0);

/// The tag of a link to the cell of a node of this level.
pub(super) const fn cell_tag(level: u8) -> Tag {
    tag(Kind::Apart, CELL | level as u16)
}

/// The tag of a link to a base of which the first `count` entries count.
pub(super) fn part_tag(count: usize) -> Tag {
    tag(Kind::Apart, PART | (count as u16).min(APART_INFO))
}

/// The tag of a link to a delta or mark above this many others.
pub(super) fn delta_tag(kind: Kind, above: u16) -> Tag {
    tag(kind, (above + 1).min(MAX_DEEP))
}

#[inline(always)]
fn info(link: Link) -> u16 {
    (link.tag().get() >> INFO_SHIFT) as u16
}

/// What a link leads to.
#[inline(always)]
pub(super) fn kind(link: Link) -> Kind {
    KINDS[(link.tag().get() >> KIND_SHIFT & 7) as usize]
}

/// What a link of [`Kind::Apart`] leads to, if it makes sense.
#[inline]
pub(super) fn apart(link: Link) -> Option<Apart> {
    let (what, about) = (info(link) >> APART_SHIFT, info(link) & APART_INFO);
    match (kind(link), what, about) {
        (Kind::Apart, 0, 0) => Some(Apart::Root),
        (Kind::Apart, 0, 1) => Some(Apart::Record),
        (Kind::Apart, 1, level) if level < u16::from(LEVELS) => Some(Apart::Cell(level as u8)),
        (Kind::Apart, 2, count) => Some(Apart::Part(usize::from(count))),
        _ => None,
    }
}

/// The level of the node whose cell a link leads to; `None` if it leads to none.
#[inline(always)]
pub(super) fn level_of(link: Link) -> Option<u8> {
    match apart(link) {
        Some(Apart::Cell(level)) => Some(level),
        _ => None,
    }
}

/// How many deltas and marks a chain's link has before it.
#[inline(always)]
pub(super) fn depth(link: Link) -> u16 {
    match kind(link) {
        Kind::Apart => 0,
        _ => info(link) & MAX_DEEP,
    }
}

/// Which pair was removed last from the chain of this head; 0 for none.
#[inline(always)]
pub(super) fn gone(head: Link) -> u16 {
    match kind(head) {
        Kind::Apart => 0,
        _ if is_emptied(head) => 0,
        _ => info(head) >> DEPTH_BITS,
    }
}

/// Whether the link, to a base or a mark on it, says that no entry of the base counts.
#[inline(always)]
pub(super) fn is_emptied(link: Link) -> bool {
    kind(link) != Kind::Apart && info(link) >> DEPTH_BITS == ALL_GONE
}

/// The link to a base or a mark on it that says so.
pub(super) fn emptied(link: Link) -> Link {
    with_gone(link, ALL_GONE)
}

/// The head of the same chain, from which this pair is removed.
pub(super) fn with_gone(head: Link, gone: u16) -> Link {
    head.with_tag(tag(kind(head), gone << DEPTH_BITS | info(head) & MAX_DEEP))
}

/// Whether a node with this head is in the middle of a structure modification: its next writer ends that first.
#[inline(always)]
pub(super) fn is_mark(head: Link) -> bool {
    matches!(kind(head), Kind::Split | Kind::Merge | Kind::Frozen)
}

/// Whether two links lead to the same object.
#[inline(always)]
pub(super) fn same_place(a: Link, b: Link) -> bool {
    a.offset() == b.offset()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tags tell what they were made of, and bits that mean nothing show.
    #[test]
    fn tags_tell_targets() {
        let of = |tag| Link::NULL.with_tag(tag);
        for level in 0..LEVELS {
            assert_eq!(apart(of(cell_tag(level))), Some(Apart::Cell(level)));
        }
        assert_eq!(apart(of(cell_tag(LEVELS))), None);
        assert_eq!(apart(of(ROOT)), Some(Apart::Root));
        assert_eq!(apart(of(RECORD)), Some(Apart::Record));
        assert_eq!(apart(of(part_tag(700))), Some(Apart::Part(700)));
        assert_eq!((apart(of(BASE)), depth(of(BASE)), gone(of(BASE))), (None, 0, 0));
        for above in 0..MAX_DEEP {
            let head = of(delta_tag(Kind::Put, above));
            assert!(!is_emptied(head) && is_emptied(emptied(head)));
            assert_eq!((gone(emptied(head)), depth(emptied(head))), (0, above + 1));
            for entry in [1, 64, FIRST_DELTA, FIRST_DELTA + above + 1] {
                let removed = with_gone(head, entry);
                assert_eq!(
                    (kind(removed), depth(removed), gone(removed)),
                    (Kind::Put, above + 1, entry)
                );
            }
        }
    }
}
