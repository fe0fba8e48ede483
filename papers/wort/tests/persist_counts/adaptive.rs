//! WOART and ART+CoW: an operation's cost depends on the kind of the node.
//!
//! ROART's Table 4 has a row named WORT whose N4, N16 and N48 are WOART's.

use super::{VALUE, insert, key, remove};
use index::conformance::{Cost, Costs};
use index::{Index, OnHeap};
use pmem::{Counting, Counts, LINE};
use std::ops::Bound;
use wollemi_wort::art_cow::ArtCow;
use wollemi_wort::woart::Woart;

type Woarts = Costs<Woart<Counting>>;
type ArtCows = Costs<ArtCow<Counting>>;

/// Lines of a node with this many children.
fn node_lines(children: u64) -> u64 {
    match children {
        0..=4 => 1,
        5..=16 => 3,
        17..=48 => 11,
        _ => 33,
    }
}

/// A tree with a node of this many children at the end of `path`.
fn fan<I: OnHeap<Media = Counting>>(path: &[u8], children: u8) -> Costs<I> {
    let tree = Costs::create();
    for byte in 0..children {
        insert(&tree, &[path, &[byte]].concat());
    }
    tree
}

/// Inserts into a node of each kind that has room.
fn into_nodes<I: OnHeap<Media = Counting>>() -> [Cost; 4] {
    [3, 10, 30, 60].map(|children| insert(&fan::<I>(&[7], children), &[7, 200]))
}

/// Table 4 says 3,3 / 4,4 / 3,3 / 2,2. The write-backs match; one fence suffices for the leaf and for everything that
/// leads to it before it counts.
#[test]
fn inserts_into_woart_s_nodes() {
    assert_eq!(into_nodes::<Woart<Counting>>(), [(3, 2), (4, 2), (3, 2), (2, 2)]);
}

/// Entries 0 and 1 of WOART's N16, which only a remove makes free, lie in the line of their key bytes: link and key
/// byte are written back together.
#[test]
fn inserts_into_the_first_line_of_woart_s_n16() {
    let tree: Woarts = fan(&[7], 10);
    for byte in [0, 1, 2] {
        assert_eq!(remove(&tree, &[7, byte]), (1, 1));
    }
    let costs = [200, 201, 202].map(|byte| insert(&tree, &[7, byte]));
    assert_eq!(costs, [(3, 2), (3, 2), (4, 2)]);
}

/// A leaf, a copy, and a slot for the small kinds; the others are WOART's.
#[test]
fn inserts_into_art_cow_s_nodes() {
    assert_eq!(into_nodes::<ArtCow<Counting>>(), [(3, 2), (5, 2), (3, 2), (2, 2)]);
}

/// Each insert that fills a node of 256 children, one after the other: the write-backs of Table 1, case by case.
#[test]
fn a_node_fills_up() {
    fn property<I: OnHeap<Media = Counting>>(in_n4: u64, in_n16: u64) {
        let tree = Costs::<I>::create();
        for children in 0..256 {
            let expected = match children {
                0 => 2,
                1 => 3,
                4 | 16 | 48 => 1 + node_lines(children + 1) + 1,
                2..4 => in_n4,
                5..16 => in_n16,
                17..48 => 3,
                _ => 2,
            };
            let cost = insert(&tree, &[7, children as u8]);
            assert_eq!(cost, (expected, 2), "with {children} children");
        }
    }
    property::<Woart<Counting>>(3, 4);
    property::<ArtCow<Counting>>(3, 5);
}

/// Table 4, "leaf": 3, 3. A leaf, an N4 and a slot; one fence less.
#[test]
fn diverging_keys_cost_3_2() {
    fn property<I: OnHeap<Media = Counting>>() {
        let tree = fan::<I>(&[7], 3);
        assert_eq!(insert(&tree, &[7, 1, 1]), (3, 2));
        let ended = tree.cost(|index| index.insert(&[7, 2], VALUE));
        assert_eq!(ended, (3, 2), "one ends where they diverge");
        assert_eq!(insert(&tree, &[7, 2, 1]), (3, 2));
        let ended = tree.cost(|index| index.insert(&[7], VALUE));
        assert_eq!(ended, (2, 2), "a key that ends at a node has a slot");
    }
    property::<Woart<Counting>>();
    property::<ArtCow<Counting>>();
}

/// A key of up to a line that parts from the others at a byte.
fn long(parting: usize, last: u8) -> Vec<u8> {
    let mut key = vec![8; 30];
    (key[parting], key[29]) = (9, last);
    key
}

/// Table 4, "internal": 4, 4. A leaf, an N4 and a slot, and the header of the node below, which needs no write-back
/// here; two fences, as in Algorithm 1; whatever the node below, and whether its header stores all of the prefix or
/// not.
#[test]
fn woart_s_splits_cost_3_2() {
    for children in [2, 10, 30, 60] {
        let tree: Woarts = fan(&[7, 9, 9], children);
        assert_eq!(insert(&tree, &[7, 9, 1]), (3, 2), "{children} children");
        assert_eq!(insert(&tree, &[7, 1]), (3, 2), "{children} children");
        assert_eq!(insert(&tree, &[1]), (3, 2), "nothing is shared");
    }
    let tree: Woarts = Costs::create();
    tree.cost(|index| index.insert(&long(29, 1), VALUE));
    tree.cost(|index| index.insert(&long(29, 2), VALUE));
    for parting in [25, 15, 3] {
        let cost = tree.cost(|index| index.insert(&long(parting, 0), VALUE));
        assert_eq!(cost, (3, 2), "parting at {parting}");
    }
}

/// A leaf, an N4, a copy of the node below, and a slot.
#[test]
fn art_cow_s_splits_cost_a_copy() {
    for children in [2, 10, 30, 60] {
        let tree: ArtCows = fan(&[7, 9, 9], children);
        let copy = node_lines(children.into());
        assert_eq!(insert(&tree, &[7, 9, 1]), (3 + copy, 2), "{children} children");
    }
}

/// A value of eight bytes is replaced in place by one store; any other by a new leaf.
#[test]
fn updates_cost_1_1_in_place_and_2_2_otherwise() {
    fn property<I: OnHeap<Media = Counting>>() {
        for children in [1, 3, 10, 30, 60] {
            let tree = fan::<I>(&[7], children);
            let update = |value: &'static [u8]| tree.cost(|index| index.update(&key(&[7]), value));
            assert_eq!(update(b"abcdefgh"), (1, 1));
            assert_eq!(update(b"seven.."), (2, 2));
            assert_eq!(update(b"another of up to a line"), (2, 2));
            assert_eq!(update(b"12345678"), (2, 2));
        }
    }
    property::<Woart<Counting>>();
    property::<ArtCow<Counting>>();
}

/// A remove from a node that remains is one store in WOART.
#[test]
fn woart_s_removes_cost_1_1() {
    for children in [3, 10, 30, 60] {
        let tree: Woarts = fan(&[7], children);
        assert_eq!(remove(&tree, &[7, 1]), (1, 1), "{children} children");
    }
    assert_eq!(
        remove(&fan::<Woart<Counting>>(&[7], 2), &[7, 1]),
        (1, 1),
        "a leaf is left"
    );
    let tree: Woarts = fan(&[7, 7], 3);
    insert(&tree, &[7, 1]);
    assert_eq!(remove(&tree, &[7, 1]), (1, 1), "a node is left");
}

/// In ART+CoW it is a copy of a small node.
#[test]
fn art_cow_s_removes_cost_a_copy() {
    for (children, cost) in [(3, (2, 2)), (10, (4, 2)), (30, (1, 1)), (60, (1, 1))] {
        let tree: ArtCows = fan(&[7], children);
        assert_eq!(remove(&tree, &[7, 1]), cost, "{children} children");
    }
    assert_eq!(
        remove(&fan::<ArtCow<Counting>>(&[7], 2), &[7, 1]),
        (1, 1),
        "a leaf is left"
    );
    for children in [3, 10, 30, 60] {
        let tree: ArtCows = fan(&[7, 7], children);
        insert(&tree, &[7, 1]);
        let copy = node_lines(children.into());
        assert_eq!(
            remove(&tree, &[7, 1]),
            (copy + 1, 2),
            "a node of {children} is left"
        );
    }
}

/// Nodes shrink well below where they grow: this costs a copy of the lines of the smaller kind, and the slot.
#[test]
fn nodes_shrink() {
    fn property<I: OnHeap<Media = Counting>>(at: &[u64]) {
        let tree = fan::<I>(&[7], 60);
        for left in (3..60).rev() {
            let cost = remove(&tree, &[7, left as u8]);
            if at.contains(&left) {
                assert_eq!(cost, (node_lines(left) + 1, 2), "{left} left");
            } else {
                assert_eq!(cost, (1, 1), "{left} left");
            }
        }
    }
    property::<Woart<Counting>>(&[40, 12, 3]);
    property::<ArtCow<Counting>>(&[40, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3]);
}

/// Operations that change nothing, and reads, persist nothing.
#[test]
fn reads_and_refusals_cost_nothing() {
    fn property<I: OnHeap<Media = Counting>>() {
        for children in [3, 10, 30, 60] {
            let tree = fan::<I>(&[7], children);
            let (counts, ()) = tree.counts(|index| {
                let guard = heap::pin();
                assert!(!index.insert(&key(&[7, 1]), VALUE).expect("no error"));
                assert!(!index.update(&key(&[9]), VALUE).expect("no error"));
                assert!(!index.remove(&key(&[7, 200])).expect("no error"));
                assert!(index.get(&key(&[7, 1]), &guard).expect("no error").is_some());
                let all = index.range(Bound::Unbounded, Bound::Unbounded, &guard);
                assert_eq!(all.count(), usize::from(children));
            });
            assert_eq!(counts, Counts::default());
        }
    }
    property::<Woart<Counting>>();
    property::<ArtCow<Counting>>();
}

/// The further lines of a leaf longer than one line come on top, each once.
#[test]
fn further_lines_of_long_leaves_are_counted_apart() {
    let tree: Woarts = fan(&[7], 3);
    for lines in [1, 2, 3, 16, 100, 1000] {
        let value = vec![b'v'; lines * LINE - 16 - 8];
        let cost = tree.cost(|index| index.insert(&key(&[7, 200]), &value));
        assert_eq!((cost.0 - (lines as u64 - 1), cost.1), (3, 2), "{lines} lines");
        remove(&tree, &[7, 200]);
    }
}
