//! Inline leaf arrays under construction.

use super::shape::{LARGEST, PER_LINE, Shape, is_text};
use super::word::KeyWord;
use super::{FirstLine, Head, InlineEntry, PRESENT_SHIFT};
use heap::{Error, Heap};
use pmem::{Erased, Flushed, GenerationLock, LINE, Media, Offset, PWord, PersistBatch};

/// An array's entries, where its shape has them.
pub(crate) struct Image {
    pub(crate) shape: Shape,
    /// Key word and value; the head's place comes first.
    slots: Vec<(u64, u64)>,
    present: usize,
}

/// How full a new array must at least be and how full it may be.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// As full as it can be, and a large one at least to a quarter: where keys lie too close together for
    /// that, smaller arrays below a node serve them better.
    Tight,
    /// As tight, but at most half full, so that it does not soon grow again.
    Loose,
}

impl Image {
    /// The array of at least this class for the pairs, which ascend; `None` if they should not be in one.
    pub(crate) fn of(pairs: &[(KeyWord, u64)], least: u8, fill: Fill) -> Option<Image> {
        let ((first, _), (last, _)) = (pairs.first()?, pairs.last()?);
        let from = first.shared(*last).clamp(1, 7);
        let text = pairs.iter().all(|(key, _)| is_text(*key, from));
        for class in least..=LARGEST {
            let shape = Shape {
                class,
                from: from as u8,
                text,
            };
            let max = match fill {
                Fill::Tight => shape.capacity(),
                Fill::Loose => shape.capacity() / 2,
            };
            if shape.class > 3 && pairs.len() < shape.capacity() / 4 && part_in_groups(pairs, from) {
                return None;
            }
            if pairs.len() <= max
                && let Some(image) = Image::with_shape(pairs, shape)
            {
                return Some(image);
            }
        }
        None
    }

    /// The pairs, which ascend, in an array of this shape, if they have room.
    pub(crate) fn with_shape(pairs: &[(KeyWord, u64)], shape: Shape) -> Option<Image> {
        let mut slots = vec![(0, 0); shape.lines() * PER_LINE];
        slots[0].0 = u64::MAX;
        for &(key, value) in pairs {
            let window = shape.window(key);
            let slot = slots[window.start * PER_LINE..window.end * PER_LINE]
                .iter_mut()
                .find(|(word, _)| *word == 0)?;
            *slot = (key.to_store(true), value);
        }
        Some(Image {
            shape,
            slots,
            present: pairs.len(),
        })
    }
}

/// Whether a node at position `from` would have pairs or more below each of its links, rather than mostly
/// single leaves.
fn part_in_groups(pairs: &[(KeyWord, u64)], from: usize) -> bool {
    let bytes = pairs.iter().map(|(key, _)| key.bytes_from(from) >> 56);
    let groups = bytes.clone().zip(bytes.skip(1)).filter(|(a, b)| a != b).count() + 1;
    groups * 2 <= pairs.len()
}

/// Builds an array. The caller gives the space at the offset back if it does not link the array.
pub(crate) fn draft_inline<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, '_, M>,
    image: &Image,
) -> Result<(Flushed<'e, 'h, Erased>, Offset), Error> {
    let shape = image.shape;
    let head = Head {
        lock: GenerationLock::new(heap.generation()),
        shape: PWord::new(u64::from(shape.aux()) | (image.present as u64) << PRESENT_SHIFT),
    };
    let entry = |&(key, value): &(u64, u64)| InlineEntry {
        key: PWord::new(key),
        value: PWord::new(value),
    };
    let entries = [1, 2, 3].map(|i| entry(&image.slots[i]));
    let mut draft = heap.draft(FirstLine { head, entries }, shape.size() - LINE, batch)?;
    let words = image.slots[PER_LINE..]
        .iter()
        .flat_map(|&(key, value)| [key, value]);
    let (tail, _) = draft.tail_mut().as_chunks_mut::<8>();
    for (bytes, word) in tail.iter_mut().zip(words) {
        *bytes = word.to_ne_bytes();
    }
    let offset = draft.offset();
    Ok((draft.flush(batch).erased(), offset))
}
