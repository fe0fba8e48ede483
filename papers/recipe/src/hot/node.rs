//! Nodes: linearised Patricia tries of 2 to 32 entries (HOT's compound nodes).
//!
//! ```text
//!  0   lock
//!  8   shape   select:32 | height:16 | layout:10 | entries:6
//! 16   masks   one mask over eight bytes                    single: `select` is the first byte's number
//!              8, 16 or 32 numbers of bytes, then as many masks      multi: `select` has a bit for each number
//!                                                                    whose mask is for "the key goes on"
//!      sparse partial keys, of 1, 2 or 4 bytes, in the order of the entries; up to a multiple of 8
//!      slots, in the order of the keys
//! ```
//!
//! I1 Everything but the lock and the slots is constant. So a node's branching bits, and its *way* to each entry,
//!    never change; a copy replaces the node instead.
//! I2 All keys below a node, and below each of its branches, agree in all bits before the branching bit, as long as
//!    the node is not obsolete: a key that differs earlier belongs beside a branch further up. That common string
//!    never changes, as no node is ever without a key.
//! I3 An obsolete node's slots do not change. They still lead to the objects at the time of its replacement.
//! I4 A slot is null only if a key was removed in a full pool; a node has at least one that is not null. The next
//!    writer that reaches such a slot replaces the node by a copy without null slots, if there is room by then.

use super::layout::{HEAD, MAX_ENTRIES, Masks, Shape, Target, WINDOW, target};
use super::position::{Position, bit_of, continuation_bit};
use art::damaged;
use art::partial::{Width, last_subset};
use heap::Access;
use pmem::{Fault, GenerationLock, Link, Media, Offset, PSlot, PWord, persistent};

persistent! {
    /// The fixed part.
    #[derive(Debug)]
    pub(super) struct Head [size: HEAD] {
        pub(super) lock: GenerationLock,
        pub(super) shape: PWord,
    }
}

/// The word of a head.
pub(super) fn shape_word(shape: Shape, height: u16, select: u32) -> u64 {
    u64::from(select) << 32 | u64::from(height) << 16 | u64::from(shape.bits)
}

/// A reference to a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct Node<'g> {
    pub(super) lock: &'g GenerationLock,
    pub(super) slots: &'g [PSlot],
    pub(super) shape: Shape,
    word: u64,
    /// Masks and partial keys.
    fixed: &'g [u8],
}

impl<'g> Node<'g> {
    /// The node of this shape that `link` leads to.
    #[inline(always)]
    pub(super) fn at<M: Media>(heap: &'g Access<M>, link: Link, shape: Shape) -> Result<Node<'g>, Fault> {
        let start = link.bits() & Offset::MASK;
        let part = |at: usize| Offset::new(start + at as u64);
        let (Some(head), Some(fixed)) = (part(0), part(HEAD)) else {
            return Err(damaged("link to a node", link));
        };
        let head: &Head = heap.at(head)?;
        // Slots begin at a multiple of eight: they are the end of a slice of words that begins behind the head.
        let words = heap.slice::<PSlot>(fixed, shape.fixed() / 8 + shape.count)?;
        let word = head.shape.load(heap.media());
        if word as u16 != shape.bits {
            return Err(damaged("node does not match its link", link));
        }
        Ok(Node {
            lock: &head.lock,
            slots: &words[shape.fixed() / 8..],
            shape,
            word,
            fixed: heap.bytes(fixed, shape.fixed())?,
        })
    }

    /// The maximum number of nodes on a path from this node, which counts, to a leaf. It may be wrong, and only guides
    /// inserts.
    pub(super) fn height(&self) -> u16 {
        (self.word >> 16) as u16
    }

    #[inline(always)]
    fn select(&self) -> u32 {
        (self.word >> 32) as u32
    }

    /// Its first branching bit.
    #[inline(always)]
    pub(super) fn first(&self) -> Position {
        let select = self.select() as usize;
        match self.shape.layout.masks {
            Masks::Single => {
                let higher = self.single_mask().leading_zeros();
                bit_of(select + higher as usize / 8, higher % 8)
            }
            Masks::Multi(_) if select & 1 != 0 => continuation_bit(self.number(0)),
            Masks::Multi(bytes) => bit_of(self.number(0), self.multi_mask(bytes, 0).leading_zeros()),
        }
    }

    #[inline(always)]
    fn single_mask(&self) -> u64 {
        let mask = self.fixed.first_chunk();
        mask.map_or(0, |mask| u64::from_be_bytes(*mask))
    }

    /// The `i`-th byte number, of several masks.
    #[inline(always)]
    fn number(&self, i: usize) -> usize {
        usize::from(u16::from_le_bytes([self.fixed[i * 2], self.fixed[i * 2 + 1]]))
    }

    #[inline(always)]
    fn multi_mask(&self, bytes: usize, i: usize) -> u8 {
        self.fixed[bytes * 2 + i]
    }

    #[inline(always)]
    pub(super) fn partials(&self) -> &'g [u8] {
        &self.fixed[self.shape.layout.masks.size()..]
    }

    /// The entry on the key's way.
    #[inline(always)]
    pub(super) fn search(&self, key: &[u8]) -> Result<usize, Fault> {
        let (width, count) = (self.shape.layout.width, self.shape.count);
        let found = match self.shape.layout.masks {
            Masks::Single => {
                let word = window(key, self.select() as usize);
                last_subset(&[word], &[self.single_mask()], self.partials(), width, count)
            }
            Masks::Multi(bytes) => {
                let (words, masks) = self.gather(key, bytes);
                let words = &words[..bytes / 8];
                last_subset(words, &masks[..bytes / 8], self.partials(), width, count)
            }
        };
        found.ok_or(Fault {
            what: "partial keys of a node",
            offset: 0,
        })
    }

    /// The bytes of a key under the masks, and the masks.
    fn gather(&self, key: &[u8], bytes: usize) -> ([u64; MAX_ENTRIES / 8], [u64; MAX_ENTRIES / 8]) {
        let mut gathered = [0_u8; MAX_ENTRIES];
        let select = self.select();
        let numbers = self.fixed[..bytes * 2].as_chunks::<2>().0;
        for (i, (byte, number)) in gathered.iter_mut().zip(numbers).enumerate() {
            let found = key.get(usize::from(u16::from_le_bytes(*number)));
            *byte = match select >> i & 1 {
                0 => found.copied().unwrap_or_default(),
                _ => u8::from(found.is_some()),
            };
        }
        let (mut words, mut masks) = ([0; MAX_ENTRIES / 8], [0; MAX_ENTRIES / 8]);
        let all_masks = self.fixed[bytes * 2..].as_chunks::<8>().0;
        for (i, (word, bytes)) in words.iter_mut().zip(gathered.as_chunks::<8>().0).enumerate() {
            *word = u64::from_be_bytes(*bytes);
            masks[i] = all_masks.get(i).map_or(0, |mask| u64::from_be_bytes(*mask));
        }
        (words, masks)
    }

    /// Passes its branching bits to `each`, in ascending order; in a damaged pool there may be any number of them.
    pub(super) fn positions(&self, mut each: impl FnMut(Position)) {
        let select = self.select();
        match self.shape.layout.masks {
            Masks::Single => {
                for (i, mask) in self.single_mask().to_be_bytes().into_iter().enumerate() {
                    each_bit(select as usize + i, mask, &mut each);
                }
            }
            Masks::Multi(bytes) => {
                for i in 0..bytes {
                    match (self.number(i), select >> i & 1) {
                        (byte, 0) => each_bit(byte, self.multi_mask(bytes, i), &mut each),
                        (byte, _) => each(continuation_bit(byte)),
                    }
                }
            }
        }
    }

    /// The slots' links, including null ones.
    pub(super) fn links<M: Media>(&self, media: &'g M) -> impl Iterator<Item = Link> + use<'g, M> {
        self.slots.iter().map(|slot| slot.load(media))
    }

    /// The live entry whose way parts last from that to `index`; `None` if none is live.
    pub(super) fn nearest_live<M: Media>(&self, media: &M, index: usize) -> Option<(usize, Link)> {
        let own = self.partial(index);
        let live = self
            .slots
            .iter()
            .enumerate()
            .map(|(i, slot)| (i, slot.load(media)));
        live.filter(|(_, link)| !link.is_null())
            .min_by_key(|&(i, _)| self.partial(i) ^ own)
    }

    /// Reads all partial keys.
    pub(super) fn read_partials(&self, into: &mut [u32]) {
        let partials = self.partials();
        let places = into.iter_mut().take(self.shape.count);
        match self.shape.layout.width {
            Width::One => places
                .zip(partials)
                .for_each(|(place, byte)| *place = (*byte).into()),
            Width::Two => {
                let pairs = places.zip(partials.as_chunks().0);
                pairs.for_each(|(place, bytes)| *place = u16::from_le_bytes(*bytes).into());
            }
            Width::Four => {
                let fours = places.zip(partials.as_chunks().0);
                fours.for_each(|(place, bytes)| *place = u32::from_le_bytes(*bytes));
            }
        }
    }

    /// The partial key of an entry.
    pub(super) fn partial(&self, index: usize) -> u32 {
        let width = self.shape.layout.width.bytes();
        let mut bytes = [0; 4];
        bytes[..width].copy_from_slice(&self.partials()[index * width..][..width]);
        u32::from_le_bytes(bytes)
    }
}

/// Passes the positions of the set bits in the mask of a byte to `each`.
fn each_bit(byte: usize, mut mask: u8, each: &mut impl FnMut(Position)) {
    while mask != 0 {
        each(bit_of(byte, mask.leading_zeros()));
        mask &= 0x7f_u8 >> mask.leading_zeros();
    }
}

/// Eight bytes of a key from `start` on, most significant first; zeros after its end.
#[inline(always)]
fn window(key: &[u8], start: usize) -> u64 {
    let rest = key.get(start..).unwrap_or_default();
    match rest.first_chunk::<WINDOW>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => {
            let mut bytes = [0; WINDOW];
            bytes[..rest.len()].copy_from_slice(rest);
            u64::from_be_bytes(bytes)
        }
    }
}

/// The node that a link leads to; `None` if it leads to another object.
///
/// # Errors
///
/// If no node can be there, or the link cannot be in a slot.
#[inline(always)]
pub(super) fn node_at<'g, M: Media>(heap: &'g Access<M>, link: Link) -> Result<Option<Node<'g>>, Fault> {
    match target(link) {
        Target::Node(shape) => Node::at(heap, link, shape).map(Some),
        Target::Leaf | Target::Null => Ok(None),
        Target::Unknown => Err(damaged("link of a slot", link)),
    }
}
