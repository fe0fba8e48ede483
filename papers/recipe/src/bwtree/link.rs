//! The tags of links: the kind of their target, and its properties that a reader must know in advance.
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
//! A chain's link states how many deltas and marks lie above the base (`depth`) and, in a head, which of the chain's
//! pairs was removed last (`gone`, 0 for none): the base's entry `gone - 1`, or, for a `gone` above [`FIRST_DELTA`],
//! the delta of depth `gone - FIRST_DELTA`. [`ALL_GONE`], in a head or behind deltas, means that no entry of the base
//! counts any more.

use pmem::{Link, Tag};

const KIND_SHIFT: u32 = 1;
const INFO_SHIFT: u32 = 48;
const DEPTH_BITS: u32 = 5;
const APART_SHIFT: u32 = 14;
const CELL: u16 = 1 << APART_SHIFT;
const PART: u16 = 2 << APART_SHIFT;
const APART_INFO: u16 = (1 << APART_SHIFT) - 1;

/// Maximum number of deltas and marks above a base.
pub(super) const MAX_DEEP: u16 = (1 << DEPTH_BITS) - 1;

/// Added to a delta's depth to name its pair in a head.
pub(super) const FIRST_DELTA: u16 = 2015;

/// Means that no entry of the base counts.
const ALL_GONE: u16 = u16::MAX >> DEPTH_BITS;
const _: () = assert!(FIRST_DELTA + MAX_DEEP < ALL_GONE);

/// Maximum number of pairs of a leaf, so that a head can name each.
pub(super) const MAX_PAIRS: usize = FIRST_DELTA as usize;

/// A leaf with this many pairs accepts no more before it has split: pairs added meanwhile leave it below
/// [`MAX_PAIRS`].
pub(super) const CROWDED: usize = MAX_PAIRS / 2;

/// Maximum number of levels of a tree.
pub(super) const LEVELS: u8 = 64;

/// The kind of a link's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Not part of a chain: a cell, a record, the root; or a partial base.
    Apart,
    /// A delta: the pair of a key, in place.
    Put,
    /// A delta: the pair of a key, a record.
    PutRecord,
    /// A delta: the child for the keys of a range.
    Route,
    /// A mark: the upper half belongs to a new node.
    Split,
    /// A mark: the right sibling's content belongs to this node.
    Merge,
    /// A mark: the node is about to be removed, and accepts no more writes.
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

/// The target of a link that is not part of a chain.
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

/// The tag of a link to a base whose entries all count.
pub(super) const BASE: Tag = tag(Kind::Base, 0);

/// The tag of a link to the cell of a node of this level.
pub(super) const fn cell_tag(level: u8) -> Tag {
    tag(Kind::Apart, CELL | level as u16)
}

/// The tag of a link to a base whose first `count` entries count.
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

/// The kind of a link's target.
#[inline(always)]
pub(super) fn kind(link: Link) -> Kind {
    KINDS[(link.tag().get() >> KIND_SHIFT & 7) as usize]
}

/// The target of a link of [`Kind::Apart`], if it is valid.
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

/// The level of the node whose cell a link leads to; `None` if it leads to another kind of object.
#[inline(always)]
pub(super) fn level_of(link: Link) -> Option<u8> {
    match apart(link) {
        Some(Apart::Cell(level)) => Some(level),
        _ => None,
    }
}

/// The number of deltas and marks from a chain's link on.
#[inline(always)]
pub(super) fn depth(link: Link) -> u16 {
    match kind(link) {
        Kind::Apart => 0,
        _ => info(link) & MAX_DEEP,
    }
}

/// The pair that was removed last from the chain of this head; 0 for none.
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

/// The same link, saying that no entry of the base counts.
pub(super) fn emptied(link: Link) -> Link {
    with_gone(link, ALL_GONE)
}

/// The head of the same chain with this pair removed.
pub(super) fn with_gone(head: Link, gone: u16) -> Link {
    head.with_tag(tag(kind(head), gone << DEPTH_BITS | info(head) & MAX_DEEP))
}

/// Whether a node with this head may have an unfinished structure modification: its next writer, unless it removes a
/// pair from a node that is not frozen, completes that first.
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

    /// Tags give back the values that they were made from, and unused bits are detected.
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
