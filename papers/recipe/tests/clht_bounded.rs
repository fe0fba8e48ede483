//! The work on a whole table does not come back with each write.

use heap::Heap;
use index::conformance::steps::{Stepping, Steps, ThreadStep, with_hook};
use index::conformance::Random;
use index::{Direction, Index, OnHeap};
use pmem::{Pool, PoolOptions};
use std::cell::Cell;
use std::ops::{Bound, ControlFlow};
use std::rc::Rc;
use wollemi_recipe::Clht;

fn heap_of(max_size: u64) -> Heap<Stepping> {
    let options = PoolOptions {
        max_size,
        page_size: 64 << 10,
        ..PoolOptions::default()
    };
    let pool = Pool::anonymous(&options, Stepping::machine(Steps)).expect("a pool");
    Heap::new(pool).expect("a heap")
}

/// The number of words that this thread loads meanwhile.
fn loads_of(operation: impl FnOnce()) -> usize {
    let loads = Rc::new(Cell::new(0));
    let count = loads.clone();
    let hook = move |step| count.set(count.get() + usize::from(step == ThreadStep::Load));
    with_hook(hook, operation);
    loads.get()
}

/// Inserts keys for the fourth slot of the first directory, whose tables become the largest.
fn insert(table: &Clht<Stepping>, random: &mut Random, count: usize) {
    for _ in 0..count {
        let mut keys = std::iter::repeat_with(|| random.number().to_le_bytes());
        let key = keys.find(|key| index::codec::checksum(key) >> 60 == 3);
        let key = key.expect("endless");
        assert!(table.insert(&key, b"12345678").expect("room"));
    }
}

/// A table of the largest size is emptied in either order of its buckets: it is not copied to find that it has many
/// keys left.
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
        let loads = loads_of(|| {
            for key in &keys {
                assert!(table.remove(key).expect("no error"));
            }
        });
        let mean = loads / keys.len();
        eprintln!("{direction:?}: {mean} loads a removal");
        assert!(mean < 100, "{direction:?}: {mean} loads a removal");
    }
}
