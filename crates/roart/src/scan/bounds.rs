//! How subtrees and keys lie to the bounds of a scan.

use crate::inline::Words;
use crate::inline::word::{KeyWord, LONGEST};
use std::cmp::Ordering;
use std::ops::Bound;

/// How what is to be visited lies to a bound.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// Inside.
    Free,
    /// The bytes so far are those of the bound.
    Along,
    /// Not known: each key must be compared.
    Unknown,
}

/// How it lies to both.
#[derive(Clone, Copy)]
pub(super) struct Edges {
    pub(super) low: Edge,
    pub(super) high: Edge,
}

impl Edges {
    #[inline(always)]
    pub(super) fn are_free(self) -> bool {
        self.low == Edge::Free && self.high == Edge::Free
    }
}

pub(super) struct Bounds<'a> {
    pub(super) lower: Bound<&'a [u8]>,
    pub(super) upper: Bound<&'a [u8]>,
}

pub(super) fn key_of(bound: Bound<&[u8]>) -> &[u8] {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
    }
}

impl Bounds<'_> {
    pub(super) fn hold(&self, key: &[u8], edges: Edges) -> bool {
        let Edges { low, high } = edges;
        let above = low == Edge::Free
            || match self.lower {
                Bound::Included(bound) => key >= bound,
                Bound::Excluded(bound) => key > bound,
                Bound::Unbounded => true,
            };
        let below = high == Edge::Free
            || match self.upper {
                Bound::Included(bound) => key <= bound,
                Bound::Excluded(bound) => key < bound,
                Bound::Unbounded => true,
            };
        above && below
    }

    /// What lies between the bounds in an inline leaf array, whose keys share their first byte with those of the bounds
    /// that matter.
    pub(super) fn words(&self, edges: Edges) -> Words {
        let mut words = Words::ALL;
        if edges.low != Edge::Free
            && let Some((word, exact)) = word_of(key_of(self.lower))
        {
            let included = exact && matches!(self.lower, Bound::Included(_));
            words.least = word.bits() + u64::from(!included);
        }
        if edges.high != Edge::Free
            && let Some((word, exact)) = word_of(key_of(self.upper))
        {
            let excluded = exact && matches!(self.upper, Bound::Excluded(_));
            words.most = word.bits() - u64::from(excluded);
        }
        words
    }

    pub(super) fn cross(&self) -> bool {
        match (self.lower, self.upper) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (lower, upper) => key_of(lower) >= key_of(upper),
        }
    }
}

/// The word of a bound, and whether it is the bound's whole key; a longer key lies behind all short ones that its start
/// does not.
fn word_of(key: &[u8]) -> Option<(KeyWord, bool)> {
    let word = KeyWord::of(&key[..key.len().min(LONGEST)])?;
    Some((word, key.len() <= LONGEST))
}

/// Where a subtree lies, given the bytes `string` that lead to it from byte `from` on; `outside` is the side of the
/// bound that the scan leaves out. `None`: outside as a whole.
pub(super) fn narrow(
    edge: Edge,
    bound: &[u8],
    from: usize,
    string: &[u8],
    outside: Ordering,
) -> Option<Edge> {
    if edge != Edge::Along {
        return Some(edge);
    }
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
pub(super) fn edges_of(bounds: &Bounds<'_>, edges: Edges, level: usize, byte: u8) -> Edges {
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
