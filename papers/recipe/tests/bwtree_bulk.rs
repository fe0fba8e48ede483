//! P-BwTree built from sorted pairs: its load. What a pair costs is tested in `builds`.

use index::conformance::Costs;
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
