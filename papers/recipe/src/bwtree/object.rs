//! The objects of a node in front of its base: its cell, deltas and marks. All but the cell's head and the flags of
//! removed pairs is constant.
//!
//! ```text
//! cell       0 head                  the mapping table's entry: its place is the node's name
//!
//! pair       0 next   8 prefix  16 word  24 gone              a delta of a leaf
//!
//! range      0 next   8 cell   16 lengths of `from` (32 bits) and `to` (32 bits, all ones for none)
//!           24 from, to                                       a delta of an inner node, or a mark
//! ```

use super::link::{Kind, kind};
use art::damaged;
use heap::{Access, footprint};
use index::codec::PairWords;
use pmem::{
    Fault, Link, Media, Offset, PEither, PSlot, PWord, Persistent, Purpose, persist_scope, persistent,
};

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
}

/// The length that stands for no bound.
const NONE: u64 = u32::MAX as u64;

/// The lengths of two bounds, as a word.
pub(super) fn lengths(from: &[u8], to: Option<&[u8]>) -> u64 {
    from.len() as u64 | to.map_or(NONE, |to| to.len() as u64) << 32
}

/// The lengths of two bounds that a word holds.
pub(super) fn bounds_lens(lengths: u64) -> (usize, Option<usize>) {
    let to = lengths >> 32;
    ((lengths & NONE) as usize, (to != NONE).then_some(to as usize))
}

/// `len` objects from an object's byte `from` on, which is a multiple of 16.
#[inline(always)]
pub(super) fn slice_of<T: Persistent, M: Media>(
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
pub(super) fn bytes_of<M: Media>(
    heap: &Access<M>,
    link: Link,
    from: usize,
    len: usize,
) -> Result<&[u8], Fault> {
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
pub(super) fn words<M: Media>(media: &M, prefix: u64, word: &PEither, is_record: bool) -> PairWords {
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
