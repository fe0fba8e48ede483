//! Visiting leaves in order, many at a time: children of nodes and entries of arrays alike.
//!
//! When the leaves of an array are prefetched, its used entries are put into a ring. When they have arrived, a *run*
//! of them, from several arrays, is read, sorted array by array, and visited. The number, places and order of the
//! used entries are unpredictable: the code branches on them only once per array. So a leaf is sorted as one word,
//! with bytes of its key above its number, and a few words are sorted by exchanges.

use super::queue::{Item, Queue};
use super::sort::{self, BATCH, NUMBER, RUN};
use crate::array::{ArrayRef, MAX_LEAVES};
use crate::{Roart, Variant};
use art::bounds::{Edges, ScanBounds};
use art::{Kind, LeafRef, Tagged, prefetch};
use index::{Direction, Visit};
use pmem::{Fault, Link, Media, Offset};
use std::ops::{ControlFlow, Range};

/// Number of prefetched leaves at which no more are prefetched.
const AHEAD: usize = 48;
/// Room for these, for another array, and for the place that empty entries overwrite.
const RING: usize = 128;
const _: () = assert!(RING.is_power_of_two() && AHEAD + MAX_LEAVES <= RING);

/// Prefetched leaves, and buffers that each run reuses.
pub(super) struct Leaves<'g> {
    /// Links to prefetched leaves.
    ring: [Link; RING],
    /// Number of leaves ever taken and put.
    taken: usize,
    put: usize,
    /// The leaves of a run, and their words, unsorted and sorted.
    leaves: [Option<LeafRef<'g>>; BATCH],
    words: [u64; BATCH],
    order: [u64; BATCH],
}

impl Leaves<'_> {
    pub(super) fn new() -> Self {
        Leaves {
            ring: [Link::NULL; RING],
            taken: 0,
            put: 0,
            leaves: [None; BATCH],
            words: [0; BATCH],
            order: [0; BATCH],
        }
    }
}

impl<M: Media, V: Variant> Roart<M, V> {
    /// Prefetches the leaves of items that have arrived themselves: at least those of the item to be taken next.
    pub(super) fn stage<'g>(&'g self, queue: &mut Queue, leaves: &mut Leaves<'g>) -> Result<(), Fault> {
        let arrived = queue.arrived();
        while queue.staged < arrived && leaves.put - leaves.taken < AHEAD {
            let item = queue.item_mut(queue.staged);
            let before = leaves.put;
            match item.link.kind() {
                Kind::Array => match self.stage_array(item.link, leaves) {
                    Ok(()) => {}
                    // An error is reported only when its item's turn has come.
                    Err(_) if queue.staged > queue.taken => break,
                    Err(fault) => return Err(fault),
                },
                Kind::Leaf => {
                    leaves.ring[leaves.put % RING] = item.link;
                    leaves.put += 1;
                }
                _ => {}
            }
            item.leaves = (leaves.put - before) as u32;
            queue.staged += 1;
        }
        Ok(())
    }

    /// Puts the leaves of an array into the ring.
    #[inline(never)]
    fn stage_array(&self, link: Link, leaves: &mut Leaves<'_>) -> Result<(), Fault> {
        let media = self.heap.media();
        let base = self.heap.pool().base().as_ptr();
        let mut put = leaves.put;
        for slot in ArrayRef::at(&self.heap, link)?.slots() {
            // An empty entry is written like any other, and then overwritten.
            let leaf = slot.load(media);
            prefetch(base.wrapping_add((leaf.bits() & Offset::MASK) as usize));
            leaves.ring[put % RING] = leaf;
            put += usize::from(!leaf.is_null());
        }
        leaves.put = put;
        Ok(())
    }

    /// Takes a run of staged items and visits their leaves.
    pub(super) fn visit_run<'g>(
        &'g self,
        queue: &mut Queue,
        leaves: &mut Leaves<'g>,
        bounds: &ScanBounds<'_>,
        direction: Direction,
        visit: &mut Visit<'_, 'g>,
    ) -> Result<ControlFlow<()>, Fault> {
        let reverse = direction == Direction::Reverse;
        let start = queue.taken;
        let first = *queue.item(start);
        let mut total = first.leaves as usize;
        self.read_leaves(leaves, 0..total, first.depth as usize, reverse)?;
        queue.take();
        // An item along a bound is a run of its own.
        while queue.taken < queue.staged && total < RUN && first.edges.are_free() {
            let item = *queue.item(queue.taken);
            if !item.leads_to_leaves() || item.depth != first.depth || !item.edges.are_free() {
                break;
            }
            let end = total + item.leaves as usize;
            if self
                .read_leaves(leaves, total..end, item.depth as usize, reverse)
                .is_err()
            {
                break; // Reported when its turn comes.
            }
            total = end;
            queue.take();
        }
        let count = leaves.sort(queue, start..queue.taken, reverse);
        Ok(self.visit_leaves(leaves, count, first.edges, bounds, visit))
    }

    /// Reads the next leaves of the ring, those of one item, as leaves of the run with these numbers; the keys of
    /// each array share `depth` bytes.
    #[inline(never)]
    fn read_leaves<'g>(
        &'g self,
        run: &mut Leaves<'g>,
        places: Range<usize>,
        depth: usize,
        reverse: bool,
    ) -> Result<(), Fault> {
        let flip = if reverse { u64::MAX } else { 0 };
        let count = places.len();
        for (i, place) in places.enumerate() {
            let leaf = LeafRef::at(&self.heap, run.ring[(run.taken + i) % RING])?;
            let bytes = sort::first_bytes(leaf.key(), depth) ^ flip;
            run.words[place % BATCH] = bytes & !NUMBER | place as u64;
            run.leaves[place % BATCH] = Some(leaf);
        }
        run.taken += count;
        Ok(())
    }

    /// Visits the first `count` leaves in order.
    #[inline(never)]
    fn visit_leaves<'g>(
        &'g self,
        run: &Leaves<'g>,
        count: usize,
        edges: Edges,
        bounds: &ScanBounds<'_>,
        visit: &mut Visit<'_, 'g>,
    ) -> ControlFlow<()> {
        let free = edges.are_free();
        for &word in &run.order[..count.min(BATCH)] {
            if let Some(leaf) = &run.leaves[(word & NUMBER) as usize]
                && (free || bounds.hold(leaf.key(), edges))
            {
                visit(leaf.key(), leaf.value(&self.heap))?;
            }
        }
        ControlFlow::Continue(())
    }
}

impl Leaves<'_> {
    /// Sorts the leaves of each of the items; returns their number.
    #[inline(never)]
    fn sort(&mut self, queue: &Queue, items: Range<usize>, reverse: bool) -> usize {
        let key = |word: u64| self.leaves[(word & NUMBER) as usize].map_or(&[][..], |leaf| leaf.key());
        let (mut from, mut to) = (0, 0);
        for number in items {
            let count = queue.item(number).leaves as usize;
            to = sort::sort(&self.words, from, count, &mut self.order, to, key, reverse);
            from += count;
        }
        to
    }
}

impl Item {
    /// Whether the link leads to a leaf or to a leaf array.
    #[inline(always)]
    pub(super) fn leads_to_leaves(&self) -> bool {
        matches!(self.link.kind(), Kind::Leaf | Kind::Array)
    }
}
