//! The position of nodes and keys relative to a scan's bounds.
//!
//! Along a bound the walk compares strings and omits what lies outside; everywhere else it compares nothing.

use crate::Way;
use std::cmp::Ordering;
use std::ops::Bound;

/// The position of a subtree relative to one bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// Inside.
    Free,
    /// The digits so far are those of the bound.
    Along,
    /// Not known: each key must be compared.
    Unknown,
}

impl Edge {
    /// The position of a node at this level on the path of the bound; `outside` is the side of the bound that the
    /// scan omits. `None`: entirely outside.
    pub fn at_node(way: &Way, level: usize, outside: Ordering) -> Option<Edge> {
        match way.order(level) {
            Ordering::Equal => Some(Edge::Along),
            order if order == outside => None,
            _ => Some(Edge::Free),
        }
    }
}

/// The position relative to both bounds.
#[derive(Clone, Copy, Debug)]
pub struct Edges {
    /// Relative to the lower bound.
    pub low: Edge,
    /// Relative to the upper bound.
    pub high: Edge,
}

impl Edges {
    /// Whether nothing needs to be compared.
    #[inline(always)]
    pub fn are_free(self) -> bool {
        self.low == Edge::Free && self.high == Edge::Free
    }

    /// The position of a key that must be compared unless it is known to be inside.
    #[must_use]
    pub fn unknown(self) -> Edges {
        let unknown = |edge| if edge == Edge::Along { Edge::Unknown } else { edge };
        Edges {
            low: unknown(self.low),
            high: unknown(self.high),
        }
    }
}

/// The bounds of a scan.
#[derive(Clone, Copy, Debug)]
pub struct ScanBounds<'a> {
    /// The lower bound.
    pub lower: Bound<&'a [u8]>,
    /// The upper bound.
    pub upper: Bound<&'a [u8]>,
}

/// The key of a bound; the empty one if unbounded.
pub fn key_of(bound: Bound<&[u8]>) -> &[u8] {
    match bound {
        Bound::Included(key) | Bound::Excluded(key) => key,
        Bound::Unbounded => &[],
    }
}

impl ScanBounds<'_> {
    /// The position of the whole tree.
    pub fn edges(&self) -> Edges {
        let edge = |bound| match bound {
            Bound::Unbounded => Edge::Free,
            _ => Edge::Along,
        };
        Edges {
            low: edge(self.lower),
            high: edge(self.upper),
        }
    }

    /// Whether `key`, in this position, is inside.
    pub fn hold(&self, key: &[u8], edges: Edges) -> bool {
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

    /// Whether nothing is between them.
    pub fn cross(&self) -> bool {
        match (self.lower, self.upper) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(lower), Bound::Included(upper)) => lower > upper,
            (lower, upper) => key_of(lower) >= key_of(upper),
        }
    }
}
