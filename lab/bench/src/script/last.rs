//! The greatest keys, which show how early a scan may end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The greatest loaded keys, in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last<'k>(&'k [Box<[u8]>]);

impl<'k> Last<'k> {
    /// Wraps these keys. Without any, the end of the keys is unknown.
    pub fn new(greatest: &'k [Box<[u8]>]) -> Last<'k> {
        Last(greatest)
    }

    /// Returns the minimum number of keys that a scan of `length` keys from the present key `from` finds. It is exact
    /// for loaded keys if `self` holds at least `length` keys.
    #[cold]
    pub fn at_least(self, from: &[u8], length: usize) -> usize {
        let before = self.0.partition_point(|key| **key < *from);
        (self.0.len() - before).clamp(1, length.max(1))
    }
}

/// Returns the `count` greatest of these keys, in order.
pub fn greatest<'k>(keys: impl Iterator<Item = &'k [u8]>, count: usize) -> Vec<Box<[u8]>> {
    let mut greatest = BinaryHeap::new();
    for key in keys {
        if greatest.len() < count {
            greatest.push(Reverse(key));
        } else if let Some(mut least) = greatest.peek_mut()
            && least.0 < key
        {
            *least = Reverse(key);
        }
    }
    let in_order = greatest.into_sorted_vec().into_iter().rev();
    in_order.map(|Reverse(key)| key.into()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{KeyKind, Keys};

    /// The result is the tail of the sorted keys.
    #[test]
    fn the_greatest_are_found() {
        let keys = Keys::generate(KeyKind::Str, 1000, 1);
        let mut all: Vec<&[u8]> = keys.all().iter().map(|(key, _)| key).collect();
        all.sort_unstable();
        for count in [0, 1, 7, 1000, 2000] {
            let found = greatest(keys.all().iter().map(|(key, _)| key), count);
            let found: Vec<&[u8]> = found.iter().map(|key| &**key).collect();
            assert_eq!(found, all[1000usize.saturating_sub(count)..], "{count}");
        }
    }
}
