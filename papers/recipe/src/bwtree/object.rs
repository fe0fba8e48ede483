//! The objects of a node in front of its base: its cell, deltas and marks. They are constant except for the cell's
//! head and the flags of removed pairs.
//!
//! ```text
//! cell       0 head                  the mapping table's entry: its place is the node's name
//!
//! pair       0 next   8 prefix  16 word  24 gone              a delta of a leaf
//!
//! range      0 next   8 cell   16 lengths of `from` (16 bits), of spare bytes (16 bits), of `to`
//!                                      (32 bits, all ones for none)
//!           24 from, to                                       a delta of an inner node, or a mark
//! ```

use super::link::{Kind, kind};
use art::damaged;
use heap::{Access, Error, Heap, MayBeFull, footprint};
use index::codec::PairWords;
use pmem::{
    Draft, Fault, Link, Media, Offset, PEither, PSlot, PWord, PersistBatch, Persistent, Purpose,
    persist_scope, persistent,
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

/// The length that means no bound.
const NONE: u64 = u32::MAX as u64;

const SPARE_SHIFT: u32 = 16;
const _: () = assert!(index::MAX_KEY < 1 << SPARE_SHIFT);

/// A word with the lengths of two bounds, and the number of spare bytes at the object's end.
pub(super) fn lengths(from: &[u8], to: Option<&[u8]>, spare: usize) -> u64 {
    let spare = (spare as u64) << SPARE_SHIFT;
    from.len() as u64 | spare | to.map_or(NONE, |to| to.len() as u64) << 32
}

/// The lengths of two bounds in such a word.
pub(super) fn bounds_lens(lengths: u64) -> (usize, Option<usize>) {
    let to = lengths >> 32;
    (usize::from(lengths as u16), (to != NONE).then_some(to as usize))
}

/// The number of spare bytes at the object's end.
pub(super) fn spare_len(lengths: u64) -> usize {
    usize::from((lengths >> SPARE_SHIFT) as u16)
}

/// Drafts an object, with a tail of this length. In a full pool it uses a longer chunk if one is free, and passes the
/// number of spare bytes to `make`. So an object can be replaced by a shorter one even if only chunks of its old length
/// are free.
pub(super) fn draft_to_fit<'e, 'h, T: Persistent, M: Media>(
    heap: &'h Heap<M>,
    tail: usize,
    batch: &PersistBatch<'e, '_, M>,
    make: impl Fn(usize) -> T,
) -> Result<Draft<'e, 'h, T>, Error> {
    const MAX: usize = 32 << 10;
    let full = match heap.draft(make(0), tail, batch) {
        Err(error) if error.is_full() => error,
        done => return done,
    };
    let least = size_of::<T>() + tail;
    let mut len = least;
    while len < MAX {
        // Lengths that ascend about like the heap's classes.
        len = match len {
            ..256 => (len + 1).next_multiple_of(32),
            256..1024 => (len + 1).next_multiple_of(64),
            _ => (len + len / 8).next_multiple_of(64),
        };
        let spare = len - least;
        if let Ok(mut draft) = heap.draft(make(spare), tail + spare, batch) {
            draft.tail_mut()[tail..].fill(0);
            return Ok(draft);
        }
    }
    Err(full)
}

/// `len` objects from byte `from` of an object on, which is a multiple of 16.
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

/// A reference to a pair delta.
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

/// A reference to a range delta or a mark.
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
        let lengths = range.lengths.load(media);
        let (from, to) = bounds_lens(lengths);
        let len = from + to.unwrap_or(0);
        let bytes = bytes_of(heap, link, size_of::<Range>(), len)?;
        Ok(RangeRef {
            next: range.next.load(media),
            cell: range.cell.load(media),
            from: &bytes[..from],
            to: to.map(|_| &bytes[from..]),
            extent: footprint::<Range>(len + spare_len(lengths)).unwrap_or(usize::MAX),
        })
    }
}

/// Sets bits of a word that a head implies already, and persists them. Costs 1 write-back and 1 fence.
pub(super) fn set_flag<M: Media>(media: &M, word: &PWord, bits: u64) {
    loop {
        let seen = word.peek(media);
        if seen & bits == bits {
            break;
        }
        // Other threads may set other bits, each of them once.
        word.settle(seen, seen | bits, media);
    }
    persist_scope(media, Purpose::Node, |batch| {
        word.persist_seen(&batch);
        batch.fence();
    });
}
