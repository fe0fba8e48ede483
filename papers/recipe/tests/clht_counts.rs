//! P-CLHT's write-backs and fences: each bucket case exactly, and the averages of a load (RECIPE Table 4).
//!
//! The heap's own persists are counted separately.

use index::conformance::{Cost, Costs, Random, settled};
use index::{Index, OnHeap};
use pmem::Counting;
use wollemi_recipe::Clht;

type Rig = Costs<Clht<Counting>>;

const VALUE: &[u8] = b"12345678";

/// Keys of the first bucket, in small tables: those with the smallest hashes of many, in the order of their hashes, in
/// which a larger table takes them over.
fn keys_of_one_bucket(count: usize) -> Vec<[u8; 8]> {
    let hash = |key: &[u8; 8]| index::codec::checksum(key);
    let all = (0_u64..).map(u64::to_le_bytes);
    let few = all.filter(|key| hash(key) < u64::MAX / 64);
    let mut keys: Vec<_> = few.take(count).collect();
    keys.sort_by_key(hash);
    keys
}

fn insert(rig: &Rig, key: &[u8], value: &[u8]) -> Cost {
    rig.cost(|index| index.insert(key, value))
}

fn update(rig: &Rig, key: &[u8], value: &[u8]) -> Cost {
    rig.cost(|index| index.update(key, value))
}

fn remove(rig: &Rig, key: &[u8]) -> Cost {
    rig.cost(|index| index.remove(key))
}

/// The very first key: a table of two lines, and the slot that leads to it. Then a pair in place costs only its
/// bucket's line, until the bucket is full; an overflow bucket costs its own line and that of the word that leads to
/// it. With that one the smallest table grows: the overflow bucket of the new one and its eight lines, with one fence, and
/// the slot.
#[test]
fn inserts() {
    let rig = Rig::create();
    let keys = keys_of_one_bucket(10);
    let costs: Vec<_> = keys.iter().map(|key| insert(&rig, key, VALUE)).collect();
    let (table, slot, bucket) = ((2 + 1, 2), (1, 1), (2, 2));
    let grows = (bucket.0 + 1 + 8 + 1, bucket.1 + 2);
    assert_eq!(costs[..4], [table, slot, slot, grows]);
    assert_eq!(costs[4..], [slot, slot, bucket, slot, slot, bucket]);
}

/// A value in place is replaced in place, one of any other length by another record.
#[test]
fn updates() {
    let rig = Rig::create();
    let keys = keys_of_one_bucket(4);
    keys.iter().for_each(|key| _ = insert(&rig, key, VALUE));
    for key in &keys {
        assert_eq!(update(&rig, key, b"87654321"), (1, 1));
    }
    // A record of 8 + 13 bytes: its line, and the bucket's. The pair moves to another slot, if there is one.
    assert_eq!(update(&rig, &keys[3], b"another value"), (2, 2));
    assert_eq!(update(&rig, &keys[3], b"a third value"), (2, 2));
    // A full bucket: an overflow bucket takes the pair over, by the store that removes it from its slot.
    assert_eq!(update(&rig, &keys[0], b"another value"), (3, 3));
    assert_eq!(update(&rig, &keys[1], VALUE), (1, 1));
}

/// A removal is one store: of the bucket's word, or, for the last pair of an overflow bucket, of the word of the bucket
/// before it.
#[test]
fn removals() {
    let rig = Rig::create();
    let keys = keys_of_one_bucket(4);
    keys.iter().for_each(|key| _ = insert(&rig, key, VALUE));
    assert_eq!(remove(&rig, &keys[3]), (1, 1));
    assert_eq!(remove(&rig, &keys[0]), (1, 1));
    assert_eq!(remove(&rig, &keys[1]), (1, 1));
    // With the very last key the table is removed: the slot that led to it.
    assert_eq!(remove(&rig, &keys[2]), (2, 2));
}

/// Keys and values of any other length cost a record in addition: its lines, and a fence.
#[test]
fn records_cost_their_lines_and_a_fence() {
    let rig = Rig::create();
    insert(&rig, b"first", b"value");
    for len in [0, 1, 20, 40, 100, 1000] {
        let key = vec![b'k'; 9];
        let value = vec![b'v'; len];
        let lines = (16 + key.len() + len).div_ceil(64) as u64;
        let (write_backs, fences) = insert(&rig, &key, &value);
        // A chunk may begin anywhere in a line.
        assert!(
            (lines..=lines + 1).contains(&(write_backs - 1)),
            "{write_backs} for {len}"
        );
        assert_eq!(fences, 2);
        assert_eq!(remove(&rig, &key), (1, 1));
    }
}

/// A load from an empty index, with all its rehashing.
fn load(count: u64) -> (f64, f64) {
    let rig = Rig::create();
    let mut random = Random::new(7);
    let (counts, ()) = rig.counts(|index| {
        for _ in 0..count {
            let key = random.number().to_le_bytes();
            assert!(index.insert(&key, VALUE).expect("room"));
        }
    });
    let of = |number: u64| number as f64 / count as f64;
    (of(counts.node.write_backs), of(counts.node.fences))
}

/// The averages of a load with rehashing, at various points in the growth of tables.
#[test]
fn averages() {
    for count in [20_000, 50_000, 100_000, 200_000, 400_000] {
        let (write_backs, fences) = load(count);
        eprintln!("{count}: {write_backs:.3} write-backs, {fences:.3} fences an insert");
        assert!(write_backs <= 2.1 && fences <= 1.3);
    }
}

/// A pair in place takes less than 44 bytes of the pool at all sizes tried, and less than 38.5 on average over them.
#[test]
fn bytes_of_a_key() {
    let rig = Rig::create();
    let mut sum = 0.0;
    let mut random = Random::new(11);
    for i in 1..=800_000 {
        let key = random.number().to_le_bytes();
        assert!(rig.index().insert(&key, VALUE).expect("room"));
        if i % 100_000 == 0 {
            let used = settled(rig.index().heap()).used as f64 / f64::from(i);
            eprintln!("{i}: {used:.1} bytes a key");
            assert!(used < 44.0, "{used:.1} bytes a key of {i}");
            sum += used / 8.0;
        }
    }
    assert!(sum < 38.5, "{sum:.1} bytes a key on average");
}
