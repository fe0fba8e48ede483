//! The objects of a node: its cell, deltas and marks, and bases. All but the cell's head and the flags of removed pairs is
//! constant.
//!
//! ```text
//! cell       0 head                  the mapping table's entry: its place is the node's name
//!
//! pair       0 next   8 prefix  16 word  24 gone              a delta of a leaf
//!
//! range      0 next   8 cell   16 lengths of `from` (32 bits) and `to` (32 bits, all ones for none)
//!           24 from, to                                       a delta of an inner node, or a mark
//!
//! base       0 level:8 | entries:24
//!            8 right  the right sibling's cell
//!           16 lengths of `low` and `high`, as in a range
//!           24 length of the separators
//!  leaf     32 a bit for each entry that is a record | one for each that was removed | entries | low | high
//!  inner    32 entries | where each separator ends, 32 bits each | low | high | separators
//! ```
//!
//! An entry is two words: the key's first eight bytes, and the value, the record's link, or the child's cell. A base takes
//! the keys from `low` up to `high`, which is its right sibling's `low`; the first separator of an inner base is its `low`,
//! and is not among the separators.

use super::link::{Apart, Kind, apart, kind};
use art::damaged;
use heap::{Access, footprint};
use index::codec::{Key, PairWords};
use pmem::{
    Fault, Link, Media, Offset, PEither, PSlot, PWord, Persistent, Purpose, persist_scope, persistent,
};
use std::cmp::Ordering;

persistent! {
    /// An entry of the mapping table.
    #[derive(Debug)]
    pub(super) struct Cell [size: 8] {
        pub(super) head: PSlot,
    }

    /// A delta of a leaf: the pair of a key.
    #[derive(Debug)]
    pub(super) struct Pair [size: 32] {
        pub(super) next: PSlot,
        pub(super) prefix: PWord,
        pub(super) word: PEither,
        pub(super) gone: PWord,
    }

    /// A delta of an inner node, or a mark. `from` and `to` follow.
    #[derive(Debug)]
    pub(super) struct Range [size: 24] {
        pub(super) next: PSlot,
        pub(super) cell: PSlot,
        pub(super) lengths: PWord,
    }

    /// The fixed part of a base.
    #[derive(Debug)]
    pub(super) struct Head [size: 32] {
        pub(super) about: PWord,
        pub(super) right: PSlot,
        pub(super) lengths: PWord,
        pub(super) separators: PWord,
    }

    /// An entry of a base.
    #[derive(Debug)]
    pub(super) struct Entry [size: 16] {
        pub(super) prefix: PWord,
        pub(super) word: PEither,
    }
}

/// The length that stands for no bound.
const NONE: u64 = u32::MAX as u64;
const LEVEL_BITS: u32 = 8;
const COUNT_BITS: u32 = 24;

/// The lengths of two bounds, as a word.
pub(super) fn lengths(from: &[u8], to: Option<&[u8]>) -> u64 {
    from.len() as u64 | to.map_or(NONE, |to| to.len() as u64) << 32
}

/// The first word of a base.
pub(super) fn about(level: u8, count: usize) -> u64 {
    u64::from(level) | (count as u64) << LEVEL_BITS
}

/// Words of a leaf's bitmaps, each.
pub(super) fn bitmap_words(count: usize) -> usize {
    count.div_ceil(64)
}

/// Bytes between an inner base's entries and its keys: where each separator ends.
pub(super) fn ends_len(count: usize) -> usize {
    (4 * count).next_multiple_of(8)
}

fn bounds_lens(lengths: u64) -> (usize, Option<usize>) {
    let to = lengths >> 32;
    ((lengths & NONE) as usize, (to != NONE).then_some(to as usize))
}

/// `len` objects from an object's byte `from` on, which is a multiple of 16.
#[inline(always)]
fn slice_of<T: Persistent, M: Media>(
    heap: &Access<M>,
    link: Link,
    from: usize,
    len: usize,
) -> Result<&[T], Fault> {
    let start = link.offset().map_or(0, Offset::get);
    match Offset::new(start + from as u64) {
        Some(at) => heap.slice(at, len),
        None => Err(damaged("link of a P-BwTree", link)),
    }
}

/// Bytes of an object from its byte `from` on.
#[inline(always)]
fn bytes_of<M: Media>(heap: &Access<M>, link: Link, from: usize, len: usize) -> Result<&[u8], Fault> {
    let skip = from % 16;
    let start = link.offset().map_or(0, Offset::get);
    match Offset::new(start + (from - skip) as u64) {
        Some(at) => Ok(&heap.bytes(at, skip + len)?[skip..]),
        None => Err(damaged("link of a P-BwTree", link)),
    }
}

/// The slot of a cell.
#[inline(always)]
pub(super) fn slot_at<M: Media>(heap: &Access<M>, cell: Link) -> Result<&PSlot, Fault> {
    let offset = cell.offset().ok_or_else(|| damaged("cell of a node", cell))?;
    Ok(&heap.at::<Cell>(offset)?.head)
}

/// A pair delta being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct PairRef<'g> {
    pub(super) pair: &'g Pair,
    pub(super) next: Link,
    pub(super) words: PairWords,
}

impl<'g> PairRef<'g> {
    #[inline(always)]
    pub(super) fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<PairRef<'g>, Fault> {
        let offset = link.offset().ok_or_else(|| damaged("delta of a leaf", link))?;
        let media = heap.media();
        let pair: &Pair = heap.at(offset)?;
        Ok(PairRef {
            pair,
            next: pair.next.load(media),
            words: words(
                media,
                pair.prefix.load(media),
                &pair.word,
                kind(link) == Kind::PutRecord,
            ),
        })
    }
}

#[inline(always)]
fn words<M: Media>(media: &M, prefix: u64, word: &PEither, is_record: bool) -> PairWords {
    let (link, word) = match is_record {
        true => (word.load_link(media), 0),
        false => (Link::NULL, word.load(media)),
    };
    PairWords { prefix, link, word }
}

/// A range delta, or a mark, being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct RangeRef<'g> {
    pub(super) next: Link,
    pub(super) cell: Link,
    pub(super) from: &'g [u8],
    pub(super) to: Option<&'g [u8]>,
    pub(super) extent: usize,
}

impl<'g> RangeRef<'g> {
    #[inline]
    pub(super) fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<RangeRef<'g>, Fault> {
        let offset = link.offset().ok_or_else(|| damaged("delta of a node", link))?;
        let media = heap.media();
        let range: &Range = heap.at(offset)?;
        let (from, to) = bounds_lens(range.lengths.load(media));
        let len = from + to.unwrap_or(0);
        let bytes = bytes_of(heap, link, size_of::<Range>(), len)?;
        Ok(RangeRef {
            next: range.next.load(media),
            cell: range.cell.load(media),
            from: &bytes[..from],
            to: to.map(|_| &bytes[from..]),
            extent: footprint::<Range>(len).unwrap_or(usize::MAX),
        })
    }
}

/// A base being read.
#[derive(Clone, Copy, Debug)]
pub(super) struct BaseRef<'g> {
    pub(super) link: Link,
    pub(super) head: &'g Head,
    pub(super) level: u8,
    pub(super) entries: &'g [Entry],
    /// Of a leaf: which entries are records, then which were removed.
    bitmaps: &'g [PWord],
}

impl<'g> BaseRef<'g> {
    #[inline(always)]
    pub(super) fn at<M: Media>(heap: &'g Access<M>, link: Link) -> Result<BaseRef<'g>, Fault> {
        let offset = link.offset().ok_or_else(|| damaged("base of a node", link))?;
        let head: &Head = heap.at(offset)?;
        let about = head.about.load(heap.media());
        let level = about as u8;
        let count = (about >> LEVEL_BITS) as usize;
        if count >> COUNT_BITS != 0
            || !matches!(
                (kind(link), apart(link)),
                (Kind::Base, _) | (_, Some(Apart::Part(_)))
            )
        {
            return Err(damaged("base of a node", link));
        }
        let bitmaps = if level == 0 { 2 * bitmap_words(count) } else { 0 };
        let from = size_of::<Head>() + 8 * bitmaps;
        Ok(BaseRef {
            link,
            head,
            level,
            entries: slice_of(heap, link, from, count)?,
            bitmaps: slice_of(heap, link, size_of::<Head>(), bitmaps)?,
        })
    }

    /// How many of the entries count by the link that leads here.
    pub(super) fn counted(&self) -> usize {
        match apart(self.link) {
            Some(Apart::Part(count)) => count.min(self.entries.len()),
            _ => self.entries.len(),
        }
    }

    fn keys_at(&self) -> usize {
        let count = self.entries.len();
        let ends = if self.level == 0 { 0 } else { ends_len(count) };
        size_of::<Head>() + 8 * self.bitmaps.len() + size_of::<Entry>() * count + ends
    }

    /// The bounds of the keys that it takes.
    pub(super) fn bounds<M: Media>(
        &self,
        heap: &'g Access<M>,
    ) -> Result<(&'g [u8], Option<&'g [u8]>), Fault> {
        let (low, high) = bounds_lens(self.head.lengths.load(heap.media()));
        let bytes = bytes_of(heap, self.link, self.keys_at(), low + high.unwrap_or(0))?;
        Ok((&bytes[..low], high.map(|_| &bytes[low..])))
    }

    fn separators_len<M: Media>(&self, heap: &Access<M>) -> usize {
        self.head.separators.load(heap.media()) as u32 as usize
    }

    /// The separators of an inner base, behind one another, and where each ends.
    fn separators<M: Media>(&self, heap: &'g Access<M>) -> Result<(&'g [u8], &'g [[u8; 4]]), Fault> {
        let count = self.entries.len();
        let (low, high) = bounds_lens(self.head.lengths.load(heap.media()));
        let at = self.keys_at();
        let ends = bytes_of(heap, self.link, at - ends_len(count), 4 * count)?
            .as_chunks()
            .0;
        let len = self.separators_len(heap);
        let bytes = bytes_of(heap, self.link, at + low + high.unwrap_or(0), len)?;
        Ok((bytes, ends))
    }

    /// The separators of an inner base, in order.
    pub(super) fn children<M: Media>(&self, heap: &'g Access<M>) -> Result<Vec<(&'g [u8], Link)>, Fault> {
        let (low, _) = self.bounds(heap)?;
        let (bytes, ends) = self.separators(heap)?;
        let entries = self.entries.iter().enumerate();
        entries
            .map(|(i, entry)| {
                let separator = if i == 0 {
                    low
                } else {
                    self.separator(bytes, ends, i)?
                };
                Ok((separator, entry.word.load_link(heap.media())))
            })
            .collect()
    }

    fn separator<'b>(&self, bytes: &'b [u8], ends: &[[u8; 4]], i: usize) -> Result<&'b [u8], Fault> {
        let end = |i: usize| u32::from_le_bytes(ends[i]) as usize;
        let range = end(i - 1)..end(i);
        bytes
            .get(range)
            .ok_or_else(|| damaged("separators of a node", self.link))
    }

    /// The child that an aim leads to.
    #[inline]
    pub(super) fn child<M: Media>(&self, heap: &'g Access<M>, aim: Aim<'_>) -> Result<Link, Fault> {
        let media = heap.media();
        let (bytes, ends) = self.separators(heap)?;
        // The first separator is the node's `low`, which any aim that has come here reaches.
        let (mut from, mut to) = (1, self.entries.len());
        while from < to {
            let middle = from.midpoint(to);
            let reached = match aim.prefix.cmp(&self.entries[middle].prefix.load(media)) {
                Ordering::Equal => aim.reaches(self.separator(bytes, ends, middle)?),
                unequal => unequal == Ordering::Greater,
            };
            if reached {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        match self.entries.get(from - 1) {
            Some(entry) => Ok(entry.word.load_link(media)),
            None => Err(damaged("inner node without a child", self.link)),
        }
    }

    /// The pair of an entry of a leaf.
    #[inline(always)]
    pub(super) fn pair<M: Media>(&self, media: &M, i: usize) -> PairWords {
        let entry = &self.entries[i];
        let is_record = self.bitmaps[i / 64].load(media) >> (i % 64) & 1 != 0;
        words(media, entry.prefix.load(media), &entry.word, is_record)
    }

    /// The word of the bitmap that says whether an entry was removed.
    fn gone_word(&self, i: usize) -> &'g PWord {
        &self.bitmaps[self.bitmaps.len() / 2 + i / 64]
    }

    /// Whether an entry of a leaf was removed, before a later head said so of another. What a head has said was durable
    /// before, so nothing depends on whether this word is.
    #[inline(always)]
    pub(super) fn is_gone<M: Media>(&self, media: &M, i: usize) -> bool {
        self.gone_word(i).peek(media) >> (i % 64) & 1 != 0
    }

    /// How many entries of a leaf were removed.
    pub(super) fn gone_count<M: Media>(&self, media: &M) -> usize {
        let (_, gone) = self.bitmaps.split_at(self.bitmaps.len() / 2);
        gone.iter()
            .map(|word| word.peek(media).count_ones() as usize)
            .sum()
    }

    /// Sets the flag of an entry that a head says was removed.
    pub(super) fn set_gone<M: Media>(&self, media: &M, i: usize) {
        set_flag(media, self.gone_word(i), 1 << (i % 64));
    }

    /// Where a key is, or would come, among the entries of a leaf.
    #[inline(always)]
    pub(super) fn search<M: Media>(
        &self,
        heap: &'g Access<M>,
        key: &Key<'_>,
    ) -> Result<Result<usize, usize>, Fault> {
        let media = heap.media();
        let (mut from, mut to) = (0, self.entries.len());
        while from < to {
            let middle = from.midpoint(to);
            let order = match key.prefix.cmp(&self.entries[middle].prefix.load(media)) {
                Ordering::Equal => {
                    let pair = self.pair(media, middle);
                    key.compare(heap, pair.prefix, pair.link)?
                }
                unequal => unequal,
            };
            match order {
                Ordering::Equal => return Ok(Ok(middle)),
                Ordering::Greater => from = middle + 1,
                Ordering::Less => to = middle,
            }
        }
        Ok(Err(from))
    }

    /// Bytes of the whole base.
    pub(super) fn extent<M: Media>(&self, heap: &'g Access<M>) -> usize {
        let (low, high) = bounds_lens(self.head.lengths.load(heap.media()));
        let len = self.keys_at() + low + high.unwrap_or(0) + self.separators_len(heap);
        footprint::<Head>(len - size_of::<Head>()).unwrap_or(usize::MAX)
    }
}

/// Sets bits of a word, which a head says already, and makes them durable. 1 write-back, 1 fence.
pub(super) fn set_flag<M: Media>(media: &M, word: &PWord, bits: u64) {
    loop {
        let seen = word.peek(media);
        if seen & bits == bits {
            break;
        }
        // Others may set other bits, each of them once.
        word.settle(seen, seen | bits, media);
    }
    persist_scope(media, Purpose::Node, |batch| {
        word.persist_seen(&batch);
        batch.fence();
    });
}

/// Where a walk goes: to a key, or to what is just before one, or to the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Aim<'k> {
    /// `None`: behind all keys.
    pub(super) key: Option<&'k [u8]>,
    /// Whether it goes to what is before the key.
    pub(super) before: bool,
    prefix: u64,
}

impl<'k> Aim<'k> {
    pub(super) fn to(key: &'k [u8]) -> Aim<'k> {
        Aim {
            key: Some(key),
            before: false,
            prefix: index::codec::prefix(key),
        }
    }

    pub(super) fn before(key: &'k [u8]) -> Aim<'k> {
        Aim {
            before: true,
            ..Aim::to(key)
        }
    }

    pub(super) const END: Aim<'static> = Aim {
        key: None,
        before: false,
        prefix: u64::MAX,
    };

    /// Whether it lies in what begins with the bound.
    #[inline(always)]
    pub(super) fn reaches(&self, bound: &[u8]) -> bool {
        match self.key.map(|key| key.cmp(bound)) {
            Some(Ordering::Less) => false,
            Some(Ordering::Equal) => !self.before,
            Some(Ordering::Greater) | None => true,
        }
    }
}
