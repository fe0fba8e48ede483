//! A pool that is full amid a structure modification: the insert fails, and nothing else changes.

use heap::Heap;
use index::Index;
use pmem::{Hardware, PWord, Persistent, Pool, PoolOptions, Purpose, persist_scope};
use wollemi_roart::{Full, KIND, Roart, tracer};

#[repr(C)]
struct Filler(PWord);

// SAFETY: one word.
unsafe impl Persistent for Filler {}

/// Takes all pages that are left, for good.
fn fill(heap: &Heap) {
    let full = persist_scope(heap.media(), Purpose::Node, |batch| {
        loop {
            match heap.draft(Filler(PWord::new(0)), 30_000, &batch) {
                Ok(draft) => std::mem::forget(draft),
                Err(error) => return error,
            }
        }
    });
    assert!(matches!(full, heap::Error::Full { .. }), "{full}");
}

/// A full leaf array is split into `groups` arrays below one node, for which there is no memory, nor perhaps for all
/// of the arrays: what was drafted comes back, however often it is tried.
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
        // Not what waits for its epoch, which other tests may hold up.
        let objects = || {
            let stats = heap.stats();
            stats.objects - stats.retired
        };
        let before = objects();
        let mut failed = 0;
        for i in 64..74 {
            match index.insert(&key(i), b"value") {
                Err(index::Error::Heap(heap::Error::Full { .. })) => failed += 1,
                other => assert!(other.unwrap()),
            }
        }
        if failed == 10 {
            assert_eq!(objects(), before, "{groups} groups");
        }
        let faults = index.check().unwrap();
        assert!(faults.found.is_empty(), "{:#?}", faults.found);
        assert_eq!(faults.keys, 74 - failed);
        // Nothing is left locked.
        for i in 0..64 {
            assert!(index.remove(&key(i)).unwrap());
        }
        assert!(groups == 2 || failed > 0);
    }
}

/// A pool that was filled to its last page and emptied takes writes as soon as it is open again: they wait for the
/// recovery that finds the room.
#[test]
fn a_write_waits_for_the_room_that_recovery_makes() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    let options = PoolOptions {
        page_size: 64 << 10,
        max_size: 16 << 20,
        ..PoolOptions::default()
    };
    let open = || {
        Heap::new(Pool::open_or_create(&path, &options, Hardware::detect()).expect("a pool")).expect("a heap")
    };
    let value = [7; 100];
    let mut count = 0_u32;
    {
        let heap = open();
        let index: Roart<Hardware, Full> = Roart::create(&heap, b"test").expect("room");
        while index.insert(&count.to_be_bytes(), &value).is_ok() {
            count += 1;
        }
        assert!(count > 50_000, "{count} keys fill the pool");
        for key in 0..count {
            assert!(index.remove(&key.to_be_bytes()).unwrap());
        }
    }
    let heap = open();
    let index: Roart<Hardware, Full> = Roart::open(&heap, b"test").expect("sound").expect("there");
    heap.recover(vec![(KIND, tracer())], 1).expect("recovery");
    for key in 0..count / 2 {
        assert!(
            index.insert(&key.to_be_bytes(), &value).expect("room"),
            "key {key}"
        );
    }
    assert!(index.check().unwrap().found.is_empty());
}
