//! A full pool: writes fail, with a clear error and no other effect; merges fail and leave everything as it was; and
//! when there is room again, they go on.

use heap::Heap;
use index::Index;
use index::conformance::settled;
use pmem::{Hardware, PWord, Pool, PoolOptions, Purpose, persist_scope};
use wollemi_dptree::{DpTree, DpTreeOptions, tracer};

fn options() -> DpTreeOptions {
    DpTreeOptions {
        merge_floor: 100,
        leaf_capacity: 64,
        partitions: 2,
        log_page: 1024,
        workers: 0,
        ..DpTreeOptions::default()
    }
}

fn in_memory() -> DpTree {
    let options_of_pool = PoolOptions {
        page_size: 64 << 10,
        max_size: 1 << 20,
        ..PoolOptions::default()
    };
    let heap =
        Heap::new(Pool::anonymous(&options_of_pool, Hardware::detect()).expect("memory")).expect("a heap");
    DpTree::create_with(&heap, b"test", options()).expect("an index")
}

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Inserts until the pool is full; returns the number of inserts.
fn fill(index: &DpTree, value: &[u8]) -> u64 {
    for i in 0.. {
        match index.insert(&key(i), value) {
            Ok(inserted) => assert!(inserted),
            Err(index::Error::Heap(heap::Error::Full { .. })) => return i,
            Err(other) => panic!("{other}"),
        }
    }
    unreachable!("a pool has an end")
}

fn assert_holds(index: &DpTree, keys: std::ops::Range<u64>, value: &[u8]) {
    let guard = heap::pin();
    for i in keys.clone() {
        let found = index.get(&key(i), &guard).expect("sound");
        assert_eq!(found.as_deref(), Some(value), "key {i}");
    }
    drop(guard);
    let faults = index.check().expect("sound");
    assert_eq!(faults.found, [""; 0]);
    assert_eq!(faults.keys, keys.end - keys.start);
}

/// A pool is filled to its last page: all acknowledged writes stay, reads go on, and failed writes have no effect.
#[test]
fn a_full_pool_keeps_what_it_has() {
    for value in [&b"8 bytes!"[..], b"a value of some other length"] {
        let index = in_memory();
        let count = fill(&index, value);
        assert!(count > 5000, "{count} keys fill the pool");
        assert_holds(&index, 0..count, value);
        for i in 0..200 {
            let full = index.insert(&key(count + i), &[7; 40_000]).expect_err("full");
            assert!(full.to_string().contains("room"), "{full}");
        }
        assert_holds(&index, 0..count, value);
    }
}

/// A merge for whose leaves there is no memory changes nothing, however often it is tried, and leaves nothing behind.
#[test]
fn a_merge_without_memory_changes_nothing() {
    let index = in_memory();
    for i in 0..99 {
        assert!(index.insert(&key(i), b"8 bytes!").expect("room"));
    }
    let heap = index.heap();
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let mut fillers = Vec::new();
        for tail in [30_000, 5000, 1400] {
            while let Ok(draft) = heap.draft(PWord::new(0), tail, &batch) {
                fillers.push(draft);
            }
        }
        let before = settled(heap).objects;
        for _ in 0..3 {
            let full = index.settle().expect_err("there is no room for a leaf");
            assert!(matches!(full, heap::Error::Full { .. }), "{full}");
            assert_eq!(settled(heap).objects, before);
            assert!(index.stats().failed.is_some());
            assert_holds(&index, 0..99, b"8 bytes!");
        }
        drop(fillers);
    });
    index.settle().expect("room");
    assert_eq!(index.stats().failed, None);
    assert_holds(&index, 0..99, b"8 bytes!");
    let audit = heap.audit(&vec![tracer()], 1).expect("an audit");
    assert!(audit.is_clean(), "{audit:?}");
}
