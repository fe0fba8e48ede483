//! Inline leaf arrays under construction.

use super::shape::{LARGEST, PER_LINE, Shape, is_text};
use super::word::KeyWord;
use super::{FirstLine, Head, InlineEntry, PRESENT_SHIFT};
use heap::{Error, Heap};
use pmem::{Erased, Flushed, GenerationLock, LINE, Media, Offset, PWord, PersistBatch};

/// The entries of an array, laid out by its shape.
pub(crate) struct Image {
    pub(crate) shape: Shape,
    /// Key word and value of each entry, in order; the head's place comes first.
    words: Vec<u64>,
    present: usize,
}

/// Words of an entry.
const WORDS: usize = size_of::<InlineEntry>() / size_of::<u64>();

/// The minimum and maximum fill of a new array.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fill {
    /// As full as possible, and an array of more than eight lines at least to a quarter: if keys lie too close together
    /// for that, smaller arrays below a node are better (unless most of these would have a single key).
    Tight,
    /// Like `Tight`, but at most half full, so that the array does not soon grow again.
    Loose,
}

impl Image {
    /// The array of the lowest class, but at least `least`, for the pairs, of different keys; `None` if they do not fit
    /// one, or should not be in one ([`Fill`]). In ascending order they mostly need the fewest lines.
    pub(crate) fn of(pairs: &[(KeyWord, u64)], least: u8, fill: Fill) -> Option<Image> {
        let (mut first, mut last) = (pairs.first()?.0, pairs.first()?.0);
        for &(key, _) in pairs {
            (first, last) = (first.min(key), last.max(key));
        }
        let from = first.shared(last).clamp(1, 7);
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

    /// The pairs, of different keys, in an array of this shape, if they fit.
    pub(crate) fn with_shape(pairs: &[(KeyWord, u64)], shape: Shape) -> Option<Image> {
        let mut words = vec![0; shape.lines() * PER_LINE * WORDS];
        // Used entries of each line, the head counted as one.
        let mut used = [0u8; 1 << LARGEST];
        used[0] = 1;
        for &(key, value) in pairs {
            // The first line of the window with a free entry, so that the lines before it have none.
            let line = shape
                .window(key)
                .find(|&line| usize::from(used[line]) < PER_LINE)?;
            let at = (line * PER_LINE + usize::from(used[line])) * WORDS;
            used[line] += 1;
            words[at..at + WORDS].copy_from_slice(&[key.to_store(true), value]);
        }
        Some(Image {
            shape,
            words,
            present: pairs.len(),
        })
    }
}

/// Whether a node at position `from` would mostly have groups of pairs below its links, rather than single leaves.
fn part_in_groups(pairs: &[(KeyWord, u64)], from: usize) -> bool {
    let mut seen = [false; 256];
    for (key, _) in pairs {
        seen[(key.bytes_from(from) >> 56) as usize] = true;
    }
    seen.into_iter().filter(|seen| *seen).count() * 2 <= pairs.len()
}

/// Builds an array. The caller gives the space at the offset back if it does not link the array.
pub(crate) fn draft_inline<'e, 'h, M: Media>(
    heap: &'h Heap<M>,
    batch: &PersistBatch<'e, 'h, M>,
    image: &Image,
) -> Result<(Flushed<'e, 'h, Erased>, Offset), Error> {
    let shape = image.shape;
    let head = Head {
        lock: GenerationLock::new(heap.generation()),
        shape: PWord::new(u64::from(shape.aux()) | (image.present as u64) << PRESENT_SHIFT),
    };
    let (first, others) = image.words.split_at(PER_LINE * WORDS);
    let entries = [1, 2, 3].map(|i| InlineEntry {
        key: PWord::new(first[i * WORDS]),
        value: PWord::new(first[i * WORDS + 1]),
    });
    let mut draft = heap.draft(FirstLine { head, entries }, shape.size() - LINE, batch)?;
    let (tail, _) = draft.tail_mut().as_chunks_mut::<8>();
    for (bytes, word) in tail.iter_mut().zip(others) {
        *bytes = word.to_ne_bytes();
    }
    let offset = draft.offset();
    Ok((draft.flush(batch).erased(), offset))
}
