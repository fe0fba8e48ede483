//! The tags of links: the kind of their target, and its properties that a reader must know in advance.
//!
//! ```text
//!            63   54 53   52 51   48            3    1
//! a leaf:    |   0  |   0   |  len  | … offset … |  1 |    len: bytes in the slice, 9 if the key goes on behind it
//! a node:    |   0  |     level     | … offset … |  2 |    level: 0 for a border
//! the root:  |           0          | … offset … |  3 |
//! ```
//!
//! The target of an entry's link, leaf or further layer, and the length of its key in the slice, change by the one
//! store of the link.

use super::slice::CONTINUES;
use pmem::{Link, Tag};

const KIND_SHIFT: u32 = 1;
const ABOUT_SHIFT: u32 = 48;
const LEAF: u64 = 1;
const NODE: u64 = 2;
const TOP: u64 = 3;

/// Number of levels that a link can encode.
pub(super) const LEVELS: u8 = 64;

/// The tag of the link to an index's root.
pub(super) const ROOT: Tag = Tag::new(TOP << KIND_SHIFT);

/// The tag of a link to a leaf whose key has `len` bytes in the slice.
pub(super) const fn leaf_tag(len: u8) -> Tag {
    Tag::new((len as u64) << ABOUT_SHIFT | LEAF << KIND_SHIFT)
}

/// The tag of a link to a node.
#[inline(always)]
pub(super) const fn node_tag(level: u8) -> Tag {
    Tag::new((level as u64) << ABOUT_SHIFT | NODE << KIND_SHIFT)
}

/// The target of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A leaf whose key has this many bytes in the slice, or continues after it.
    Leaf(u8),
    /// A node of this level.
    Node(u8),
    /// The root of the index.
    Root,
}

/// The target of a link, if it is valid.
#[inline(always)]
pub(super) fn target(link: Link) -> Option<Target> {
    let about = link.tag().get() >> ABOUT_SHIFT;
    match link.tag().get() >> KIND_SHIFT & 7 {
        NODE if about < u64::from(LEVELS) => Some(Target::Node(about as u8)),
        LEAF if about <= u64::from(CONTINUES) => Some(Target::Leaf(about as u8)),
        TOP if about == 0 => Some(Target::Root),
        _ => None,
    }
}

/// The level of the node that a link leads to.
#[inline(always)]
pub(super) fn level_of(link: Link) -> u8 {
    (link.tag().get() >> ABOUT_SHIFT) as u8
}

/// Whether the link leads to a node.
#[inline(always)]
pub(super) fn is_node(link: Link) -> bool {
    link.tag().get() >> KIND_SHIFT & 7 == NODE
}

/// The length of a key in its slice, by the link to its leaf or to a layer of such keys.
#[inline(always)]
pub(super) fn len_of(link: Link) -> u8 {
    match target(link) {
        Some(Target::Leaf(len)) => len,
        _ => CONTINUES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tags give back the values that they were made from, and unused bits are detected.
    #[test]
    fn tags_tell_targets() {
        let of = |tag| target(Link::NULL.with_tag(tag));
        for len in 0..=CONTINUES {
            assert_eq!(of(leaf_tag(len)), Some(Target::Leaf(len)));
        }
        for level in 0..64 {
            assert_eq!(of(node_tag(level)), Some(Target::Node(level)));
        }
        assert_eq!(of(ROOT), Some(Target::Root));
        assert_eq!(
            (target(Link::NULL), of(leaf_tag(10)), of(node_tag(64))),
            (None, None, None)
        );
    }
}
