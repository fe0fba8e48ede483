//! A partition's new leaves, as a plan in DRAM: upserts and removals merged with the leaves' pairs, leaves split and
//! consolidated (DPTree §2.3, Algorithms 2 and 3, and the consolidation phase).
//!
//! A *piece* is a leaf of the new version. It keeps an old leaf, with pairs added in free slots, or is a new one.
//!
//! I1 A piece that keeps a leaf adds at most as many pairs to it as it has slots that may be written to: those that
//!    hold neither a pair of the valid version nor its `last` key (`Old::taken`).
//! I2 Each old leaf is kept by one piece at most. A leaf that no piece keeps is garbage once the merge has ended.

use crate::base::Base;
use crate::base::leaf::LeafRef;
use crate::base::slots::{Bits, GROUP, GROUPS, count, set};
use crate::key::{MarkedPair, SearchKey};
use crate::search;
use heap::{Access, Error};
use pmem::{Fault, Link, Media};
use std::cmp::Ordering;
use std::ops::{Bound, Range};

/// A pair of a piece.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item {
    /// A pair in a slot of an old leaf of the partition.
    Old { leaf: u32, slot: u8 },
    /// One of the merged entries.
    New(u32),
}

/// A leaf of the new version.
#[derive(Debug)]
pub(super) struct Piece {
    /// The old leaf that it keeps.
    pub(super) keep: Option<u32>,
    pub(super) items: Vec<Item>,
}

/// An old leaf of the partition.
pub(super) struct Old<'g> {
    pub(super) leaf: LeafRef<'g>,
    pub(super) link: Link,
    /// Slots in use.
    pub(super) live: Bits,
    /// Slots that may not be written to.
    pub(super) taken: Bits,
}

/// A partition's plan.
pub(super) struct Plan<'g> {
    pub(super) old: Vec<Old<'g>>,
    pub(super) entries: Vec<MarkedPair>,
    pub(super) pieces: Vec<Piece>,
    /// Records that the new version does not lead to.
    pub(super) dead: Vec<Link>,
}

/// The desired fill of leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fill {
    pub(super) capacity: usize,
    /// Pairs per new leaf.
    pub(super) filled: usize,
    /// Leaves with fewer pairs are consolidated.
    pub(super) few: usize,
}

impl<'g> Plan<'g> {
    /// Plans the leaves of `range`, into which the entries belong, ascending.
    pub(super) fn new<M: Media>(
        heap: &'g Access<M>,
        base: &Base,
        range: Range<usize>,
        entries: Vec<MarkedPair>,
        fill: Fill,
    ) -> Result<Plan<'g>, Error> {
        let mut plan = Plan {
            old: Vec::with_capacity(range.len()),
            entries,
            pieces: Vec::new(),
            dead: Vec::new(),
        };
        let mut at = 0;
        let last = range.end;
        for i in range {
            if let Some(&next) = base.leaves[..last].get(i + 1) {
                LeafRef::at(heap, next)?.prefetch_all();
            }
            let end = plan.end_of(heap, base, (i + 1 < last).then_some(i), at)?;
            plan.add_leaf(heap, base, i, at..end, fill)?;
            at = end;
        }
        if plan.old.is_empty() {
            // The base tree has no leaves: it has never had a pair, or has lost the last one.
            let items = (0..plan.entries.len()).filter(|&i| !plan.entries[i].removed);
            let items: Vec<Item> = items.map(|i| Item::New(i as u32)).collect();
            let removed = plan.entries.iter().filter(|entry| entry.removed);
            plan.dead.extend(removed.map(|entry| entry.link));
            plan.divide(None, items, fill);
        }
        plan.consolidate(fill, heap.media());
        plan.dead.retain(|link| !link.is_null());
        Ok(plan)
    }

    /// The end of the entries that belong to leaf `i`; all of them, if it is the partition's last (`None`).
    fn end_of<M: Media>(
        &self,
        heap: &Access<M>,
        base: &Base,
        i: Option<usize>,
        from: usize,
    ) -> Result<usize, Error> {
        let Some(i) = i else {
            return Ok(self.entries.len());
        };
        let greatest = SearchKey::new(base.router.key(i));
        let mut end = from;
        while let Some(entry) = self.entries.get(end)
            && greatest.compare(heap, entry.prefix, entry.link)? != Ordering::Less
        {
            end += 1;
        }
        Ok(end)
    }

    /// Merges some of the entries with one leaf.
    fn add_leaf<M: Media>(
        &mut self,
        heap: &'g Access<M>,
        base: &Base,
        i: usize,
        entries: Range<usize>,
        fill: Fill,
    ) -> Result<(), Error> {
        let (media, version) = (heap.media(), base.state.version);
        let link = base.leaves[i];
        let leaf = LeafRef::at(heap, link)?;
        leaf.touch(heap, version)?;
        let live = leaf.bitmap(version, media);
        let mut taken = live;
        set(&mut taken, leaf.last(version, media)?);
        let order = leaf.order(version, &live, media);
        check_ends(heap, base, i, &leaf, &order)?;
        let number = self.old.len() as u32;
        self.old.push(Old {
            leaf,
            link,
            live,
            taken,
        });
        let old = |slot: &u8| Item::Old {
            leaf: number,
            slot: *slot,
        };
        let mut items = Vec::with_capacity(order.len() + entries.len());
        let mut rest = &order[..];
        for at in entries {
            let entry = self.entries[at];
            let (before, same) = place(heap, &leaf, rest, &entry)?;
            items.extend(rest[..before].iter().map(old));
            rest = &rest[before..];
            if same {
                self.dead.push(leaf.entry(rest[0].into(), media).link);
                rest = &rest[1..];
            }
            if entry.removed {
                media.comes_to("merge: removal");
                self.dead.push(entry.link);
            } else {
                media.comes_to("merge: upsert");
                items.push(Item::New(at as u32));
            }
        }
        items.extend(rest.iter().map(old));
        let before = self.pieces.len();
        self.divide(Some(number), items, fill);
        match self.pieces.len() - before {
            0 => media.comes_to("merge: leaf without pairs"),
            1 => {}
            _ => media.comes_to("merge: leaf split"),
        }
        Ok(())
    }

    /// Whether the leaf that a piece would keep has enough free slots for it.
    fn fits(&self, keep: u32, items: &[Item]) -> bool {
        let foreign = items
            .iter()
            .filter(|item| !matches!(item, Item::Old { leaf, .. } if *leaf == keep));
        let old = &self.old[keep as usize];
        foreign.count() <= old.leaf.capacity() - count(&old.taken)
    }

    /// Divides a run of pairs into pieces: one that keeps the old leaf, if the pairs fit there; otherwise as many as
    /// needed at the fill rate, the first of which keeps the leaf if it fits.
    fn divide(&mut self, keep: Option<u32>, items: Vec<Item>, fill: Fill) {
        if items.is_empty() {
            return;
        }
        if keep.is_some_and(|keep| self.fits(keep, &items)) {
            self.pieces.push(Piece { keep, items });
            return;
        }
        let count = items.len().div_ceil(fill.filled);
        for part in 0..count {
            let [from, to] = [part, part + 1].map(|part| items.len() * part / count);
            let items = items[from..to].to_vec();
            let keep = keep.filter(|&keep| part == 0 && self.fits(keep, &items));
            self.pieces.push(Piece { keep, items });
        }
    }

    /// Merges pieces of few pairs with a neighbour, or shares the neighbour's pairs with them.
    fn consolidate<M: Media>(&mut self, fill: Fill, media: &M) {
        let pieces = std::mem::take(&mut self.pieces);
        for piece in pieces {
            let few = |piece: &Piece| piece.items.len() < fill.few;
            match self.pieces.pop() {
                Some(last) if few(&last) || few(&piece) => {
                    media.comes_to("merge: leaves consolidated");
                    self.join(last, piece, fill);
                }
                last => {
                    self.pieces.extend(last);
                    self.pieces.push(piece);
                }
            }
        }
    }

    fn join(&mut self, first: Piece, second: Piece, fill: Fill) {
        let larger = first.items.len() >= second.items.len();
        let mut items = first.items;
        items.extend(second.items);
        if items.len() <= fill.capacity {
            let both = if larger {
                [first.keep, second.keep]
            } else {
                [second.keep, first.keep]
            };
            let keep = both.into_iter().flatten().find(|&keep| self.fits(keep, &items));
            self.pieces.push(Piece { keep, items });
            return;
        }
        let upper = items.split_off(items.len() / 2);
        for (keep, items) in [(first.keep, items), (second.keep, upper)] {
            let keep = keep.filter(|&keep| self.fits(keep, &items));
            self.pieces.push(Piece { keep, items });
        }
    }

    /// The entry of an item.
    pub(super) fn entry<M: Media>(&self, item: Item, media: &M) -> MarkedPair {
        match item {
            Item::Old { leaf, slot } => self.old[leaf as usize].leaf.entry(slot.into(), media),
            Item::New(at) => self.entries[at as usize],
        }
    }
}

/// Checks the keys at a leaf's ends: in a damaged pool a key, with its record, may be in the wrong leaf, where a merge
/// of that key would not find it.
fn check_ends<M: Media>(
    heap: &Access<M>,
    base: &Base,
    i: usize,
    leaf: &LeafRef<'_>,
    order: &[u8],
) -> Result<(), Error> {
    let fault = Fault {
        what: "a key in the wrong leaf",
        offset: leaf.offset.get(),
    };
    let order_of = |bound, slot: &u8| {
        let entry = leaf.entry((*slot).into(), heap.media());
        SearchKey::new(bound).compare(heap, entry.prefix, entry.link)
    };
    if let (Bound::Excluded(start), Some(first)) = (base.start(i), order.first())
        && order_of(start, first)? != Ordering::Less
    {
        return Err(fault.into());
    }
    if let (Bound::Included(end), Some(last)) = (base.end(i), order.last())
        && order_of(end, last)? == Ordering::Less
    {
        return Err(fault.into());
    }
    Ok(())
}

/// The number of slots, which ascend by their keys, before the entry's key; and whether the next one has that key.
fn place<M: Media>(
    heap: &Access<M>,
    leaf: &LeafRef<'_>,
    slots: &[u8],
    entry: &MarkedPair,
) -> Result<(usize, bool), Error> {
    let media = heap.media();
    let Some(last) = slots.len().checked_sub(1) else {
        return Ok((0, false));
    };
    // Nothing is read of slots that are not in use.
    let slot = |i: usize| usize::from(slots[i.min(last)]);
    let found = search::position::<{ GROUP * GROUPS }, _>(
        slots.len(),
        entry.prefix,
        |i| leaf.slots[slot(i)].prefix.load(media),
        |i| entry.compare(heap, &leaf.entry(slot(i), media)),
    )?;
    Ok(match found {
        Ok(at) => (at, true),
        Err(at) => (at, false),
    })
}
