//! The keys, and the bounds of ranges of them.

use super::Random;
use index::conformance::serializability::{RangeRead, Version};
use std::ops::Bound::{self, Excluded, Included, Unbounded};

/// A map's number and a key.
pub type Key = (usize, &'static [u8]);

/// The bounds of a range of one map.
pub type Bounds = (Bound<&'static [u8]>, Bound<&'static [u8]>);

/// The keys of each map, sorted.
pub const KEYS: [&[u8]; 6] = [b"", b"a", b"ab", b"b", b"b\xff", b"\xff"];

/// What ranges may begin and end with, and prefixes: the keys, and others next to them.
pub const POINTS: [&[u8]; 11] = [
    b"",
    b"a",
    b"ab",
    b"b",
    b"b\xff",
    b"\xff", // the keys
    b"a\0",
    b"aa",
    b"b\xff\xff",
    b"c",
    b"\xff\xff",
];

/// Returns the key or point of these bytes.
pub fn known(bytes: &[u8]) -> &'static [u8] {
    let point = POINTS.into_iter().find(|point| *point == bytes);
    point.unwrap_or_else(|| panic!("no client writes the key {bytes:?}"))
}

/// Returns the range read of a map.
pub fn range_read(map: usize, (lower, upper): Bounds, found: Vec<(Key, Version)>) -> RangeRead<Key> {
    let lower = match lower {
        Unbounded => Included((map, &b""[..])),
        bound => bound.map(|key| (map, key)),
    };
    let upper = match upper {
        Unbounded => Excluded((map + 1, &b""[..])),
        bound => bound.map(|key| (map, key)),
    };
    let bounds = (lower, upper);
    RangeRead { bounds, found }
}

/// Returns bounds between which, of all keys, those are that begin with a prefix.
pub fn of_prefix(prefix: &'static [u8]) -> Bounds {
    let last = KEYS.into_iter().rfind(|key| key.starts_with(prefix));
    (Included(prefix), last.map_or(Excluded(prefix), Included))
}

impl Random {
    /// Returns a key, earlier ones more often.
    pub fn key(&mut self) -> Key {
        let place = 1 + self.below(KEYS.len() as u64);
        (
            self.below(super::MAPS as u64) as usize,
            KEYS[self.below(place) as usize],
        )
    }

    /// Returns distinct keys.
    pub fn keys(&mut self, max: u64) -> Vec<Key> {
        let mut keys: Vec<_> = (0..1 + self.below(max)).map(|_| self.key()).collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    fn bound(&mut self) -> Bound<&'static [u8]> {
        match self.below(4) {
            0 => Unbounded,
            1 => Excluded(self.pick(&POINTS)),
            _ => Included(self.pick(&POINTS)),
        }
    }

    /// Returns bounds, which are sometimes crossed.
    pub fn bounds(&mut self) -> Bounds {
        let (lower, upper) = (self.bound(), self.bound());
        let place = |bound: Bound<&'static [u8]>| match bound {
            Unbounded => None,
            Included(key) | Excluded(key) => Some(key),
        };
        let are_crossed = place(lower) > place(upper) && place(upper).is_some();
        if are_crossed && !self.one_in(8) {
            return (upper, lower);
        }
        (lower, upper)
    }
}
