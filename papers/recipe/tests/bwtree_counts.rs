//! P-BwTree's rows of RECIPE's Fig. 4c, 4d: write-backs and fences of each write operation, exactly, and on average.
//!
//! The heap's own persists (one write-back and one fence per new page) are counted separately.

use index::Index;
use index::conformance::{Cost, Costs, Random};
use pmem::Counting;
use wollemi_recipe::BwTree;

type Rig = Costs<BwTree<Counting>>;

const VALUE: &[u8] = b"12345678";

/// A delta and the head: each a line and a fence.
const DELTA: Cost = (2, 2);

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

/// The cost of replacing a chain by a base of this many pairs, in a leaf that covers all keys: its lines, and the
/// head.
fn consolidation(pairs: u64) -> Cost {
    let bytes = 32 + 16 * pairs.div_ceil(64) + 16 * pairs;
    (bytes.div_ceil(64) + 1, 2)
}

fn add(a: Cost, b: Cost) -> Cost {
    (a.0 + b.0, a.1 + b.1)
}

/// Delta, then head: 2, 2. Every eighth write finds the chain long, and replaces it.
#[test]
fn integers() {
    let rig = Rig::create();
    for number in 1..=64 {
        let cost = match number % 8 {
            0 => add(DELTA, consolidation(number)),
            _ => DELTA,
        };
        assert_eq!(insert(&rig, number * 5 % 67), cost, "{number}");
    }
    let update = rig.cost(|index| index.update(&5_u64.to_be_bytes(), b"another."));
    assert_eq!(update, DELTA);
}

/// A removal changes only the head: 1, 1; and sets a flag if the head names another pair already.
#[test]
fn removals() {
    let rig = rig(0..64);
    assert_eq!(remove(&rig, 7), (1, 1));
    assert_eq!(remove(&rig, 9), (2, 2));
    assert_eq!(insert(&rig, 7), (3, 3));
    assert_eq!(remove(&rig, 7), (1, 1), "a delta's pair");
    assert_eq!(insert(&rig, 9), (3, 3));
    assert_eq!(insert(&rig, 7), DELTA);
    // The only key: its removal also replaces the chain by an empty base.
    let rig = rig_of_one();
    assert_eq!(
        remove(&rig, 1),
        (1 + 1 + 1 + 1, 1 + 1 + 2),
        "head, flag, base, head"
    );
}

fn rig_of_one() -> Rig {
    rig([1])
}

/// A record adds its line to the delta's fence.
#[test]
fn strings() {
    let rig = Rig::create();
    let text = |text: &str| rig.cost(|index| index.insert(text.as_bytes(), VALUE));
    assert_eq!(text("a key of 24 bytes, alone"), (3, 2));
    assert_eq!(text("another key of 24 bytes."), (3, 2));
    let update = rig.cost(|index| index.update(b"another key of 24 bytes.", b"another value"));
    assert_eq!(update, (3, 2));
    let removed = rig.cost(|index| index.remove(b"a key of 24 bytes, alone"));
    assert_eq!(
        removed,
        add((2, 2), consolidation(1)),
        "the base has no pair that counts"
    );
}

fn average(bytes: usize) -> (f64, f64) {
    let mut random = Random::new(7);
    let rig = Rig::create();
    let count = 60_000;
    let (counts, ()) = rig.counts(|index| {
        for _ in 0..count {
            let key = [random.number(), random.number(), random.number()].map(u64::to_be_bytes);
            index.upsert(&key.concat()[..bytes], VALUE).expect("room");
        }
    });
    let each = |all: u64| all as f64 / f64::from(count);
    let (write_backs, fences) = (each(counts.node.write_backs), each(counts.node.fences));
    println!("{write_backs:.2} write-backs, {fences:.2} fences an insert of {bytes} bytes");
    (write_backs, fences)
}

/// RECIPE Fig. 4c: 7 write-backs and 4 fences per insert of random integers; here at most 5 and 2.5.
#[test]
fn random_integers_on_average() {
    let (write_backs, fences) = average(8);
    assert!(write_backs <= 5.0 && fences <= 2.5);
}

/// RECIPE Fig. 4d: 8 write-backs and 6 fences per insert of strings of 24 bytes; here at most 6 and 2.5.
#[test]
fn random_strings_on_average() {
    let (write_backs, fences) = average(24);
    assert!(write_backs <= 6.0 && fences <= 2.5);
}
