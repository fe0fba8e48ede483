//! WORT has one kind of node, of three lines: the cost of an insert does not depend on how full the node is.

use super::{VALUE, insert, key, remove};
use index::Index;
use index::conformance::{Cost, Costs};
use pmem::{Counting, Counts, LINE};
use std::ops::Bound;
use wollemi_wort::wort::Wort;

/// Lines of a node.
const NODE: u64 = 3;

fn empty() -> Costs<Wort<Counting>> {
    Costs::create()
}

/// ROART's Table 4 says 2, 2 for an N256, the one of its four kinds that resembles a WORT node: the leaf, then its
/// slot. Its N4, N16 and N48 are WOART's.
#[test]
fn inserts_into_nodes_cost_2_2() {
    let tree = empty();
    assert_eq!(insert(&tree, &[0x70]), (2, 2), "the top of an empty tree");
    insert(&tree, &[0x71]);
    for digit in 2..16 {
        assert_eq!(insert(&tree, &[0x70 + digit]), (2, 2), "{digit} children");
    }
    tree.cost(|index| index.insert(&[0x70, 0x10], VALUE));
    assert_eq!(
        tree.cost(|index| index.insert(&[0x70], VALUE)),
        (2, 2),
        "a key that ends at its node"
    );
}

/// Table 4, "leaf", says 3, 3: a leaf, a node and a slot, each counted as one write-back. A node of 16 links takes
/// three, as WORT's own Table 1 counts them; and leaf and node share one fence.
#[test]
fn diverging_keys_cost_5_2() {
    const LEAF_NODE_SLOT: Cost = (1 + NODE + 1, 2);
    let tree = empty();
    insert(&tree, &[0x71]);
    assert_eq!(insert(&tree, &[0x72]), LEAF_NODE_SLOT, "below the top");
    assert_eq!(insert(&tree, &[0x72, 1]), LEAF_NODE_SLOT, "below a node");
    assert_eq!(
        tree.cost(|index| index.insert(&key(&[0x71])[..7], VALUE)),
        LEAF_NODE_SLOT,
        "one ends where they diverge"
    );
}

/// Table 4, "internal", says 4, 4: a leaf, a node, a header and a slot. The header needs no write-back. Algorithm 1
/// waits at two points, and so does this.
#[test]
fn splits_cost_5_2() {
    const LEAF_NODE_SLOT: Cost = (1 + NODE + 1, 2);
    let tree = empty();
    insert(&tree, &[7, 9, 9, 1]);
    insert(&tree, &[7, 9, 9, 2]);
    assert_eq!(insert(&tree, &[7, 9, 1]), LEAF_NODE_SLOT, "at the top");
    assert_eq!(insert(&tree, &[7, 9, 9, 0x80]), LEAF_NODE_SLOT, "below a node");
    assert_eq!(insert(&tree, &[8]), LEAF_NODE_SLOT, "nothing is shared");
    // A leaf of up to a line: 16 + 30 bytes. The header does not store all of the prefix.
    let long = |parting: usize, last: u8| {
        let mut key = vec![8; 30];
        (key[parting], key[29]) = (9, last);
        key
    };
    tree.cost(|index| index.insert(&long(29, 1), VALUE));
    tree.cost(|index| index.insert(&long(29, 2), VALUE));
    for parting in [25, 15, 3] {
        let cost = tree.cost(|index| index.insert(&long(parting, 0), VALUE));
        assert_eq!(cost, LEAF_NODE_SLOT, "parting at {parting}");
    }
}

/// A value of eight bytes is replaced in place by one store; any other by a new leaf.
#[test]
fn updates_cost_1_1_in_place_and_2_2_otherwise() {
    let tree = empty();
    for bytes in [&[0x71][..], &[0x72], &[0x72, 1]] {
        tree.index().upsert(&key(bytes), VALUE).expect("no error");
        let update = |value: &'static [u8]| tree.cost(|index| index.update(&key(bytes), value));
        assert_eq!(update(b"abcdefgh"), (1, 1));
        assert_eq!(update(b"seven.."), (2, 2));
        assert_eq!(update(b"another of up to a line"), (2, 2));
        assert_eq!(update(b"12345678"), (2, 2));
    }
}

/// A remove is one store, whatever is left.
#[test]
fn removes_cost_1_1() {
    let tree = empty();
    for bytes in [&[0x71][..], &[0x72], &[0x73], &[0x73, 1], &[0x73, 2]] {
        insert(&tree, bytes);
    }
    assert_eq!(remove(&tree, &[0x71]), (1, 1), "two children are left");
    assert_eq!(remove(&tree, &[0x72]), (1, 1), "a node is left");
    assert_eq!(remove(&tree, &[0x73, 2]), (1, 1), "two children are left");
    assert_eq!(remove(&tree, &[0x73, 1]), (1, 1), "a leaf is left");
    assert_eq!(remove(&tree, &[0x73]), (1, 1), "the last key");
}

/// Operations that change nothing, and reads, persist nothing.
#[test]
fn reads_and_refusals_cost_nothing() {
    let tree = empty();
    for bytes in [&[0x71][..], &[0x72], &[0x72, 1]] {
        insert(&tree, bytes);
    }
    let (counts, ()) = tree.counts(|index| {
        let guard = heap::pin();
        assert!(!index.insert(&key(&[0x71]), VALUE).expect("no error"));
        assert!(!index.update(&key(&[9]), VALUE).expect("no error"));
        assert!(!index.remove(&key(&[9])).expect("no error"));
        assert!(index.get(&key(&[0x71]), &guard).expect("no error").is_some());
        let all = index.range(Bound::Unbounded, Bound::Unbounded, &guard);
        assert_eq!(all.count(), 3);
    });
    assert_eq!(counts, Counts::default());
}

/// The further lines of a leaf longer than one line come on top, each once.
#[test]
fn further_lines_of_long_leaves_are_counted_apart() {
    let tree = empty();
    insert(&tree, &[0x70]);
    insert(&tree, &[0x71]);
    for lines in [1, 2, 3, 16, 100, 1000] {
        let value = vec![b'v'; lines * LINE - 16 - 8];
        let cost = tree.cost(|index| index.insert(&key(&[0x72]), &value));
        assert_eq!((cost.0 - (lines as u64 - 1), cost.1), (2, 2), "{lines} lines");
        remove(&tree, &[0x72]);
    }
}
