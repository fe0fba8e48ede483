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

/// Lines of a node with one mask and partial keys of a byte.
fn lines(entries: u64) -> u64 {
    (16 + 8 + entries.next_multiple_of(8) + 8 * entries).div_ceil(64)
}

/// The same with masks for eight bytes.
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

/// A key that parts above a full node is put beside it, and that node is not copied.
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

/// A remove costs the copy and the slot above; of two entries the other takes the node's place by one store.
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

/// Nodes of few entries are merged into the one above.
#[test]
fn few_entries_are_drawn_in() {
    let rig = Rig::create();
    for i in 0..32 {
        insert(&rig, &[7, i * 2]);
    }
    insert(&rig, &[7, 1]);
    assert_eq!(form(&rig).nodes, 3);
    // Of 0, 1, 2, 4, ... 30, in a node of two, 15 are left.
    assert_eq!(remove(&rig, &[7, 0]), (lines(16) + 1, 2));
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

/// For random integers: the paper's 7, 5 hold, and every insert has two fences. The tree is low, and a key takes at
/// most this many bytes, of which its leaf is 24.
#[test]
fn averages_of_integers() {
    let (write_backs, fences, form) = load(1 << 17, |random| random.number().to_be_bytes().to_vec());
    assert!(write_backs < 7.0 && fences <= 2.0, "{write_backs}, {fences}");
    assert!(form.height <= 5, "{form:?}");
    let bytes = (form.node_bytes + form.leaf_bytes) as f64 / form.keys as f64;
    assert!(bytes < 24.0 + 16.0, "{bytes} bytes a key");
}

/// For strings of 24 bytes: likewise.
#[test]
fn averages_of_strings() {
    let printable = |random: &mut Random| (0..24).map(|_| b'!' + random.below(90) as u8).collect();
    let (write_backs, fences, form) = load(1 << 16, printable);
    assert!(write_backs < 7.0 && fences <= 2.0, "{write_backs}, {fences}");
    assert!(form.height <= 5, "{form:?}");
    let bytes = (form.node_bytes + form.leaf_bytes) as f64 / form.keys as f64;
    assert!(bytes < 40.0 + 16.0, "{bytes} bytes a key");
}

/// Keys that part one after the other make a tree only as high as necessary, and no insert copies all of it.
#[test]
fn chains_do_not_make_inserts_dear() {
    let rig = Rig::create();
    let mut dearest = 0;
    for len in 0..1500 {
        let (counts, _) = rig.counts(|index| index.insert(&vec![b'a'; len], VALUE).expect("no error"));
        assert!(counts.node.fences == 2, "key of {len} bytes");
        // The leaf's own lines do not count.
        dearest = dearest.max(counts.node.write_backs - (16 + len as u64).div_ceil(64).max(1));
    }
    let most_of_a_node = (16 + 96 + 128 + 256) / 64 + 1;
    assert!(dearest <= 2 * 8 * most_of_a_node, "{dearest} write-backs");
    let form = form(&rig);
    assert!(form.height as u64 <= 1500 / 16, "{form:?}");
    assert!(rig.index().find_faults().found.is_empty());
}
