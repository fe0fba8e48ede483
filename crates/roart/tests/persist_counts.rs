//! The paper's Table 4: write-backs and fences of each write operation, exactly.
//!
//! An operation's cost depends only on the structure, so each test builds one, and asserts both numbers. The heap's
//! own persists (one write-back and one fence per new page) are counted separately, and so are the further lines of a
//! leaf longer than one line. A non-temporal store counts as the write-back it replaces, as in the paper.
//!
//! Inline leaf arrays, which are not in the paper, are off here; `inline.rs` counts their costs.

use index::Index;
use index::conformance::{Cost, Costs};
use pmem::{Counting, Counts, LINE, NonTemporal};
use std::ops::Deref;
use wollemi_roart::{
    Raw, Roart, Switches, Variant, WithoutEc, WithoutInline, WithoutLc, WithoutMo, WithoutSizes, WithoutSmp,
};

/// The paper's techniques, published as in the paper.
type Streaming = Switches<true, true, true, true, false, true, NonTemporal>;

/// A ROART whose persists are counted.
struct Rig<V: Variant>(Costs<Roart<Counting, V>>);

impl<V: Variant> Deref for Rig<V> {
    type Target = Costs<Roart<Counting, V>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

const VALUE: &[u8] = b"12345678";

/// An eight-byte key that begins with these bytes.
fn key(bytes: &[u8]) -> Vec<u8> {
    let mut key = bytes.to_vec();
    key.resize(8, 0);
    key
}

/// Lines of a node with this many children.
fn node_lines(children: usize) -> u64 {
    match children {
        0..=4 => 1,
        5..=16 => 3,
        17..=48 => 11,
        _ => 33,
    }
}

/// Lines of an array made for this many leaves.
fn array_lines(leaves: usize) -> u64 {
    match leaves {
        0..=6 => 1,
        7..=14 => 2,
        15..=30 => 4,
        31..=46 => 6,
        _ => 9,
    }
}

impl<V: Variant> Rig<V> {
    fn new() -> Self {
        Rig(Costs::create())
    }

    fn insert(&self, bytes: &[u8]) -> Cost {
        self.cost(|index| index.insert(&key(bytes), VALUE))
    }

    fn remove(&self, bytes: &[u8]) -> Cost {
        self.cost(|index| index.remove(&key(bytes)))
    }

    /// Makes a node with `children` children below the root, at the level where `path` ends.
    fn fan(&self, path: &[u8], children: u8) {
        self.groups(path, &vec![65usize.div_ceil(children.into()); children.into()]);
    }

    /// Inserts keys that continue `path` by one of as many bytes as there are sizes, each as often as its size says;
    /// all keys of the first byte come last. Returns the cost of the 65th.
    fn groups(&self, path: &[u8], sizes: &[usize]) -> Option<Cost> {
        let mut inserted = 0;
        let mut split = None;
        for (byte, &size) in sizes.iter().enumerate().rev() {
            for i in 0..size {
                let mut bytes = path.to_vec();
                bytes.extend([byte as u8, i as u8]);
                let cost = self.insert(&bytes);
                inserted += 1;
                if inserted == 65 {
                    split = Some(cost);
                }
            }
        }
        split
    }
}

/// Inserts into a node of each kind that has room; the root is another N256.
fn into_nodes<V: Variant>() -> [Cost; 5] {
    let rig = Rig::<V>::new();
    let below = [3, 10, 30, 60].map(|children| {
        rig.fan(&[children], children);
        rig.insert(&[children, 200])
    });
    let root = rig.insert(&[200]);
    [below[0], below[1], below[2], below[3], root]
}

/// The first two keys that diverge below a node, and a third one that diverges there too and finds room.
fn divergence<V: Variant>() -> [Cost; 2] {
    let rig = Rig::<V>::new();
    rig.insert(&[7, 1]);
    let first = rig.insert(&[7, 2]);
    rig.insert(&[7, 3]);
    [first, rig.insert(&[7, 4])]
}

/// A key that parts from the string of an inner node, whether the node stores all of the skipped bytes or not.
fn internal_splits<V: Variant>() -> [Cost; 2] {
    let rig = Rig::<V>::new();
    rig.fan(&[7, 9, 9, 9], 60);
    let near = rig.insert(&[7, 9, 1]);
    // A leaf of up to a line: 16 + 30 bytes.
    let long = |parting: u8, i: u8| {
        let mut key = vec![8; 30];
        (key[2], key[25]) = (parting, i);
        key
    };
    for i in 0..65 {
        rig.cost(|index| index.insert(&long(0, i), VALUE));
    }
    let far = rig.cost(|index| index.insert(&long(1, 0), VALUE));
    [near, far]
}

/// Nodes of each kind grow into the next: the new leaf, the lines of the new node, the slot.
fn assert_growth<V: Variant>() {
    let rig = Rig::<V>::new();
    for full in [4, 16, 48] {
        rig.fan(&[full], full);
        let new = node_lines(usize::from(full) + 1);
        assert_eq!(
            rig.insert(&[full, 200]),
            (1 + new + 1, 2),
            "a node of {full} children grows"
        );
    }
}

/// Table 4: an insert into a node of any kind costs two write-backs and two fences.
#[test]
fn inserts_into_nodes_cost_2_2() {
    assert_eq!(into_nodes::<WithoutInline>(), [(2, 2); 5]);
}

/// Table 4, "leaf": two keys that diverge below a node cost two write-backs and two fences, since the new
/// leaf and the new leaf array share a line; so does a key that joins an array.
#[test]
fn diverging_keys_cost_2_2() {
    assert_eq!(divergence::<WithoutInline>(), [(2, 2); 2]);
}

/// A leaf of more than half a line leaves no room for the array beside it: one write-back more.
#[test]
fn diverging_longer_keys_cost_3_2() {
    let rig = Rig::<WithoutInline>::new();
    let key = |last: u8| [&[7; 31][..], &[last]].concat();
    rig.cost(|index| index.insert(&key(1), VALUE));
    assert_eq!(rig.cost(|index| index.insert(&key(2), VALUE)), (3, 2));
    rig.cost(|index| index.insert(&key(3), VALUE));
    assert_eq!(rig.cost(|index| index.insert(&key(4), VALUE)), (2, 2));
}

/// Table 4, "internal", says 4, 2; the node below is not written here, since its prefix never changes.
#[test]
fn internal_splits_cost_3_2() {
    assert_eq!(internal_splits::<WithoutInline>(), [(3, 2); 2]);
}

/// A node that grows costs as many write-backs as the new one has lines, plus the leaf's and the slot's.
#[test]
fn growth_costs_its_lines() {
    assert_growth::<WithoutInline>();
    assert_growth::<Streaming>();
    assert_growth::<Raw>();
}

/// A leaf array that grows costs the new one's lines, plus the leaf's and the slot's.
#[test]
fn larger_arrays_cost_their_lines() {
    let rig = Rig::<WithoutInline>::new();
    for leaves in 1..=64 {
        let cost = rig.insert(&[7, leaves as u8]);
        let grows = [3, 7, 15, 31, 47].contains(&leaves);
        let new = if grows { array_lines(leaves) } else { 0 };
        assert_eq!(cost, (1 + new + 1, 2), "{leaves} leaves");
    }
}

/// Splitting a full leaf array costs two fences, and the lines of the new arrays, the node, the leaf and the
/// slot. Leaves alone in their group, and an array that stays whole, are not written.
#[test]
fn splits_of_full_arrays_cost_their_lines() {
    let cases: &[&[usize]] = &[
        &[33, 32],
        &[5, 60],
        &[14, 15, 36],
        &[20, 15, 15, 15],
        &[13; 5],
        &[5; 13],
        &[4, 4, 4, 4, 4, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3],
        &[1; 65],
        &[1, 1, 63],
        &[62, 1, 1, 1],
    ];
    for sizes in cases {
        assert_eq!(sizes.iter().sum::<usize>(), 65);
        let rig = Rig::<WithoutInline>::new();
        let arrays: u64 = sizes
            .iter()
            .filter(|&&leaves| leaves > 1)
            .map(|&leaves| array_lines(leaves))
            .sum();
        let expected = (1 + arrays + node_lines(sizes.len()) + 1, 2);
        assert_eq!(rig.groups(&[7], sizes), Some(expected), "groups of {sizes:?}");
    }
    let rig = Rig::<WithoutInline>::new();
    assert_eq!(
        rig.groups(&[7], &[1, 64]),
        Some((3, 2)),
        "the array stays as it is"
    );
}

/// Arrays of two are half a line each and may share one: never more than a line each.
#[test]
fn splits_into_pairs_cost_at_most_a_line_each() {
    let rig = Rig::<WithoutInline>::new();
    let sizes: Vec<usize> = [1].into_iter().chain([2; 32]).collect();
    let (write_backs, fences) = rig.groups(&[7], &sizes).expect("65 keys");
    let others = node_lines(33) + 1;
    assert!(
        (16 + others..=1 + 32 + others).contains(&write_backs),
        "{write_backs}"
    );
    assert_eq!(fences, 2);
}

/// A value of eight bytes is replaced in place by one store; any other by a new leaf.
#[test]
fn updates_cost_1_1_in_place_and_2_2_otherwise() {
    let rig = Rig::<WithoutInline>::new();
    rig.fan(&[7], 60);
    for bytes in [&[7, 0, 0][..], &[7, 0, 1], &[7, 59, 0], &[200]] {
        rig.index().upsert(&key(bytes), VALUE).expect("no error");
        let update = |value: &'static [u8]| rig.cost(|index| index.update(&key(bytes), value));
        assert_eq!(update(b"abcdefgh"), (1, 1));
        assert_eq!(update(b"seven.."), (2, 2));
        assert_eq!(update(b"another of up to a line"), (2, 2));
        assert_eq!(update(b"12345678"), (2, 2));
        let swap = |index: &Roart<Counting, WithoutInline>| {
            index.compare_and_swap(&key(bytes), Some(b"12345678"), Some(b"87654321"))
        };
        assert_eq!(rig.cost(swap), (1, 1));
    }
}

/// A remove empties one entry. If too little would be left, it costs the lines of the new object and the slot's; an
/// array of two leaves its last leaf in the slot.
#[test]
fn removes_cost_1_1() {
    let rig = Rig::<WithoutInline>::new();
    for children in [3, 10, 30, 60] {
        rig.fan(&[children], children);
        rig.insert(&[children, 200]);
        assert_eq!(rig.remove(&[children, 200]), (1, 1), "{children} children");
    }
    rig.insert(&[200]);
    assert_eq!(rig.remove(&[200]), (1, 1), "the root");
    for leaf in 0..8 {
        rig.insert(&[100, leaf]);
    }
    for (left, cost) in (1..8).rev().zip([1, 1, 1, 1, 2, 1, 1]) {
        let fences = cost.min(2);
        assert_eq!(rig.remove(&[100, left]), (cost, fences), "{left} leaves left");
    }
    assert_eq!(rig.remove(&[100, 0]), (1, 1), "the last of the root's slot");
}

/// Operations that change nothing, and reads, persist nothing.
#[test]
fn reads_and_refusals_cost_nothing() {
    let rig = Rig::<WithoutInline>::new();
    rig.fan(&[7], 60);
    let (counts, ()) = rig.counts(|index| {
        let guard = heap::pin();
        assert!(!index.insert(&key(&[7, 0, 0]), VALUE).expect("no error"));
        assert!(!index.update(&key(&[9]), VALUE).expect("no error"));
        assert!(!index.remove(&key(&[9])).expect("no error"));
        assert!(index.get(&key(&[7, 0, 0]), &guard).expect("no error").is_some());
        let all = index.range(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded, &guard);
        assert_eq!(all.count(), 120);
    });
    assert_eq!(counts, Counts::default());
}

/// The further lines of a leaf longer than one line come on top, each once.
#[test]
fn further_lines_of_long_leaves_are_counted_apart() {
    let rig = Rig::<WithoutInline>::new();
    rig.fan(&[7], 60);
    for (i, lines) in (1..=16).chain([20, 33, 100, 1000, 5000]).enumerate() {
        let value = vec![b'v'; lines * LINE - 16 - 8];
        let cost = rig.cost(|index| index.insert(&key(&[7, 100 + i as u8]), &value));
        assert_eq!((cost.0 - (lines as u64 - 1), cost.1), (2, 2), "{lines} lines");
        let cost = rig.cost(|index| index.update(&key(&[7, 0]), &value));
        assert_eq!((cost.0 - (lines as u64 - 1), cost.1), (2, 2), "{lines} lines");
    }
    // However the chunk is aligned to lines, none is written back twice, which `cost` asserts.
    for len in 0..600 {
        let key = [&[9][..], &u64::to_be_bytes(len)].concat();
        let value = vec![b'v'; len as usize];
        rig.cost(|index| index.insert(&key, &value));
    }
}

/// The heap persists one word for each new page, and nothing else, and this counts as allocation.
#[test]
fn allocation_is_counted_apart() {
    let rig = Rig::<WithoutInline>::new();
    let pages = |rig: &Rig<WithoutInline>| {
        let pool = rig.index().heap().pool();
        pool.allocated().load(pool.media()) / pool.page_size()
    };
    let before = pages(&rig);
    let (counts, ()) = rig.counts(|index| {
        for i in 0..50_000u64 {
            let key = i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
            assert!(index.insert(&key, VALUE).expect("no error"));
        }
    });
    let taken = pages(&rig) - before;
    assert!(taken > 5, "{taken} pages");
    assert_eq!((counts.alloc.write_backs, counts.alloc.fences), (taken, taken));
    assert_eq!(counts.node.fences, 2 * 50_000);
    assert_eq!(counts.log, Default::default());
}

/// The paper's own publication policy: each commit is a non-temporal store, and the counts are the same.
#[test]
fn non_temporal_publication_costs_the_same() {
    assert_eq!(into_nodes::<Streaming>(), [(2, 2); 5]);
    assert_eq!(divergence::<Streaming>(), [(2, 2); 2]);
    assert_eq!(internal_splits::<Streaming>(), [(3, 2); 2]);
    let rig = Rig::<Streaming>::new();
    let (counts, _) = rig.counts(|index| index.insert(&key(&[1]), VALUE).expect("no error"));
    assert_eq!((counts.node.write_backs, counts.non_temporal), (1, 1));
    let (counts, _) = rig.counts(|index| index.update(&key(&[1]), b"87654321").expect("no error"));
    assert_eq!(
        (counts.node.write_backs, counts.non_temporal, counts.node.fences),
        (0, 1, 1)
    );
    assert_eq!(rig.remove(&[1]), (1, 1));
}

/// Without entry compression the key byte is persisted ahead of the link, except for an N256, which keeps none.
#[test]
fn without_entry_compression() {
    assert_eq!(
        into_nodes::<WithoutEc>(),
        [(3, 3), (3, 3), (3, 3), (2, 2), (2, 2)]
    );
    assert_eq!(divergence::<WithoutEc>(), [(2, 2); 2]);
    assert_eq!(internal_splits::<WithoutEc>(), [(3, 2); 2]);
}

/// Without selective metadata persistence the count of all but an N4 is persisted after the link; an N48's
/// child index, in another line, under the same fence.
#[test]
fn without_selective_metadata_persistence() {
    assert_eq!(
        into_nodes::<WithoutSmp>(),
        [(2, 2), (3, 3), (4, 3), (3, 3), (3, 3)]
    );
    assert_eq!(divergence::<WithoutSmp>(), [(2, 2); 2]);
    assert_eq!(internal_splits::<WithoutSmp>(), [(3, 2); 2]);
}

/// Without the minimally ordered split the leaf and the node above it have a fence each.
#[test]
fn without_the_minimally_ordered_split() {
    assert_eq!(into_nodes::<WithoutMo>(), [(2, 2); 5]);
    assert_eq!(divergence::<WithoutMo>(), [(2, 2); 2]);
    assert_eq!(internal_splits::<WithoutMo>(), [(3, 3); 2]);
}

/// Without leaf compaction two keys that diverge get an N4, in a line of its own; the next finds room in it.
#[test]
fn without_leaf_compaction() {
    assert_eq!(into_nodes::<WithoutLc>(), [(2, 2); 5]);
    assert_eq!(divergence::<WithoutLc>(), [(3, 2), (2, 2)]);
    assert_eq!(internal_splits::<WithoutLc>(), [(3, 2); 2]);
}

/// With one size of leaf arrays the first pair's takes nine lines, plus the leaf's and the slot's; the next finds
/// room in it.
#[test]
fn with_leaf_arrays_of_one_size() {
    assert_eq!(into_nodes::<WithoutSizes>(), [(2, 2); 5]);
    assert_eq!(divergence::<WithoutSizes>(), [(11, 2), (2, 2)]);
    assert_eq!(internal_splits::<WithoutSizes>(), [(3, 2); 2]);
}

/// With everything off: the savings of all techniques together.
#[test]
fn the_raw_version() {
    assert_eq!(into_nodes::<Raw>(), [(3, 3), (4, 4), (5, 4), (3, 3), (3, 3)]);
    assert_eq!(internal_splits::<Raw>(), [(3, 3); 2]);
}
