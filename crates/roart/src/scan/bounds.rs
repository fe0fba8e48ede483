//! The position of subtrees and keys relative to the bounds of a scan.

use crate::inline::Words;
use crate::inline::word::{KeyWord, LONGEST};
use art::bounds::{Edge, Edges, ScanBounds, key_of};
use std::cmp::Ordering;
use std::ops::Bound;

/// The key words between the bounds in an inline leaf array, whose keys share their first byte with the bounds that
/// matter.
pub(super) fn words_between(bounds: &ScanBounds<'_>, edges: Edges) -> Words {
    let mut words = Words::ALL;
    if edges.low != Edge::Free
        && let Some((word, exact)) = word_of(key_of(bounds.lower))
    {
        let included = exact && matches!(bounds.lower, Bound::Included(_));
        words.least = word.bits() + u64::from(!included);
    }
    if edges.high != Edge::Free
        && let Some((word, exact)) = word_of(key_of(bounds.upper))
    {
        let excluded = exact && matches!(bounds.upper, Bound::Excluded(_));
        words.max = word.bits() - u64::from(excluded);
    }
    words
}

/// The word of a bound, and whether it is the bound's whole key; a longer key comes after every short key that is not
/// above its beginning.
fn word_of(key: &[u8]) -> Option<(KeyWord, bool)> {
    let word = KeyWord::of(&key[..key.len().min(LONGEST)])?;
    Some((word, key.len() <= LONGEST))
}

/// The position, relative to a bound, of a subtree to which the bound's bytes before `from`, and then the bytes
/// `string`, have led; `outside` is the side of the bound that the scan omits. `None`: entirely outside.
pub(super) fn narrow(bound: &[u8], from: usize, string: &[u8], outside: Ordering) -> Option<Edge> {
    let rest = bound.get(from..).unwrap_or_default();
    if rest.starts_with(string) {
        return Some(Edge::Along);
    }
    if string.cmp(rest) == outside {
        None
    } else {
        Some(Edge::Free)
    }
}

/// The edges of the child for `byte` of a node at `level`.
#[inline(always)]
pub(super) fn edges_of(bounds: &ScanBounds<'_>, edges: Edges, level: usize, byte: u8) -> Edges {
    if edges.are_free() {
        return edges;
    }
    let narrow = |edge, bound| match edge {
        Edge::Along if key_of(bound).get(level) != Some(&byte) => Edge::Free,
        edge => edge,
    };
    Edges {
        low: narrow(edges.low, bounds.lower),
        high: narrow(edges.high, bounds.upper),
    }
}
