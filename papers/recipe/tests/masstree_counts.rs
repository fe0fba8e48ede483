//! P-Masstree's rows of RECIPE's Fig. 4c, 4d: write-backs and fences of each write operation, exactly, and on average.
//!
//! The heap's own persists (one write-back and one fence per new page) are counted separately.

use index::Index;
use index::conformance::{Cost, Costs, Random};
use pmem::Counting;
use wollemi_recipe::Masstree;

type Rig = Costs<Masstree<Counting>>;

const VALUE: &[u8] = b"12345678";

fn insert(rig: &Rig, number: u64) -> Cost {
    rig.cost(|index| index.insert(&number.to_be_bytes(), VALUE))
}

fn remove(rig: &Rig, number: u64) -> Cost {
    rig.cost(|index| index.remove(&number.to_be_bytes()))
}

/// An index with these keys.
fn rig(numbers: impl IntoIterator<Item = u64>) -> Rig {
    let rig = Rig::create();
    for number in numbers {
        insert(&rig, number);
    }
    rig
}

/// Entry, then permutation: 2, 2 for each of a border's entries. Update and remove: 1, 1.
#[test]
fn integers() {
    let rig = Rig::create();
    for number in [5, 3, 9, 7, 1, 2, 8, 4, 6, 12, 11, 10, 0] {
        assert_eq!(insert(&rig, number), (2, 2), "{number}");
    }
    let update = rig.cost(|index| index.update(&7_u64.to_be_bytes(), b"another."));
    assert_eq!(update, (1, 1));
    assert_eq!(remove(&rig, 7), (1, 1));
    assert_eq!(insert(&rig, 7), (2, 2));
}

/// A split: the sibling's lines, its link, the permutation, each with a fence; then a new root (two lines, and the
/// link to it) or a separator; then the key as usual.
#[test]
fn splits() {
    let rig = rig((0..13).map(|number| 2 * number));
    assert_eq!(
        insert(&rig, 5),
        (3 + 1 + 1 + 3 + 2, 3 + 2 + 2),
        "seven of 13 move"
    );
    assert_eq!(insert(&rig, 7), (2, 2));
    // Ascending keys leave the node full except for one, which moves.
    let rig = rig_of_ascending(13);
    assert_eq!(
        insert(&rig, 13),
        (1 + 1 + 1 + 3 + 2, 3 + 2 + 2),
        "with a new root"
    );
    for number in 14..25 {
        assert_eq!(insert(&rig, number), (2, 2), "{number}");
    }
    assert_eq!(
        insert(&rig, 25),
        (1 + 1 + 1 + 2 + 2, 3 + 2 + 2),
        "with a separator"
    );
}

fn rig_of_ascending(count: u64) -> Rig {
    rig(0..count)
}

/// The removal of a border's last key: the permutation, the parent's, and the left sibling's link. The removal of the
/// last border but one also makes the last one the root.
#[test]
fn removals_of_nodes() {
    let rig = rig_of_ascending(27);
    // Borders of 12, 12 and 3.
    assert_eq!((remove(&rig, 26), remove(&rig, 25)), ((1, 1), (1, 1)));
    assert_eq!(remove(&rig, 24), (3, 3));
    for number in 13..24 {
        assert_eq!(remove(&rig, number), (1, 1));
    }
    assert_eq!(remove(&rig, 12), (4, 4));
}

/// A leaf adds its line to the entry's first fence. Changing the kind of an entry that held a value costs one more
/// line.
#[test]
fn strings() {
    let rig = Rig::create();
    let text = |rig: &Rig, text: &str| rig.cost(|index| index.insert(text.as_bytes(), VALUE));
    assert_eq!(text(&rig, "a long key"), (3, 2), "in the line of the kinds");
    assert_eq!(text(&rig, "b long key"), (4, 2));
    // Below the same slice: two lines of the new layer's border, which has the old leaf's link and the new value, and
    // the entry's link.
    assert_eq!(
        text(&rig, "a long kex"),
        (2 + 1, 2),
        "the new key ends in the new layer: its value is in place"
    );
}

/// RECIPE Fig. 4c: 3 write-backs and 5 fences per insert of random integers; here at most 3 of each.
#[test]
fn random_integers_on_average() {
    let mut random = Random::new(7);
    let rig = Rig::create();
    let count = 60_000;
    let (counts, ()) = rig.counts(|index| {
        for _ in 0..count {
            index.upsert(&random.number().to_be_bytes(), VALUE).expect("room");
        }
    });
    let (write_backs, fences) = (counts.node.write_backs, counts.node.fences);
    println!("{write_backs} write-backs, {fences} fences for {count} inserts");
    assert!(write_backs <= 3 * count && fences <= 3 * count);
}

/// RECIPE Fig. 4d: 4 write-backs and 7 fences per insert of strings of 24 bytes; here at most 4 and 3.
#[test]
fn random_strings_on_average() {
    let mut random = Random::new(7);
    let rig = Rig::create();
    let count = 60_000;
    let (counts, ()) = rig.counts(|index| {
        for _ in 0..count {
            let key = [random.number(), random.number(), random.number()].map(u64::to_be_bytes);
            index.upsert(&key.concat(), VALUE).expect("room");
        }
    });
    let (write_backs, fences) = (counts.node.write_backs, counts.node.fences);
    println!("{write_backs} write-backs, {fences} fences for {count} inserts");
    assert!(write_backs <= 4 * count && fences <= 3 * count);
}
