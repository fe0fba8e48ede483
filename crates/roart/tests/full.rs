//! A pool that is full during a structure modification: the insert fails, and nothing else changes.

use heap::Heap;
use index::Index;
use index::conformance::settled;
use pmem::{Hardware, PWord, Pool, PoolOptions, Purpose, persist_scope};
use wollemi_roart::{Full, Roart};

/// Takes all remaining pages, for good.
fn fill(heap: &Heap) {
    let full = persist_scope(heap.media(), Purpose::Node, |batch| {
        loop {
            match heap.draft(PWord::new(0), 30_000, &batch) {
                Ok(draft) => std::mem::forget(draft),
                Err(error) => return error,
            }
        }
    });
    assert!(matches!(full, heap::Error::Full { .. }), "{full}");
}

/// A full leaf array is split into `groups` arrays below one node, for which there is no memory, nor perhaps for all
/// of the arrays: the drafts are given back, however often it is tried.
#[test]
fn a_split_without_memory_leaves_nothing_behind() {
    for groups in [2, 6, 12, 20] {
        let options = PoolOptions {
            page_size: 64 << 10,
            max_size: 2 << 20,
            ..PoolOptions::default()
        };
        let heap = Heap::new(Pool::anonymous(&options, Hardware::detect()).expect("memory")).expect("a heap");
        let index: Roart<Hardware, Full> = Roart::create(&heap, b"test").expect("room");
        let key = |i: u8| [b'k', i % groups, i];
        for i in 0..64 {
            assert!(index.insert(&key(i), b"value").unwrap());
        }
        fill(&heap);
        let before = settled(&heap).objects;
        let mut failed = 0;
        for i in 64..74 {
            match index.insert(&key(i), b"value") {
                Err(index::Error::Heap(heap::Error::Full { .. })) => failed += 1,
                other => assert!(other.unwrap()),
            }
        }
        if failed == 10 {
            assert_eq!(settled(&heap).objects, before, "{groups} groups");
        }
        let faults = index.check().unwrap();
        assert!(faults.found.is_empty(), "{:#?}", faults.found);
        assert_eq!(faults.keys, 74 - failed);
        // No lock is left held.
        for i in 0..64 {
            assert!(index.remove(&key(i)).unwrap());
        }
        assert!(groups == 2 || failed > 0);
    }
}
