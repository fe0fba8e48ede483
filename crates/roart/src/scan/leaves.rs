//! Visiting leaves, and leaf arrays in order.
//!
//! A leaf of an array is sorted as one word, bytes of its key above its number. Which entries are in use, and
//! in what order they come, cannot be foreseen: nothing branches on it, and a few words are sorted by
//! exchanges.

use super::Item;
use crate::array::{ArrayRef, MOST};
use crate::{Roart, Variant};
use art::LeafRef;
use art::bounds::{Bounds, Edges};
use index::{Direction, Visit};
use pmem::{Fault, Link, Media};
use std::ops::ControlFlow;

/// How many are sorted by exchanges: the leaves of nearly all arrays of random keys.
const FEW: usize = 8;

/// The bits of a word that number a leaf.
const NUMBER: u64 = MOST as u64 - 1;
const _: () = assert!(MOST.is_power_of_two());

/// The leaves of one array, and room that is used again for the next.
#[derive(Default)]
pub(super) struct Sorted<'g> {
    links: Vec<Link>,
    leaves: Vec<LeafRef<'g>>,
    /// By bytes of the key, and by the place in `leaves`.
    order: Vec<u64>,
    count: usize,
}

impl<'g> Sorted<'g> {
    /// Reads the leaves of an array, whose keys share `depth` bytes.
    fn gather<M: Media, V: Variant>(
        &mut self,
        index: &'g Roart<M, V>,
        array: &ArrayRef<'g>,
        depth: usize,
    ) -> Result<(), Fault> {
        if self.links.is_empty() {
            self.links = vec![Link::NULL; MOST];
            self.order = vec![0; MOST];
            self.leaves.reserve(MOST);
        }
        let mut count = 0;
        for slot in array.slots().iter().take(MOST) {
            let link = slot.load(index.heap.media());
            self.links[count & (MOST - 1)] = link;
            count += usize::from(!link.is_null());
        }
        self.leaves.clear();
        self.count = count;
        let places = self.links.iter().zip(&mut self.order).take(count);
        for (i, (link, place)) in places.enumerate() {
            let leaf = LeafRef::at(&index.heap, *link)?;
            *place = first_bytes(leaf.key(), depth) & !NUMBER | i as u64;
            self.leaves.push(leaf);
        }
        Ok(())
    }

    fn sort(&mut self) {
        if self.count > FEW {
            self.order[..self.count].sort_unstable();
        } else if let Some(few) = self.order.first_chunk_mut::<FEW>() {
            few[self.count..].fill(u64::MAX);
            *few = sorted(*few);
        }
        let words = &self.order[..self.count];
        let pairs = words.iter().zip(words.iter().skip(1));
        let same = pairs.fold(false, |same, (a, b)| same | (a & !NUMBER == b & !NUMBER));
        if same {
            self.sort_by_keys();
        }
    }

    /// Sorts anew, by whole keys where their bytes in the words are the same.
    #[cold]
    fn sort_by_keys(&mut self) {
        let key = |word: u64| self.leaves[(word & NUMBER) as usize].key();
        self.order.truncate(self.count);
        self.order.sort_unstable_by(|&a, &b| {
            let by_bytes = (a & !NUMBER).cmp(&(b & !NUMBER));
            by_bytes.then_with(|| key(a).cmp(key(b)))
        });
        // A key twice: it was removed and inserted again, into another entry, meanwhile.
        self.order.dedup_by(|a, b| key(*a) == key(*b));
        self.count = self.order.len();
        self.order.resize(MOST, 0);
    }
}

/// Sorts by exchanges.
#[inline(always)]
fn sorted(mut words: [u64; FEW]) -> [u64; FEW] {
    macro_rules! exchange {
        ($($low:literal $high:literal),*) => {$(
            let (a, b) = (words[$low], words[$high]);
            (words[$low], words[$high]) = (a.min(b), a.max(b));
        )*};
    }
    exchange!(0 2, 1 3, 4 6, 5 7);
    exchange!(0 4, 1 5, 2 6, 3 7);
    exchange!(0 1, 2 3, 4 5, 6 7);
    exchange!(2 4, 3 5);
    exchange!(1 4, 3 6);
    exchange!(1 2, 3 4, 5 6);
    words
}

impl<M: Media, V: Variant> Roart<M, V> {
    #[inline(always)]
    pub(super) fn visit_leaf<'g>(
        &'g self,
        leaf: &LeafRef<'g>,
        edges: Edges,
        bounds: &Bounds<'_>,
        visit: &mut Visit<'_, 'g>,
    ) -> ControlFlow<()> {
        if edges.are_free() || bounds.hold(leaf.key(), edges) {
            visit(leaf.key(), leaf.value(&self.heap))
        } else {
            ControlFlow::Continue(())
        }
    }

    pub(super) fn visit_array<'g>(
        &'g self,
        item: &Item,
        bounds: &Bounds<'_>,
        direction: Direction,
        sorted: &mut Sorted<'g>,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<ControlFlow<()>, Fault> {
        let array = ArrayRef::at(&self.heap, item.link)?;
        sorted.gather(self, &array, item.depth as usize)?;
        sorted.sort();
        let order = &mut sorted.order[..sorted.count];
        if direction == Direction::Reverse {
            order.reverse();
        }
        for &word in &*order {
            let leaf = &sorted.leaves[(word & NUMBER) as usize];
            if self.visit_leaf(leaf, item.edges, bounds, visit).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Eight bytes of the key from `from` on, as they order keys; a key that ends among them is filled up with
/// zeros.
#[inline(always)]
fn first_bytes(key: &[u8], from: usize) -> u64 {
    let rest = key.get(from..).unwrap_or_default();
    if let Some(bytes) = rest.first_chunk::<8>() {
        return u64::from_be_bytes(*bytes);
    }
    let bits = 8 * (8 - rest.len() as u32);
    if let Some(bytes) = key.last_chunk::<8>() {
        return u64::from_be_bytes(*bytes).checked_shl(bits).unwrap_or(0);
    }
    let mut bytes = [0; 8];
    bytes[..rest.len()].copy_from_slice(rest);
    u64::from_be_bytes(bytes)
}
