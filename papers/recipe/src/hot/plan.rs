//! Plans: the contents of a node to be built, and how a write changes them.
//!
//! A plan has the branching bits in ascending order and, for each entry, its sparse partial key and its object. The
//! first branching bit is the highest of the partial keys. It may have one entry more than a node, until it is split.
//!
//! I1 The entries are in the order of their partial keys, which is that of the keys; all are different.
//! I2 Each branching bit is set in some partial key: two neighbours' partial keys first differ in the bit where their
//!    ways part, which is set in the second.

use super::layout::{MAX_ENTRIES, Selection, Shape};
use super::node::Node;
use super::position::Position;
use art::partial::{deposit, extract};
use pmem::{Fault, Link, Media};
use std::ops::Range;

/// The object of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    /// A reachable object.
    Old(Link),
    /// The `i`-th new object of a change.
    New(usize),
}

/// The plan of a node.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    positions: [Position; MAX_ENTRIES],
    bits: usize,
    partials: [u32; MAX_ENTRIES + 1],
    items: [Item; MAX_ENTRIES + 1],
    len: usize,
}

impl Plan {
    fn empty() -> Plan {
        Plan {
            positions: [0; MAX_ENTRIES],
            bits: 0,
            partials: [0; MAX_ENTRIES + 1],
            items: [Item::Old(Link::NULL); MAX_ENTRIES + 1],
            len: 0,
        }
    }

    /// Two entries that part at a position.
    pub(super) fn pair(position: Position, zero: Item, one: Item) -> Plan {
        let mut plan = Plan::empty();
        plan.positions[0] = position;
        plan.partials[1] = 1;
        (plan.bits, plan.len) = (1, 2);
        (plan.items[0], plan.items[1]) = (zero, one);
        plan
    }

    /// The plan of entries, without their objects, each of which parts from the one before at one of these positions.
    pub(super) fn of_partings(partings: impl Iterator<Item = Position> + Clone) -> Plan {
        let mut plan = Plan::empty();
        let mut positions: Vec<_> = partings.clone().collect();
        positions.sort_unstable();
        positions.dedup();
        plan.bits = positions.len();
        plan.positions[..plan.bits].copy_from_slice(&positions);
        let mut way = 0;
        plan.push(way, Item::Old(Link::NULL));
        for parting in partings {
            // Where the ways part, it takes the other side, and then the first entry there.
            let below = plan.below(parting);
            way = way & !low(below) | 1 << (below - 1);
            plan.push(way, Item::Old(Link::NULL));
        }
        plan
    }

    /// The plan of an existing node without its slots: this part is constant.
    ///
    /// # Errors
    ///
    /// If no valid node can have these branching bits and partial keys.
    pub(super) fn of_ways(node: &Node<'_>) -> Result<Plan, Fault> {
        let mut plan = Plan::empty();
        node.positions(|position| {
            if plan.bits < MAX_ENTRIES - 1 {
                plan.positions[plan.bits] = position;
            }
            plan.bits += 1;
        });
        plan.len = node.shape.count;
        node.read_partials(&mut plan.partials);
        if plan.is_sound() {
            Ok(plan)
        } else {
            Err(Fault {
                what: "branching bits of a node",
                offset: 0,
            })
        }
    }

    /// Whether the invariants hold, and the plan fits a node.
    pub(super) fn is_sound(&self) -> bool {
        if !(1..MAX_ENTRIES).contains(&self.bits)
            || !(2..=MAX_ENTRIES).contains(&self.len)
            || self.partials[0] != 0
        {
            return false;
        }
        let used = self.partials().iter().fold(0, |used, partial| used | partial);
        used == low(self.bits)
            && self.positions().windows(2).all(|pair| pair[0] < pair[1])
            && self.partials().windows(2).all(|pair| follows(pair[0], pair[1]))
    }

    /// Fills in the objects in the node's slots, whose lock the caller holds.
    pub(super) fn fill<M: Media>(&mut self, node: &Node<'_>, media: &M) {
        for (item, slot) in self.items.iter_mut().zip(node.slots) {
            *item = Item::Old(slot.load(media));
        }
    }

    /// Number of entries.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// The object of an entry.
    pub(super) fn item(&self, index: usize) -> Item {
        self.items[index]
    }

    /// The objects, in order.
    pub(super) fn items(&self) -> &[Item] {
        &self.items[..self.len]
    }

    /// Replaces the object of an entry.
    pub(super) fn replace(&mut self, index: usize, item: Item) {
        self.items[index] = item;
    }

    /// The branching bits.
    pub(super) fn positions(&self) -> &[Position] {
        &self.positions[..self.bits]
    }

    /// The partial keys.
    pub(super) fn partials(&self) -> &[u32] {
        &self.partials[..self.len]
    }

    /// The shape of the node, and the selection of its branching bits.
    pub(super) fn selection(&self) -> (Shape, Selection) {
        let selection = Selection::of(self.positions());
        let shape = Shape::new(selection.layout, self.len);
        (shape, selection)
    }

    /// Number of low bits of partial keys that belong to this position or later ones.
    fn below(&self, position: Position) -> usize {
        self.bits - self.positions().partition_point(|&other| other < position)
    }

    /// The entries whose ways agree with that to `index` in all branching bits before a position: the branch beside
    /// which a key belongs that first differs there.
    pub(super) fn affected(&self, index: usize, position: Position) -> Range<usize> {
        let shift = self.below(position) as u32;
        let high = |partial: u32| partial.checked_shr(shift).unwrap_or(0);
        let way = high(self.partials[index]);
        let start = self.partials().partition_point(|&partial| high(partial) < way);
        let end = self.partials().partition_point(|&partial| high(partial) <= way);
        start..end
    }

    /// The position at which the ways to an entry and to the next one part.
    pub(super) fn parting(&self, index: usize) -> Position {
        let differ = self.partials[index] ^ self.partials[index + 1];
        self.positions[self.bits - 1 - differ.ilog2() as usize]
    }

    /// Adds an entry that parts at `position` from the way to `index`: after the [affected](Plan::affected) branch if
    /// the entry has the bit set, otherwise before it.
    ///
    /// # Errors
    ///
    /// If the way branches there already: then a key was in the wrong place.
    pub(super) fn insert(
        &mut self,
        index: usize,
        position: Position,
        set: bool,
        item: Item,
    ) -> Result<(), Fault> {
        let range = self.affected(index, position);
        let at = self.positions().partition_point(|&other| other < position);
        if self.positions().get(at) != Some(&position) {
            self.positions.copy_within(at..self.bits, at + 1);
            self.positions[at] = position;
            let kept = low(self.bits - at);
            for partial in &mut self.partials[..self.len] {
                *partial = (*partial & !kept) << 1 | *partial & kept;
            }
            self.bits += 1;
        }
        let place = self.bits - 1 - at;
        if self.partials[range.clone()]
            .iter()
            .any(|partial| partial >> place & 1 != 0)
        {
            return Err(Fault {
                what: "a key in the wrong place",
                offset: 0,
            });
        }
        let way = self.partials[range.start] & !low(place + 1);
        let new = if set { range.end } else { range.start };
        if !set {
            self.partials[range]
                .iter_mut()
                .for_each(|partial| *partial |= 1 << place);
        }
        self.partials.copy_within(new..self.len, new + 1);
        self.items.copy_within(new..self.len, new + 1);
        self.partials[new] = way | u32::from(set) << place;
        self.items[new] = item;
        self.len += 1;
        Ok(())
    }

    /// Removes an entry, and the branch at which it parted.
    pub(super) fn remove(&mut self, index: usize) {
        let differ = |a: usize, b: usize| (self.partials[a] ^ self.partials[b]).checked_ilog2().unwrap_or(0);
        let after = (index + 1 < self.len).then(|| differ(index, index + 1));
        let before = index.checked_sub(1).map(|other| differ(other, index));
        // Its branch is the later of those that part it from its neighbours. If the other side of that branch comes
        // after it, the other side no longer branches there.
        if let Some(after) = after
            && before.is_none_or(|before| after < before)
        {
            let way = self.partials[index] >> after >> 1;
            let beside = self.partials[index + 1..self.len].iter_mut();
            beside
                .take_while(|partial| **partial >> after >> 1 == way)
                .for_each(|partial| *partial &= !(1 << after));
        }
        self.partials.copy_within(index + 1..self.len, index);
        self.items.copy_within(index + 1..self.len, index);
        self.len -= 1;
        self.forget_unused();
    }

    /// Removes the entries without an object.
    pub(super) fn forget_empty(&mut self) {
        for index in (0..self.len).rev() {
            if self.items[index] == Item::Old(Link::NULL) {
                self.remove(index);
            }
        }
    }

    /// Removes bits on which no way branches.
    fn forget_unused(&mut self) {
        let used = self.partials().iter().fold(0, |used, partial| used | partial);
        if used == low(self.bits) {
            return;
        }
        for partial in &mut self.partials[..self.len] {
            *partial = extract((*partial).into(), used.into()) as u32;
        }
        let (bits, mut kept) = (self.bits, 0);
        for i in 0..bits {
            if used >> (bits - 1 - i) & 1 != 0 {
                self.positions[kept] = self.positions[i];
                kept += 1;
            }
        }
        self.bits = kept;
    }

    /// The first branch: its position, and the plans of both sides.
    pub(super) fn split(&self) -> (Position, Plan, Plan) {
        let highest = 1 << (self.bits - 1);
        let middle = self.partials().partition_point(|partial| partial & highest == 0);
        let half = |range: Range<usize>| {
            let mut half = self.clone();
            half.len = range.len();
            half.partials[..half.len].copy_from_slice(&self.partials[range.clone()]);
            half.items[..half.len].copy_from_slice(&self.items[range]);
            half.partials[..half.len]
                .iter_mut()
                .for_each(|partial| *partial &= !highest);
            half.forget_unused();
            half
        };
        (self.positions[0], half(0..middle), half(middle..self.len))
    }

    /// Replaces the entry `index` by the entries of its node. Together they must fit into a node.
    pub(super) fn draw_in(&mut self, index: usize, below: &Plan) {
        let (mut merged, mut bits) = ([0; MAX_ENTRIES], 0);
        let (mut own, mut theirs) = (0_u64, 0_u64);
        let (mut a, mut b) = (
            self.positions().iter().peekable(),
            below.positions().iter().peekable(),
        );
        // Masks of the places of either's bits among all, from the highest on.
        while let Some(next) = [a.peek(), b.peek()]
            .into_iter()
            .flatten()
            .min()
            .map(|&&next| next)
        {
            merged[bits] = next;
            let place = 1 << (63 - bits);
            own |= if a.next_if_eq(&&next).is_some() { place } else { 0 };
            theirs |= if b.next_if_eq(&&next).is_some() { place } else { 0 };
            bits += 1;
        }
        let (own, theirs) = (own >> (64 - bits), theirs >> (64 - bits));
        let spread = |partial: u32, mask| deposit(partial.into(), mask) as u32;
        let mut all = Plan::empty();
        (all.positions, all.bits) = (merged, bits);
        for i in 0..self.len {
            let way = spread(self.partials[i], own);
            if i == index {
                for (partial, item) in below.partials().iter().zip(below.items()) {
                    all.push(way | spread(*partial, theirs), *item);
                }
            } else {
                all.push(way, self.items[i]);
            }
        }
        *self = all;
    }

    fn push(&mut self, partial: u32, item: Item) {
        self.partials[self.len] = partial;
        self.items[self.len] = item;
        self.len += 1;
    }
}

/// Whether a partial key can follow another in a Patricia trie: where the ways part, it takes the other side, and
/// then the first entry there, so that it has no later bit.
fn follows(partial: u32, next: u32) -> bool {
    let differ = partial ^ next;
    partial < next && next & low(differ.ilog2() as usize) == 0
}

/// The lowest `bits` bits.
fn low(bits: usize) -> u32 {
    ((1_u64 << bits) - 1) as u32
}

#[cfg(test)]
mod tests;
