//! The last keys in order: they show how early a scan may end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The greatest keys that are loaded, in order.
#[derive(Clone, Copy, Debug, Default)]
pub struct Last<'k>(&'k [Box<[u8]>]);

impl<'k> Last<'k> {
    /// These keys. Without any nothing is known of where the keys end.
    pub fn new(greatest: &'k [Box<[u8]>]) -> Last<'k> {
        Last(greatest)
    }

    /// How many keys a scan of `length` keys from `from` on, which is there, finds at least: as many as lie there,
    /// if at least as many were given as a scan can be long.
    #[cold]
    pub fn at_least(self, from: &[u8], length: usize) -> usize {
        let before = self.0.partition_point(|key| **key < *from);
        (self.0.len() - before).clamp(1, length.max(1))
    }
}

/// The `count` greatest of these keys, in order.
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

    /// The greatest are those at the end of all in order.
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
