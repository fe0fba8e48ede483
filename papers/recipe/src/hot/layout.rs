//! Layouts: the storage of a node's branching bits.
//!
//! ```text
//!           one mask of 8 bytes        8 bytes by number      16 by number     32 by number
//! 8 bits    Single8                    Multi8x8
//! 16 bits   Single16                   Multi8x16              Multi16x16
//! 32 bits   Single32                   Multi8x32              Multi16x32       Multi32x32
//! ```
//!
//! A single mask suffices if all branching bits lie in eight adjacent bytes. Otherwise the numbers of the bytes come
//! before their masks. Partial keys have 8, 16 or 32 bits.

use super::position::{self, Position};
use art::partial::{Width, partials_size};
use pmem::{Link, PSlot, Tag};

/// Maximum number of entries of a node: the paper's k.
pub(super) const MAX_ENTRIES: usize = 32;

/// Bytes of a window: the word under a single mask.
pub(super) const WINDOW: usize = 8;

/// Bytes of the lock and the shape.
pub(super) const HEAD: usize = 16;

/// The masks that extract branching bits from a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Masks {
    /// One mask over eight adjacent bytes.
    Single,
    /// Masks for up to this many bytes, wherever they are.
    Multi(usize),
}

impl Masks {
    /// Bytes of the masks, and of the numbers of their bytes.
    pub(super) const fn size(self) -> usize {
        match self {
            Masks::Single => WINDOW,
            Masks::Multi(bytes) => bytes * 3,
        }
    }
}

/// One of the nine layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) masks: Masks,
    pub(super) width: Width,
}

const ALL: [Layout; 9] = {
    const fn layout(masks: Masks, width: Width) -> Layout {
        Layout { masks, width }
    }
    [
        layout(Masks::Single, Width::One),
        layout(Masks::Single, Width::Two),
        layout(Masks::Single, Width::Four),
        layout(Masks::Multi(8), Width::One),
        layout(Masks::Multi(8), Width::Two),
        layout(Masks::Multi(8), Width::Four),
        layout(Masks::Multi(16), Width::Two),
        layout(Masks::Multi(16), Width::Four),
        layout(Masks::Multi(32), Width::Four),
    ]
};

/// The kind of a link's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Nothing.
    Null,
    /// A key and its value.
    Leaf,
    /// A node.
    Node(Shape),
    /// Nothing that a slot of a P-HOT may contain.
    Unknown,
}

/// The layout and the number of entries of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) layout: Layout,
    pub(super) count: usize,
    /// Both, as encoded in the link and in the node.
    pub(super) bits: u16,
}

const LEAF: u64 = 1 << 1;
const NODE: u64 = 2 << 1;
const KINDS: u64 = 7 << 1;
const COUNT_SHIFT: u32 = 48;
const LAYOUT_SHIFT: u32 = 54;

/// The tag of a link to a leaf.
pub(super) const LEAF_TAG: Tag = Tag::new(LEAF);

/// The tag of the link to a root.
pub(super) const ROOT_TAG: Tag = Tag::new(3 << 1);

/// The target of a link, by its tag: `layout:10 | entries:6 | ... | kind:3 | mark:1`.
#[inline(always)]
pub(super) fn target(link: Link) -> Target {
    let bits = link.bits();
    let high = (bits >> COUNT_SHIFT) as usize;
    match bits & KINDS {
        NODE => {
            let (count, layout) = (high & 63, high >> (LAYOUT_SHIFT - COUNT_SHIFT));
            match ALL.get(layout) {
                Some(&layout) if count.wrapping_sub(2) <= MAX_ENTRIES - 2 => Target::Node(Shape {
                    layout,
                    count,
                    bits: high as u16,
                }),
                _ => Target::Unknown,
            }
        }
        LEAF if high == 0 => Target::Leaf,
        _ if link.is_null() => Target::Null,
        _ => Target::Unknown,
    }
}

impl Shape {
    /// The shape of a node to be built.
    pub(super) fn new(layout: Layout, count: usize) -> Shape {
        let number = ALL.iter().position(|&other| other == layout);
        let bits = number.unwrap_or_default() << (LAYOUT_SHIFT - COUNT_SHIFT) | count;
        Shape {
            layout,
            count,
            bits: bits as u16,
        }
    }

    /// The tag of a link to such a node.
    pub(super) fn tag(self) -> Tag {
        Tag::new(u64::from(self.bits) << COUNT_SHIFT | NODE)
    }

    /// Bytes up to the end of the masks and partial keys, which follow the head.
    #[inline(always)]
    pub(super) fn fixed(self) -> usize {
        self.layout.masks.size() + partials_size(self.count, self.layout.width)
    }

    /// Size of the node in bytes.
    #[inline(always)]
    pub(super) fn size(self) -> usize {
        HEAD + self.fixed() + self.count * size_of::<PSlot>()
    }
}

/// The selection of a node's branching bits: the layout, its masks, and the word for the node's head.
#[derive(Clone, Copy, Debug)]
pub(super) struct Selection {
    pub(super) layout: Layout,
    /// Numbers of bytes, for the multi layouts only.
    pub(super) numbers: [u16; MAX_ENTRIES],
    pub(super) masks: [u8; MAX_ENTRIES],
    /// For a single mask, the first byte of its window; otherwise a bit for each number whose mask is for the
    /// continuation bit.
    pub(super) select: u32,
}

impl Selection {
    /// The selection of these positions, in ascending order. At least one, at most 31.
    pub(super) fn of(positions: &[Position]) -> Selection {
        let width = match positions.len() {
            0..=8 => Width::One,
            9..=16 => Width::Two,
            _ => Width::Four,
        };
        let mut numbers = [0; MAX_ENTRIES];
        let mut masks = [0; MAX_ENTRIES];
        let (mut groups, mut select) = (0_usize, 0_u32);
        for &position in positions {
            let (byte, higher) = position::parts(position);
            let before = groups
                .checked_sub(1)
                .filter(|&last| usize::from(numbers[last]) == byte);
            match (higher, before) {
                (Some(higher), Some(last)) if select >> last & 1 == 0 => masks[last] |= 0x80 >> higher,
                _ => {
                    numbers[groups] = byte as u16;
                    masks[groups] = higher.map_or(1, |higher| 0x80 >> higher);
                    select |= u32::from(higher.is_none()) << groups;
                    groups += 1;
                }
            }
        }
        let last = usize::from(numbers[groups.saturating_sub(1)]);
        let window = (last + 1).saturating_sub(WINDOW);
        if select == 0 && usize::from(numbers[0]) >= window {
            let mut single = [0; MAX_ENTRIES];
            for (number, mask) in numbers.iter().zip(&masks).take(groups) {
                single[usize::from(*number) - window] = *mask;
            }
            return Selection {
                layout: Layout {
                    masks: Masks::Single,
                    width,
                },
                numbers: [0; MAX_ENTRIES],
                masks: single,
                select: window as u32,
            };
        }
        let bytes = match groups {
            0..=8 => 8,
            9..=16 => 16,
            _ => MAX_ENTRIES,
        };
        Selection {
            layout: Layout {
                masks: Masks::Multi(bytes),
                width,
            },
            numbers,
            masks,
            select,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hot::position::{bit_of, continuation_bit};

    /// Each of the nine layouts occurs for some positions, and a link encodes it and the number of entries.
    #[test]
    fn links_tell_shapes() {
        let spread = |groups: usize, bits: u32| -> Vec<Position> {
            let each = (0..groups).flat_map(|group| (0..bits).map(move |bit| bit_of(group * 100, bit)));
            each.collect()
        };
        let dense =
            |bits: u32| -> Vec<Position> { (0..bits).map(|i| bit_of(3 + i as usize / 8, i % 8)).collect() };
        let positions = [
            dense(8),
            dense(16),
            dense(31),
            spread(8, 1),
            spread(8, 2),
            spread(8, 3),
            spread(16, 1),
            spread(15, 2),
            spread(31, 1),
        ];
        for (positions, layout) in positions.iter().zip(ALL) {
            assert_eq!(Selection::of(positions).layout, layout, "{positions:?}");
            for count in 2..=MAX_ENTRIES {
                let shape = Shape::new(layout, count);
                assert_eq!(target(Link::NULL.with_tag(shape.tag())), Target::Node(shape));
            }
        }
        assert_eq!(target(Link::NULL), Target::Null);
        assert_eq!(target(Link::NULL.with_tag(LEAF_TAG)), Target::Leaf);
        let one = Tag::new(NODE | 1 << COUNT_SHIFT);
        assert_eq!(target(Link::NULL.with_tag(one)), Target::Unknown);
        assert_eq!(target(Link::NULL.with_tag(ROOT_TAG)), Target::Unknown);
    }

    /// The mark of a link that may not be durable does not overlap its tag, whatever the link leads to.
    #[test]
    fn marks_do_not_change_what_a_link_leads_to() {
        const MARK: u64 = 1;
        let shapes = ALL
            .into_iter()
            .flat_map(|layout| (2..=MAX_ENTRIES).map(move |count| Shape::new(layout, count)));
        let tags = shapes.map(Shape::tag).chain([LEAF_TAG, ROOT_TAG]);
        for tag in tags {
            assert_eq!(tag.get() & MARK, 0);
            assert_eq!(Tag::new(tag.get() | MARK), tag);
        }
    }

    /// A continuation bit keeps a node from having a single mask.
    #[test]
    fn ends_of_keys_have_masks_of_their_own() {
        let selection = Selection::of(&[
            continuation_bit(2),
            bit_of(2, 0),
            bit_of(2, 7),
            continuation_bit(3),
        ]);
        assert_eq!(selection.layout.masks, Masks::Multi(8));
        assert_eq!(selection.numbers[..3], [2, 2, 3]);
        assert_eq!(selection.masks[..4], [1, 0x81, 1, 0]);
        assert_eq!(selection.select, 0b101);
    }
}
