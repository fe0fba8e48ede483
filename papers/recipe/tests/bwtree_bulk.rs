//! P-BwTree built from sorted pairs: its costs and its load.

use index::conformance::{Costs, Random};
use index::{Bulk, Index, OnHeap, Parts, Sorted};
use pmem::Counting;
use wollemi_recipe::BwTree;

type Rig = Costs<BwTree<Counting>>;

const VALUE: &[u8] = b"12345678";

/// Builds an index of these keys, which it sorts.
fn build(heap: &heap::Heap<Counting>, mut keys: Vec<Vec<u8>>) -> BwTree<Counting> {
    keys.sort();
    let mut pairs = Sorted::new(keys.iter().map(|key| (key, VALUE)));
    let built = BwTree::build(heap, b"built", Parts::new(&mut pairs));
    built.expect("room for ascending keys")
}

/// Nodes have seven eighths of their maximum of 64 entries: a leaf splits after two chains of deltas, not after one.
#[test]
fn a_leaf_has_room_for_one_chain() {
    const LOAD: u64 = 56;
    let rig = Rig::create();
    let number = |i: u64| (100 * i).to_be_bytes().to_vec();
    let index = build(rig.index().heap(), (0..LOAD * LOAD).map(number).collect());
    let nodes = || {
        let faults = index.find_faults();
        assert_eq!(faults.found, [""; 0]);
        faults.objects - 1
    };
    assert_eq!(nodes(), LOAD + 1, "leaves below one inner node");
    for i in 1..=16_u64 {
        assert_eq!(nodes(), LOAD + 1, "before insert {i}");
        assert!(index.insert(&i.to_be_bytes(), VALUE).expect("room"));
    }
    assert_eq!(nodes(), LOAD + 2);
}

/// Builds 60,000 pairs with random keys; returns write-backs and fences of a pair on average.
fn average(bytes: usize) -> (f64, f64) {
    const COUNT: usize = 60_000;
    let mut random = Random::new(7);
    let key = |_| {
        [random.number(), random.number(), random.number()]
            .map(u64::to_be_bytes)
            .concat()[..bytes]
            .to_vec()
    };
    let keys: Vec<Vec<u8>> = (0..COUNT).map(key).collect();
    let rig = Rig::create();
    let (counts, index) = rig.counts(|index| build(index.heap(), keys));
    assert_eq!(
        (index.find_faults().found.len(), index.find_faults().keys),
        (0, COUNT as u64)
    );
    let each = |all: u64| all as f64 / COUNT as f64;
    let (write_backs, fences) = (each(counts.node.write_backs), each(counts.node.fences));
    println!("{write_backs:.3} write-backs, {fences:.5} fences a pair with a key of {bytes} bytes");
    (write_backs, fences)
}

/// A leaf of 56 pairs takes 16 lines, its cell's among them, and a row of 16 leaves one fence.
#[test]
fn integers_on_average() {
    let (write_backs, fences) = average(8);
    assert!(write_backs <= 0.32 && fences <= 0.0013);
}

/// A record of 48 bytes takes one line more; those of a row take one fence more.
#[test]
fn strings_on_average() {
    let (write_backs, fences) = average(24);
    assert!(write_backs <= 1.32 && fences <= 0.0025);
}
