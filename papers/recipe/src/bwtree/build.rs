//! Writing bases and cells.

use super::base::{BaseEntry, Head, about, bitmap_words, ends_len};
use super::content::Child;
use super::link::{BASE, RECORD, cell_tag};
use super::object::{Cell, draft_to_fit, lengths};
use heap::{Error, Heap};
use index::codec::{PairWords, prefix};
use pmem::{Draft, Erased, Flushed, Link, Media, PSlot, PWord, PersistBatch, Tag};

/// The bounds of a node's keys, and the cell of the right sibling.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds<'b> {
    pub(super) low: &'b [u8],
    pub(super) high: Option<&'b [u8]>,
    pub(super) right: Link,
}

impl Bounds<'_> {
    fn head(&self, level: u8, count: usize, separators: usize, spare: usize) -> Head {
        Head {
            about: PWord::new(about(level, count)),
            right: PSlot::null(),
            lengths: PWord::new(lengths(self.low, self.high, spare)),
            separators: PWord::new(separators as u64),
        }
    }

    fn len(&self) -> usize {
        self.low.len() + self.high.map_or(0, <[u8]>::len)
    }

    /// Writes the bounds, and returns the bytes behind them.
    fn write<'t>(&self, tail: &'t mut [u8]) -> &'t mut [u8] {
        let (low, rest) = tail.split_at_mut(self.low.len());
        low.copy_from_slice(self.low);
        let high = self.high.unwrap_or_default();
        let (place, rest) = rest.split_at_mut(high.len());
        place.copy_from_slice(high);
        rest
    }
}

fn put_word(tail: &mut [u8], at: usize, word: u64) {
    tail[at..at + 8].copy_from_slice(&word.to_ne_bytes());
}

/// Drafts a leaf's base with these pairs, whose records are durable.
pub(super) fn draft_leaf_base<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    pairs: &[PairWords],
    bounds: Bounds<'_>,
    batch: &PersistBatch<'e, '_, M>,
) -> Result<Draft<'e, 'h, Head>, Error> {
    let words = bitmap_words(pairs.len());
    let entries_at = 16 * words;
    let keys_at = entries_at + size_of::<BaseEntry>() * pairs.len();
    let mut draft = draft_to_fit(heap, keys_at + bounds.len(), batch, |spare| {
        bounds.head(0, pairs.len(), 0, spare)
    })?;
    draft.link(|head| &mut head.right, bounds.right);
    let tail = draft.tail_mut();
    tail[..entries_at].fill(0);
    for (i, pair) in pairs.iter().enumerate() {
        put_word(tail, entries_at + 16 * i, pair.prefix);
        let word = match pair.link.is_null() {
            true => pair.word,
            false => {
                tail[i / 8] |= 1 << (i % 8);
                pair.link.with_tag(RECORD).bits()
            }
        };
        put_word(tail, entries_at + 16 * i + 8, word);
    }
    bounds.write(&mut tail[keys_at..]);
    Ok(draft)
}

/// Drafts an inner node's base with these children, the first of which covers the keys from the node's `low` on.
pub(super) fn draft_inner_base<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    level: u8,
    children: &[Child<'_>],
    bounds: Bounds<'_>,
    batch: &PersistBatch<'e, '_, M>,
) -> Result<Draft<'e, 'h, Head>, Error> {
    let count = children.len();
    let ends_at = size_of::<BaseEntry>() * count;
    let keys_at = ends_at + ends_len(count);
    let separators = children
        .iter()
        .skip(1)
        .map(|(separator, _)| separator.len())
        .sum();
    let mut draft = draft_to_fit(heap, keys_at + bounds.len() + separators, batch, |spare| {
        bounds.head(level, count, separators, spare)
    })?;
    draft.link(|head| &mut head.right, bounds.right);
    let tail = draft.tail_mut();
    tail[ends_at..keys_at].fill(0);
    let mut end = 0_usize;
    for (i, (separator, cell)) in children.iter().enumerate() {
        put_word(tail, 16 * i, prefix(separator));
        put_word(tail, 16 * i + 8, cell.bits());
        if i > 0 {
            end += separator.len();
        }
        tail[ends_at + 4 * i..][..4].copy_from_slice(&(end as u32).to_le_bytes());
    }
    let mut rest = bounds.write(&mut tail[keys_at..]);
    for (separator, _) in children.iter().skip(1) {
        let (place, behind) = rest.split_at_mut(separator.len());
        place.copy_from_slice(separator);
        rest = behind;
    }
    Ok(draft)
}

/// Drafts a cell whose chain is this base.
pub(super) fn draft_cell<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    base: Draft<'e, 'h, Head>,
    batch: &PersistBatch<'e, 'h, M>,
) -> Result<Draft<'e, 'h, Cell>, Error> {
    let mut cell = heap.draft(Cell { head: PSlot::null() }, 0, batch)?;
    cell.adopt(|cell| &mut cell.head, base.flush(batch), BASE);
    Ok(cell)
}

/// Drafts the cell of an empty leaf that covers all keys.
pub(super) fn draft_first<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
) -> Result<(Flushed<'e, 'h, Erased>, Tag), Error> {
    let all = Bounds {
        low: &[],
        high: None,
        right: Link::NULL,
    };
    let base = draft_leaf_base(heap, &[], all, batch)?;
    Ok((draft_cell(heap, base, batch)?.flush(batch).erased(), cell_tag(0)))
}
