//! The costs of P-HOT's operations in write-backs and fences (RECIPE Fig. 4c, 4d): each case exactly, averages as
//! bounds; and the tree's height and size.
//!
//! The heap's own persists (one write-back and one fence per new page) are counted separately.

use index::conformance::{Cost, Costs, Random};
use index::{Index, OnHeap};
use pmem::Counting;
use wollemi_recipe::Hot;
use wollemi_recipe::hot::Form;

type Rig = Costs<Hot<Counting>>;

const VALUE: &[u8] = b"12345678";

fn insert(rig: &Rig, key: &[u8]) -> Cost {
    rig.cost(|index| index.insert(key, VALUE))
}

fn remove(rig: &Rig, key: &[u8]) -> Cost {
    rig.cost(|index| index.remove(key))
}

/// Lines of a node with one mask and partial keys of one byte.
fn lines(entries: u64) -> u64 {
    (16 + 8 + entries.next_multiple_of(8) + 8 * entries).div_ceil(64)
}

/// Lines of a node with masks for up to eight key bytes.
fn multi_lines(entries: u64) -> u64 {
    (16 + 24 + entries.next_multiple_of(8) + 8 * entries).div_ceil(64)
}

fn form(rig: &Rig) -> Form {
    rig.index().form().expect("sound")
}

/// The first key hangs from the root; the second creates a node.
#[test]
fn the_first_keys() {
    let rig = Rig::create();
    assert_eq!(insert(&rig, b"a"), (2, 2), "a leaf and the root's slot");
    assert_eq!(insert(&rig, b"b"), (3, 2), "leaf-node pushdown: leaf, node, slot");
    assert_eq!((form(&rig).nodes, form(&rig).height), (1, 1));
}

/// A normal insert costs the leaf, the lines of the copy, and the slot above; the two fences are shared.
#[test]
fn normal_inserts() {
    let rig = Rig::create();
    for i in 0..32 {
        let cost = insert(&rig, &[7, i * 2]);
        if i > 1 {
            assert_eq!(cost, (1 + lines(u64::from(i) + 1) + 1, 2), "entry {i}");
        }
    }
    assert_eq!((form(&rig).nodes, form(&rig).entries), (1, 32));
}

/// A full root is split below an intermediate node. A full node below it is split into the node above.
#[test]
fn splits() {
    let rig = Rig::create();
    for i in 0..32 {
        insert(&rig, &[7, i * 2]);
    }
    // 0, 1, 2, 4, ... 30 and 32, 34, ... 62.
    let intermediate = 1 + lines(17) + lines(16) + lines(2) + 1;
    assert_eq!(insert(&rig, &[7, 1]), (intermediate, 2));
    assert_eq!((form(&rig).nodes, form(&rig).height), (3, 2));
    for i in (3..32).step_by(2) {
        insert(&rig, &[7, i]);
    }
    // 0, 0 and more, 1, ... 15, and 16, ... 31; three entries above.
    let pull_up = 1 + multi_lines(17) + lines(16) + lines(3) + 1;
    assert_eq!(insert(&rig, &[7, 0, 0]), (pull_up, 2));
    assert_eq!((form(&rig).nodes, form(&rig).height), (4, 2));
}

/// A key that diverges above a full node goes into a new or existing node above it; the full node is not copied.
#[test]
fn full_nodes_stay() {
    let rig = Rig::create();
    for i in 0..32 {
        insert(&rig, &[7, i]);
    }
    assert_eq!(insert(&rig, &[9]), (1 + lines(2) + 1, 2), "an intermediate node");
    assert_eq!(
        insert(&rig, &[200]),
        (1 + lines(3) + 1, 2),
        "a normal insert above"
    );
    assert_eq!(
        insert(&rig, &[200, 1]),
        (1 + multi_lines(2) + 1, 2),
        "leaf-node pushdown"
    );
    assert_eq!((form(&rig).nodes, form(&rig).height), (3, 2));
}

/// A value of eight bytes is replaced in place by one store; any other by a new leaf.
#[test]
fn updates() {
    let rig = Rig::create();
    for i in 0..20 {
        insert(&rig, &[7, i]);
    }
    let update = |value: &[u8]| rig.cost(|index| index.update(&[7, 1], value));
    assert_eq!(update(b"87654321"), (1, 1));
    assert_eq!(update(b"another length"), (2, 2));
    assert_eq!(update(b"yet another length"), (2, 2));
}

/// A remove costs the copy and the slot above; a remove from a node of two entries replaces the node by the remaining
/// entry, with one store.
#[test]
fn removes() {
    let rig = Rig::create();
    for i in 0..32 {
        insert(&rig, &[7, i]);
    }
    for left in (2..32).rev() {
        assert_eq!(
            remove(&rig, &[7, left as u8]),
            (lines(left) + 1, 2),
            "{left} are left"
        );
    }
    assert_eq!(remove(&rig, &[7, 1]), (1, 1));
    assert_eq!(remove(&rig, &[7, 0]), (1, 1), "the last one");
    assert_eq!(form(&rig), Form::default());
}

/// A node of few entries is merged into its parent.
#[test]
fn small_nodes_merge_into_parent() {
    let rig = Rig::create();
    for i in 0..32 {
        insert(&rig, &[7, i * 2]);
    }
    insert(&rig, &[7, 1]);
    assert_eq!(form(&rig).nodes, 3);
    // The left node's entries are 0, 1, 2, 4, ... 30.
    assert_eq!(remove(&rig, &[7, 0]), (lines(16) + 1, 2));
    // 15 of the left node's 17 entries remain: they move into the root, which has two entries.
    assert_eq!(remove(&rig, &[7, 1]), (lines(16) + 1, 2));
    assert_eq!((form(&rig).nodes, form(&rig).height), (2, 2));
}

/// Reads, and writes that change nothing, persist nothing.
#[test]
fn reads_and_refusals_cost_nothing() {
    let rig = Rig::create();
    for i in 0..60 {
        insert(&rig, &[7, i]);
    }
    let (counts, ()) = rig.counts(|index| {
        let guard = heap::pin();
        assert!(index.get(&[7, 3], &guard).expect("no error").is_some());
        assert!(index.get(&[8, 3], &guard).expect("no error").is_none());
        assert_eq!(index.prefix(&[7], &guard).count(), 60);
        assert!(!index.insert(&[7, 3], VALUE).expect("no error"));
        assert!(!index.update(&[8], VALUE).expect("no error"));
        assert!(!index.remove(&[7, 3, 0]).expect("no error"));
    });
    assert_eq!((counts.node.write_backs, counts.node.fences), (0, 0));
}

/// Loads keys; returns write-backs and fences per insert on average, and the tree's form.
fn load(keys: usize, mut key: impl FnMut(&mut Random) -> Vec<u8>) -> (f64, f64, Form) {
    let rig = Rig::create();
    let mut random = Random::new(1);
    let (counts, ()) = rig.counts(|index| {
        for _ in 0..keys {
            index.upsert(&key(&mut random), VALUE).expect("no error");
        }
    });
    let each = |count: u64| count as f64 / keys as f64;
    let form = form(&rig);
    println!(
        "{:.2} write-backs, {:.2} fences; {form:?}",
        each(counts.node.write_backs),
        each(counts.node.fences)
    );
    (each(counts.node.write_backs), each(counts.node.fences), form)
}

/// For random integers the averages are below the paper's 7 write-backs (Fig. 4c) and at most 2 fences (paper: 5). The
/// height is at most 5; a key takes less than 40 bytes, 24 of them its leaf.
#[test]
fn averages_of_integers() {
    let (write_backs, fences, form) = load(1 << 17, |random| random.number().to_be_bytes().to_vec());
    assert!(write_backs < 7.0 && fences <= 2.0, "{write_backs}, {fences}");
    assert!(form.height <= 5, "{form:?}");
    let bytes = (form.node_bytes + form.leaf_bytes) as f64 / form.keys as f64;
    assert!(bytes < 24.0 + 16.0, "{bytes} bytes a key");
}

/// For strings of 24 bytes the same bounds hold, except that a key takes less than 56 bytes, 40 of them its leaf.
#[test]
fn averages_of_strings() {
    let printable = |random: &mut Random| (0..24).map(|_| b'!' + random.below(90) as u8).collect();
    let (write_backs, fences, form) = load(1 << 16, printable);
    assert!(write_backs < 7.0 && fences <= 2.0, "{write_backs}, {fences}");
    assert!(form.height <= 5, "{form:?}");
    let bytes = (form.node_bytes + form.leaf_bytes) as f64 / form.keys as f64;
    assert!(bytes < 40.0 + 16.0, "{bytes} bytes a key");
}

/// Keys that are each a prefix of the next: the height is at most keys / 16, and an insert's write-backs stay bounded.
#[test]
fn prefix_chains_keep_inserts_bounded() {
    let rig = Rig::create();
    let mut max_write_backs = 0;
    for len in 0..1500 {
        let (counts, _) = rig.counts(|index| index.insert(&vec![b'a'; len], VALUE).expect("no error"));
        assert!(counts.node.fences == 2, "key of {len} bytes");
        // The leaf's own lines do not count.
        max_write_backs =
            max_write_backs.max(counts.node.write_backs - (16 + len as u64).div_ceil(64).max(1));
    }
    let max_node_lines = (16 + 96 + 128 + 256) / 64 + 1;
    assert!(
        max_write_backs <= 2 * 8 * max_node_lines,
        "{max_write_backs} write-backs"
    );
    let form = form(&rig);
    assert!(form.height as u64 <= 1500 / 16, "{form:?}");
    assert!(rig.index().find_faults().found.is_empty());
}
