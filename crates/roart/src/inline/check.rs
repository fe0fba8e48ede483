//! The check of an inline leaf array.

use super::shape::Shape;
use super::word::{self, KeyWord};
use super::{InlineRef, is_present};
use heap::Access;
use pmem::{Link, Media};
use std::collections::HashSet;

/// The first fault of the array to which `path` leads, and its number of present keys.
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
        .map(|_| "the inline leaf array's shape does not match its link");
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
                .or_else(|| (!seen.insert(key)).then_some("a duplicate key in an inline leaf array"))
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

const MISPLACED: &str = "key stored outside the lines where readers look";
const NOT_SHARED: &str = "keys do not share the array's prefix";
const NO_PATH: &str = "key's bytes do not match the path to the array";

fn from(shape: Shape) -> usize {
    shape.from.into()
}

/// Whether a key lies outside its window, or an earlier line of the window has a never-used entry.
fn is_misplaced<M: Media>(array: &InlineRef<'_>, line: usize, key: KeyWord, media: &M) -> bool {
    let window = array.shape.window(key);
    !window.contains(&line)
        || (window.start..line).any(|line| array.line(line).iter().any(|entry| entry.key.load(media) == 0))
}

/// Whether a key, whose first byte is the path's, begins with the path; every key begins with an empty one.
pub(super) fn leads_to(path: &[u8], key: KeyWord) -> bool {
    let Some(&first) = path.first() else { return true };
    let (bytes, len) = key.key(first);
    bytes[..len].starts_with(path)
}
