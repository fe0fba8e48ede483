//! Bases: the ends of nodes' chains. A base is constant except for the flags of removed pairs.
//!
//! ```text
//!            0 level:8 | entries:24
//!            8 right  the right sibling's cell
//!           16 lengths of `low` and `high`, as in a range
//!           24 length of the separators
//!  leaf     32 a bit for each entry that is a record | one for each that was removed | entries | low | high
//!  inner    32 entries | where each separator ends, 32 bits each | low | high | separators
//! ```
//!
//! An entry is two words: the key's first eight bytes, and the value, the record's link, or the child's cell. A base
//! covers the keys from `low` up to `high`, which is its right sibling's `low`; the first separator of an inner base
//! is its `low`, and is not stored among the separators.

use super::aim::Aim;
use super::link::{Apart, Kind, apart, is_emptied, kind};
use super::object::{bounds_lens, bytes_of, set_flag, slice_of, spare_len, words};
use art::damaged;
use heap::{Access, footprint};
use index::codec::{PairWords, SearchKey};
use pmem::{Fault, Link, Media, PEither, PSlot, PWord, persistent};
use std::cmp::Ordering;

persistent! {
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
    pub(super) struct BaseEntry [size: 16] {
        pub(super) prefix: PWord,
        pub(super) word: PEither,
    }
}

const LEVEL_BITS: u32 = 8;
const COUNT_BITS: u32 = 24;

/// The first word of a base.
pub(super) fn about(level: u8, count: usize) -> u64 {
    u64::from(level) | (count as u64) << LEVEL_BITS
}

/// Number of words of each of a leaf's bitmaps.
pub(super) fn bitmap_words(count: usize) -> usize {
    count.div_ceil(64)
}

/// Number of bytes between an inner base's entries and its keys, which hold the separators' ends.
pub(super) fn ends_len(count: usize) -> usize {
    (4 * count).next_multiple_of(8)
}

/// A reference to a base.
#[derive(Clone, Copy, Debug)]
pub(super) struct BaseRef<'g> {
    pub(super) link: Link,
    pub(super) head: &'g Head,
    pub(super) level: u8,
    pub(super) entries: &'g [BaseEntry],
    /// For a leaf: the bitmap of records, then that of removed entries.
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

    /// Number of entries that count, by the link that leads here.
    pub(super) fn counted(&self) -> usize {
        match apart(self.link) {
            Some(Apart::Part(count)) => count.min(self.entries.len()),
            _ if is_emptied(self.link) => 0,
            _ => self.entries.len(),
        }
    }

    /// Whether it has entries, none of which counts any more.
    pub(super) fn is_emptied(&self) -> bool {
        self.counted() == 0 && !self.entries.is_empty()
    }

    fn keys_at(&self) -> usize {
        let count = self.entries.len();
        let ends = if self.level == 0 { 0 } else { ends_len(count) };
        size_of::<Head>() + 8 * self.bitmaps.len() + size_of_val(self.entries) + ends
    }

    /// The bounds of its keys.
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

    /// The separators of an inner base, concatenated, and their ends.
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

    /// The children of an inner base with their separators, in order.
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

    /// The child on the way to an aim.
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

    /// The word of the bitmap with the flag of a removed entry.
    fn gone_word(&self, i: usize) -> &'g PWord {
        &self.bitmaps[self.bitmaps.len() / 2 + i / 64]
    }

    /// Whether the flag of a leaf's entry says that its pair was removed. The head that named the pair was durable
    /// before the flag was set, so nothing depends on whether the flag is durable.
    #[inline(always)]
    pub(super) fn is_gone<M: Media>(&self, media: &M, i: usize) -> bool {
        self.gone_word(i).peek(media) >> (i % 64) & 1 != 0
    }

    /// Number of removed entries of a leaf.
    pub(super) fn gone_count<M: Media>(&self, media: &M) -> usize {
        let (_, gone) = self.bitmaps.split_at(self.bitmaps.len() / 2);
        gone.iter()
            .map(|word| word.peek(media).count_ones() as usize)
            .sum()
    }

    /// Sets the flag of an entry that a head names as removed.
    pub(super) fn set_gone<M: Media>(&self, media: &M, i: usize) {
        set_flag(media, self.gone_word(i), 1 << (i % 64));
    }

    /// The place of a key, or where to insert it, among the entries of a leaf that count: the records of the others
    /// belong to the sibling, which may have retired them.
    #[inline(always)]
    pub(super) fn search<M: Media>(
        &self,
        heap: &'g Access<M>,
        key: &SearchKey<'_>,
    ) -> Result<Result<usize, usize>, Fault> {
        let media = heap.media();
        let (mut from, mut to) = (0, self.counted());
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

    /// Length of the whole base in bytes.
    pub(super) fn extent<M: Media>(&self, heap: &'g Access<M>) -> usize {
        let lengths = self.head.lengths.load(heap.media());
        let (low, high) = bounds_lens(lengths);
        let bounds = low + high.unwrap_or(0);
        let len = self.keys_at() + bounds + self.separators_len(heap) + spare_len(lengths);
        footprint::<Head>(len - size_of::<Head>()).unwrap_or(usize::MAX)
    }
}
