//! P-ART's inner nodes: their bytes (RECIPE §6.4).
//!
//! ```text
//!            0      8      16     24      32
//!  each      lock | meta | ends | prefix |
//!  N4                                      4 pointers
//!  N16                                     16 key bytes | 0 | 16 pointers
//!  N48                                     live | used | 0 | child index | 48 pointers
//!  N256                                    live | 0 | 256 pointers
//!
//!  meta      mark:1 | counter:7 | kind:4 | 0:4 | level:16 | key bytes of an N4:32
//! ```
//!
//! I1 N4 and N16: the entries below the counter count. Readers ignore the others. An entry that counts never gets
//!    another key byte; a null pointer empties it, for good. (If the words of a line become durable in any order, a
//!    crash may leave an N16's last entry without its key byte. The counter has its mark then, and the first holder
//!    of the lock empties the entry.)
//! I2 N48: the pointers that the child index names count. None is named for a second time.
//! I3 N256: the pointers that are not null count.
//! I4 A pointer carries its key byte too; if it differs from the byte beside it, the entry does not count.
//! I5 Level and kind never change.
//! I6 `live` and `used` mean something only under the lock and while its generation is the pool's.
//! I7 A replaced node keeps its entries as they are.

use super::AppendOnly;
use super::prefix::Prefix;
use art::{InnerRef, Kind, byte_at, bytes_like, each_kind, matching};
use heap::Access;
use pmem::{CommitWord, Fault, GenerationLock, Link, Media, PSlot, PWord, VWord, persistent};

persistent! {
    /// The common beginning of all nodes: half a line.
    #[derive(Debug)]
    pub struct Header [size: 32] {
        pub(super) lock: GenerationLock,
        pub(super) meta: CommitWord,
        pub(super) ends: PSlot, // the leaf of the key that ends at this level
        pub(super) prefix: CommitWord,
    }
}

persistent! {
    /// Up to 4 children in one line.
    pub struct N4 [size: 64, align: 64] {
        pub(super) header: Header,
        pub(super) slots: [PSlot; 4],
    }

    /// Up to 16 children.
    pub struct N16 [size: 3 * 64, align: 64] {
        pub(super) header: Header,
        pub(super) keys: [PWord; 2],
        pub(super) unused: [PWord; 2],
        pub(super) slots: [PSlot; 16],
    }

    /// Up to 48 children.
    pub struct N48 [size: 11 * 64, align: 64] {
        pub(super) header: Header,
        pub(super) live: VWord,
        pub(super) used: VWord,
        pub(super) unused: [PWord; 2],
        pub(super) index: [CommitWord; 32], // names a pointer for each key byte (`art::named`)
        pub(super) slots: [PSlot; 48],
    }

    /// A child for each byte.
    pub struct N256 [size: 33 * 64, align: 64] {
        pub(super) header: Header,
        pub(super) live: VWord,
        pub(super) unused: [PWord; 3],
        pub(super) slots: [PSlot; 256],
    }
}

/// A node's meta word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Meta(pub(super) u64);

impl Meta {
    /// Adds one entry.
    pub(super) const ONE: u64 = 2;
    const UNUSED: u64 = 0xf << 12;

    pub(super) fn new(kind: Kind, level: usize) -> Meta {
        Meta((kind as u64) << 8 | (level as u64 & 0xffff) << 16)
    }

    /// Number of entries appended.
    pub(super) fn count(self) -> usize {
        (self.0 >> 1 & 0x7f) as usize
    }

    pub(super) fn level(self) -> usize {
        (self.0 >> 16 & 0xffff) as usize
    }

    /// The word with another entry, whose key byte an N4 stores here.
    pub(super) fn with(self, byte: Option<u8>) -> Meta {
        let key = byte.map_or(0, |byte| u64::from(byte) << (32 + 8 * self.count()));
        Meta((self.0 + Meta::ONE) | key)
    }

    fn keys(self) -> [u8; 4] {
        ((self.0 >> 32) as u32).to_le_bytes()
    }

    /// Whether it is valid for a node of this kind.
    pub(super) fn is_of(self, kind: Kind) -> bool {
        let max = match kind {
            Kind::N4 => 4,
            Kind::N16 => 16,
            _ => 0,
        };
        let beyond = match kind {
            Kind::N4 => u32::from_le_bytes(self.keys()).checked_shr(8 * self.count() as u32),
            _ => Some((self.0 >> 32) as u32),
        };
        self.0 >> 8 & 0xf == kind as u64
            && self.0 & Self::UNUSED == 0
            && self.count() <= max
            && beyond.unwrap_or(0) == 0
    }
}

/// The first child for `byte` among `slots`, given their key bytes.
#[inline(always)]
fn first_like<'g, M: Media>(media: &M, keys: u64, byte: u8, slots: &'g [PSlot]) -> Option<(&'g PSlot, Link)> {
    let mut alike = bytes_like(keys, byte);
    while alike != 0 {
        let entry = alike.trailing_zeros() as usize / 8;
        alike &= alike - 1;
        let slot = slots.get(entry)?;
        // After the first match, some bytes may be false matches.
        if byte_at(keys, entry) == byte
            && let Some(found) = matching(media, slot, byte)
        {
            return Some(found);
        }
    }
    None
}

/// A reference to a node.
#[derive(Clone, Copy)]
pub struct Node<'g>(pub(super) InnerRef<'g, AppendOnly>);

impl N48 {
    /// The byte's pointer, if the index names one.
    fn named<M: Media>(&self, media: &M, byte: u8) -> Option<&PSlot> {
        let word = self.index[art::index_word(byte)].load(media);
        self.slots.get(art::named(word, byte)?)
    }
}

impl<'g> Node<'g> {
    /// The node that `link` leads to.
    #[inline]
    pub(super) fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<Node<'g>, Fault> {
        InnerRef::at(heap, link).map(Node)
    }

    #[inline(always)]
    pub(super) fn header(&self) -> &'g Header {
        each_kind!(self.0, node => &node.header)
    }

    pub(super) fn kind(&self) -> Kind {
        self.0.kind()
    }

    /// All pointers, whether they count or not.
    pub(super) fn slots(&self) -> &'g [PSlot] {
        each_kind!(self.0, node => &node.slots)
    }

    #[inline(always)]
    pub(super) fn meta<M: Media>(&self, media: &M) -> Meta {
        Meta(self.header().meta.load(media))
    }

    pub(super) fn level<M: Media>(&self, media: &M) -> usize {
        self.meta(media).level()
    }

    pub(super) fn prefix<M: Media>(&self, media: &M) -> Prefix {
        Prefix::from_word(self.header().prefix.load(media))
    }

    /// N4 and N16: the entries below the counter, which is loaded first. Empty for others.
    #[inline(always)]
    pub(super) fn counted<M: Media>(
        &self,
        media: &'g M,
    ) -> impl Iterator<Item = (u8, &'g PSlot)> + use<'g, M> {
        let mut keys = [0; 16];
        let mut slots: &[PSlot] = &[];
        match self.0 {
            InnerRef::N4(node) => {
                let meta = self.meta(media);
                keys[..4].copy_from_slice(&meta.keys());
                slots = &node.slots[..meta.count().min(4)];
            }
            InnerRef::N16(node) => {
                let count = self.meta(media).count();
                for (bytes, word) in keys.chunks_exact_mut(8).zip(&node.keys) {
                    bytes.copy_from_slice(&word.load(media).to_le_bytes());
                }
                slots = &node.slots[..count.min(16)];
            }
            _ => {}
        }
        keys.into_iter().zip(slots)
    }

    /// Whether an N16's entry with this key byte is one that a crash has left without its key byte (I1).
    pub(super) fn is_torn<M: Media>(&self, media: &M, entry: usize, byte: u8) -> bool {
        let counter = &self.header().meta;
        self.kind() == Kind::N16
            && byte == 0
            && counter.is_marked(media)
            && entry + 1 == Meta(counter.load(media)).count()
    }

    /// The child for `byte`, and its pointer.
    #[inline]
    pub(super) fn find<M: Media>(&self, media: &'g M, byte: u8) -> Option<(&'g PSlot, Link)> {
        match self.0 {
            InnerRef::N4(node) => {
                let meta = self.meta(media);
                first_like(media, meta.0 >> 32, byte, &node.slots[..meta.count().min(4)])
            }
            InnerRef::N16(node) => {
                let count = self.meta(media).count().min(16);
                let (first, others) = node.slots[..count].split_at(count.min(8));
                let found = first_like(media, node.keys[0].load(media), byte, first);
                if found.is_some() || others.is_empty() {
                    return found;
                }
                first_like(media, node.keys[1].load(media), byte, others)
            }
            InnerRef::N48(node) => matching(media, node.named(media, byte)?, byte),
            InnerRef::N256(node) => matching(media, &node.slots[usize::from(byte)], byte),
        }
    }

    /// The child for a key whose byte at the level is `byte` (`None`: the key ends there), with its pointer, if it
    /// has one.
    #[inline]
    pub(super) fn slot<M: Media>(&self, media: &'g M, byte: Option<u8>) -> (Option<&'g PSlot>, Link) {
        match byte {
            None => {
                let ends = &self.header().ends;
                (Some(ends), ends.load(media))
            }
            Some(byte) => match self.find(media, byte) {
                Some((slot, link)) => (Some(slot), link),
                None => (None, Link::NULL),
            },
        }
    }

    /// All children that count, without `ends`; each once if no thread writes.
    pub(super) fn each_child<M: Media>(
        &self,
        media: &'g M,
        bytes: std::ops::Range<usize>,
        mut each: impl FnMut(u8, Link),
    ) {
        match self.0 {
            InnerRef::N4(_) | InnerRef::N16(_) => {
                for (byte, slot) in self.counted(media) {
                    if bytes.contains(&usize::from(byte))
                        && let Some((_, link)) = matching(media, slot, byte)
                    {
                        each(byte, link);
                    }
                }
            }
            _ => {
                for byte in (0..=255u8).take(bytes.end).skip(bytes.start) {
                    if let Some((_, link)) = self.find(media, byte) {
                        each(byte, link);
                    }
                }
            }
        }
    }

    /// The child in `ends`, and the other children, except for one object.
    pub(super) fn others<M: Media>(&self, media: &'g M, without: Link) -> (Link, Vec<Link>) {
        let mut children = Vec::new();
        self.each_child(media, 0..256, |_, link| {
            if !art::same_object(link, without) {
                children.push(link);
            }
        });
        let ends = self.header().ends.load(media);
        let ends = if art::same_object(ends, without) {
            Link::NULL
        } else {
            ends
        };
        (ends, children)
    }
}
