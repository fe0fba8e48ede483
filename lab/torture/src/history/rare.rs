//! Histories for persists that matter only in a narrow place, which the histories of the scenes hardly reach. A hunt
//! along them detects that such a persist is missing.
//!
//! Each is made for one index, and is an ordinary history for the others.

use super::Maker;
use crate::map::{Bytes, Op};
use crashkit::History;
use std::ops::Range;

/// The kinds of histories.
#[derive(Clone, Copy, Debug)]
enum Rare {
    /// A thread changes the value of the only key over and over, and another reads it: the first entry of a node, whose
    /// line also holds the node's head (P-Masstree).
    OnlyValue,
    /// Two keys that share their first eight bytes come and go, so that a layer becomes empty, or one leaf. A thread
    /// looks for keys in the layer above (P-Masstree).
    EmptyLayer,
    /// Ascending keys, while a thread looks for one beyond them all: it goes on to each sibling as soon as there is one
    /// (P-Masstree).
    Beyond,
    /// The last key below a node of the middle level, which is removed with its only child (P-Masstree).
    OnlyChild,
    /// The last key of all leaves but the first: they are merged, and the root becomes lower, while a thread reads the
    /// first leaf (P-BwTree).
    Lower,
}

const ALL: [Rare; 5] = [
    Rare::OnlyValue,
    Rare::EmptyLayer,
    Rare::Beyond,
    Rare::OnlyChild,
    Rare::Lower,
];

/// The number of ascending keys that the first leaf of a P-BwTree keeps when it splits...
const FIRST_LEAF: u64 = 63;

/// ...and each later one, ...
const LEAF: u64 = 56;

/// ...and of those that move to a new leaf.
const NEW_LEAF: u64 = 9;

/// The number of ascending keys that a border of a P-Masstree keeps when it splits, and of borders that an inner node
/// keeps.
const NODE: u64 = 12;

fn key(number: u64) -> Bytes {
    (number * 64).to_be_bytes()[..].into()
}

/// The number of ascending keys with which a P-BwTree has just this many leaves after the first.
fn end_of(leaves: u64) -> u64 {
    FIRST_LEAF + (leaves - 1) * LEAF + NEW_LEAF
}

/// The keys of a leaf after the first, in such a tree.
fn keys_of(leaf: u64, leaves: u64) -> Range<u64> {
    FIRST_LEAF + (leaf - 1) * LEAF..end_of(leaves).min(FIRST_LEAF + leaf * LEAF)
}

impl Maker {
    /// Makes a history; seeds take the kinds in turn.
    pub(super) fn rare(mut self, seed: u64) -> History<Op> {
        self.odd_values = false;
        let (before, after, threads) = match ALL[(seed % ALL.len() as u64) as usize] {
            Rare::OnlyValue => self.only_value(),
            Rare::EmptyLayer => self.empty_layer(),
            Rare::Beyond => self.beyond(),
            Rare::OnlyChild => self.only_child(),
            Rare::Lower => self.lower(),
        };
        History {
            seed,
            prepared: before.len() as u32,
            ops: before.into_iter().chain(after).collect(),
            threads,
            ..History::default()
        }
    }

    fn puts(&mut self, keys: impl IntoIterator<Item = Bytes>) -> Vec<Op> {
        let put = |key| Op::Insert(key, self.value());
        keys.into_iter().map(put).collect()
    }

    fn only_value(&mut self) -> (Vec<Op>, Vec<Op>, u32) {
        let only: Bytes = b"only"[..].into();
        let changes = (0..30).map(|_| Op::Update(only.clone(), self.value())).collect();
        let read = Op::Get(only.clone());
        (self.puts([only]), beside(changes, |_| read.clone()), 2)
    }

    fn empty_layer(&mut self) -> (Vec<Op>, Vec<Op>, u32) {
        let [first, last, other] = [&b"a layer a"[..], b"a layer b", b"another"].map(Bytes::from);
        let mut changes = Vec::new();
        for round in 0..6 {
            changes.extend(self.puts([first.clone(), last.clone()]));
            let mut gone = [&first, &last];
            // If the key with its value in place goes first, the layer becomes the other one's leaf.
            gone.rotate_left(round % 2);
            changes.extend(gone.map(|key| Op::Remove(key.clone())));
        }
        let reads = [&last, &other, &first].map(|key| Op::Get(key.clone()));
        let after = beside(changes, |number| reads[number % reads.len()].clone());
        (self.puts([other]), after, 2)
    }

    fn beyond(&mut self) -> (Vec<Op>, Vec<Op>, u32) {
        let before = self.puts((1..=NODE).map(key));
        let changes = self.puts((NODE + 1..5 * NODE).map(key));
        let read = Op::Get(u64::MAX.to_be_bytes()[..].into());
        (before, beside(changes, |_| read.clone()), 2)
    }

    fn only_child(&mut self) -> (Vec<Op>, Vec<Op>, u32) {
        // The second node of the middle level has two borders, of which the first is left with one key.
        let first = NODE * NODE;
        let last = self.random.below(NODE);
        let mut before = self.puts((0..first + NODE + 4).map(key));
        let gone = (first..first + NODE + 4)
            .rev()
            .filter(|&number| number != first + last);
        before.extend(gone.map(|number| Op::Remove(key(number))));
        let mut after = vec![Op::Remove(key(first + last))];
        after.extend(self.puts([key(first + 3), key(first - 1)]));
        after.extend([Op::Get(key(first + 3)), Op::Remove(key(first + 3))]);
        (before, after, 1)
    }

    fn lower(&mut self) -> (Vec<Op>, Vec<Op>, u32) {
        let leaves = 3 + self.random.below(4);
        let mut before = self.puts((0..end_of(leaves)).map(key));
        let mut others: Vec<u64> = (2..=leaves).collect();
        for i in (1..others.len()).rev() {
            others.swap(i, self.random.below(i as u64 + 1) as usize);
        }
        let all = |leaf| keys_of(leaf, leaves);
        let gone = others.into_iter().flat_map(all);
        let gone = gone.chain(all(1).skip(1)).chain(3..FIRST_LEAF);
        before.extend(gone.map(|number| Op::Remove(key(number))));
        let mut changes: Vec<Op> = (0..4 + self.random.below(8)).map(|_| Op::Get(key(1))).collect();
        changes.push(Op::Remove(key(FIRST_LEAF)));
        // The removal takes about as long as a hundred reads.
        changes.extend((0..120).map(|number| Op::Get(key(number % 3))));
        (
            before,
            beside(changes, |number| Op::Get(key(number as u64 % 3))),
            2,
        )
    }
}

/// Each change, and a read after it. Dealt out to two threads, the first changes and the second reads.
fn beside(changes: Vec<Op>, read: impl Fn(usize) -> Op) -> Vec<Op> {
    let pairs = changes.into_iter().enumerate();
    pairs
        .flat_map(|(number, change)| [change, read(number)])
        .collect()
}
