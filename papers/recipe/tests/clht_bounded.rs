//! Work on a whole table (searching it, copying it, trying to grow it) is not repeated at each write.

use heap::{Heap, MayBeFull};
use index::conformance::steps::{Stepping, Steps, ThreadStep, with_hook};
use index::conformance::{Random, settled};
use index::{Direction, Index, OnHeap};
use pmem::{Pool, PoolOptions};
use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::rc::Rc;
use wollemi_recipe::{Clht, Part};

fn heap_of(max_size: u64) -> Heap<Stepping> {
    let options = PoolOptions {
        max_size,
        page_size: 64 << 10,
        ..PoolOptions::default()
    };
    let pool = Pool::anonymous(&options, Stepping::machine(Steps)).expect("a pool");
    Heap::new(pool).expect("a heap")
}

/// Returns the number of words that this thread loads in `operation`.
fn loads_of(operation: impl FnOnce()) -> usize {
    let loads = Rc::new(Cell::new(0));
    let count = loads.clone();
    let hook = move |step| count.set(count.get() + usize::from(step == ThreadStep::Load));
    with_hook(hook, operation);
    loads.get()
}

/// Inserts random keys for slot 3 of the first directory: tables of slots 3, 7, 11 and 15 grow to `segment::LARGEST`.
fn insert(table: &Clht<Stepping>, random: &mut Random, count: usize) {
    for _ in 0..count {
        let mut keys = std::iter::repeat_with(|| random.number().to_le_bytes());
        let key = keys.find(|key| index::codec::checksum(key) >> 60 == 3);
        let key = key.expect("endless");
        assert!(table.insert(&key, b"12345678").expect("room"));
    }
}

/// Emptying a table of the largest size, in either order of its buckets, does not lock and search the whole table at
/// each removal.
#[test]
fn tables_are_emptied_in_either_direction() {
    for direction in [Direction::Forward, Direction::Reverse] {
        let table = Clht::create(&heap_of(1 << 26), b"table").expect("room");
        insert(&table, &mut Random::new(17), 1200);
        let (mut keys, all) = (Vec::new(), Bound::Unbounded);
        let mut visit = |key: &[u8], _: index::Value<'_>| {
            keys.push(key.to_vec());
            ControlFlow::Continue(())
        };
        let guard = heap::pin();
        let walked = table.walk(all, all, direction, &guard, &mut visit);
        walked.expect("sound");
        drop(guard);
        // A walk's order is that of the hash: so this is the hash, and all keys are in the slot that `insert` meant.
        let mut hashes: Vec<_> = keys.iter().map(|key| index::codec::checksum(key)).collect();
        if direction == Direction::Reverse {
            hashes.reverse();
        }
        assert!(hashes.is_sorted());
        let loads = loads_of(|| {
            for key in &keys {
                assert!(table.remove(key).expect("no error"));
            }
        });
        let mean = loads / keys.len();
        assert!(mean < 100, "{direction:?}: {mean} loads a removal");
    }
}

/// In a pool with room for overflow buckets but not for a directory, the inserts into a table that is due to grow do
/// not all try to grow it.
#[test]
fn growth_without_room_is_not_tried_by_each_insert() {
    let heap = heap_of(16 << 20);
    let table = Clht::create(&heap, b"table").expect("room");
    let mut random = Random::new(19);
    insert(&table, &mut random, 1500);
    // Records in chunks of a line.
    let lines = Clht::create(&heap, b"lines").expect("room");
    let keys: Vec<_> = (0_u64..8000).map(u64::to_le_bytes).collect();
    for key in &keys {
        assert!(lines.insert(key, &[7; 40]).expect("room"));
    }
    let others = Part::create(&heap, b"others").expect("room");
    let mut number = 0_u32;
    let mut fill = || {
        for len in [40_000, 10_000, 4000, 2000, 1000, 500, 200] {
            loop {
                number += 1;
                match others.insert(&number.to_be_bytes(), &vec![7; len]) {
                    Ok(inserted) => assert!(inserted),
                    Err(error) if error.is_full() => break,
                    Err(error) => panic!("{error}"),
                }
            }
        }
    };
    fill();
    // Half of the records go, and none of their pages becomes free as a whole.
    for key in keys.iter().step_by(2) {
        lines.upsert(key, b"in place").expect("room");
    }
    settled(&heap);
    fill();
    let loads = loads_of(|| insert(&table, &mut random, 2500));
    let mean = loads / 2500;
    let faults = table.check().expect("sound");
    assert_eq!((faults.found, faults.keys), (Vec::<String>::new(), 4000));
    // Overflow buckets are objects: with fewer the table has grown, and the test shows nothing.
    assert!(faults.objects > 700, "{} objects", faults.objects);
    assert!(mean < 100, "{mean} loads an insert");
}
