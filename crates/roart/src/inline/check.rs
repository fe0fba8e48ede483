//! The check of an inline leaf array.

use super::shape::Shape;
use super::word::{self, KeyWord};
use super::{InlineRef, is_present};
use heap::Access;
use pmem::{Link, Media};
use std::collections::HashSet;

/// The faults of the array to which `path` leads, and its number of present keys.
pub(crate) fn fault<M: Media>(
    array: &InlineRef<'_>,
    link: Link,
    path: &[u8],
    heap: &Access<M>,
) -> (Option<&'static str>, u64) {
    let media = heap.media();
    let mut present = 0;
    let mut seen = HashSet::new();
    let mut shared: Option<KeyWord> = None;
    let mut found = array
        .check_shape(link, heap)
        .err()
        .map(|_| "the inline leaf array's shape is not its link's");
    for line in 0..array.shape.lines() {
        for entry in array.line(line) {
            let word = entry.key.load(media);
            let Some(key) = KeyWord::stored(word) else {
                continue;
            };
            present += u64::from(is_present(word));
            let first = *shared.get_or_insert(key);
            let fault = word::fault(word)
                .or_else(|| is_misplaced(array, line, key, media).then_some(MISPLACED))
                .or_else(|| (!seen.insert(key)).then_some("a key twice in an inline leaf array"))
                .or_else(|| (key.shared(first) < from(array.shape)).then_some(NOT_SHARED))
                .or_else(|| {
                    let is_lost = is_present(word) && (path.is_empty() || !leads_to(path, key));
                    is_lost.then_some(NO_PATH)
                });
            found = found.or(fault);
        }
    }
    if present == 0 {
        found = found.or(Some("an inline leaf array without keys"));
    }
    (found, present)
}

const MISPLACED: &str = "a key of an inline leaf array where no reader finds it";
const NOT_SHARED: &str = "the keys of an inline leaf array do not share their first bytes";
const NO_PATH: &str = "the key does not lead to its inline leaf array";

fn from(shape: Shape) -> usize {
    shape.from.into()
}

/// A key lies within its window, and no line before has an entry that was never used.
fn is_misplaced<M: Media>(array: &InlineRef<'_>, line: usize, key: KeyWord, media: &M) -> bool {
    let window = array.shape.window(key);
    !window.contains(&line)
        || (window.start..line).any(|line| array.line(line).iter().any(|entry| entry.key.load(media) == 0))
}

/// Whether a key, whose first byte is the path's, begins with the path; all do with one that is empty.
pub(super) fn leads_to(path: &[u8], key: KeyWord) -> bool {
    let Some(&first) = path.first() else { return true };
    let (bytes, len) = key.key(first);
    bytes[..len].starts_with(path)
}
