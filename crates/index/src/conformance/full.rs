//! Full pools.

use super::settled;
use super::store::{Entries, IndexInFile, folder};
use crate::{Error, Index, OnHeap};
use heap::Heap;
use pmem::{Hardware, PWord, Pool, PoolOptions, Purpose, persist_scope};

/// Takes all remaining pages, and the free space in those of smaller objects, for good.
fn fill(heap: &Heap) {
    for len in [30_000, 15_000, 8_000, 4_000]
        .into_iter()
        .chain((0..3_000).rev().step_by(16))
    {
        let full = persist_scope(heap.media(), Purpose::Node, |batch| {
            loop {
                match heap.draft(PWord::new(0), len, &batch) {
                    Ok(draft) => std::mem::forget(draft),
                    Err(error) => return error,
                }
            }
        });
        assert!(matches!(full, heap::Error::Full { .. }), "{full}");
    }
}

/// In a full pool an insert fails, whatever it would have built, and changes nothing else; removes succeed.
pub fn inserts_without_memory_leave_nothing_behind<I: OnHeap<Media = Hardware>>() {
    for children in [1, 2, 4, 15, 16, 17, 47, 48, 49, 100] {
        insert_without_memory::<I>(children, b"value", b"a value of its own");
        insert_without_memory::<I>(children, b"8 bytes!", b"8 bytes.");
        insert_without_memory::<I>(children, b"8 bytes!", b"a value of its own");
    }
}

fn insert_without_memory<I: OnHeap<Media = Hardware>>(children: u8, old: &[u8], new: &[u8]) {
    let options = PoolOptions {
        page_size: 64 << 10,
        max_size: 2 << 20,
        ..PoolOptions::default()
    };
    let heap = Heap::new(Pool::anonymous(&options, Hardware::detect()).expect("memory")).expect("a heap");
    let index = I::create(&heap, b"test").expect("room");
    let mut model = Entries::new();
    for byte in 0..children {
        let key = vec![b'k', byte, 7];
        assert!(index.insert(&key, old).expect("room"));
        model.insert(key, old.to_vec());
    }
    fill(&heap);
    let mut failed = 0;
    // Chunks in the open pages are still available.
    for i in 0..5000u16 {
        if failed == 60 {
            break;
        }
        // Into the node, beside a leaf, and above the node.
        let [high, low] = i.to_be_bytes();
        let key = [
            &[b'k', 100 + low % 64, high, low][..],
            &[b'k', 0, high, low],
            &[b'j', high, low],
        ];
        let key = key[usize::from(i % 3)].to_vec();
        match index.insert(&key, new) {
            Err(Error::Heap(heap::Error::Full { .. })) => {
                // Repeated between two counts: what was retired before is free by now.
                let before = settled(&heap).objects;
                match index.insert(&key, new) {
                    Err(Error::Heap(heap::Error::Full { .. })) => {
                        failed += 1;
                        assert_eq!(settled(&heap).objects, before, "{children} children, insert {i}");
                    }
                    Ok(true) => drop(model.insert(key, new.to_vec())),
                    other => panic!("{other:?}"),
                }
            }
            Ok(true) => drop(model.insert(key, new.to_vec())),
            other => panic!("{other:?}"),
        }
    }
    assert!(failed > 0, "no insert found the pool full");
    let faults = index.check().expect("no error");
    assert_eq!(faults.found, [""; 0]);
    assert_eq!(faults.keys, model.len() as u64);
    // No lock is left held.
    for key in model.keys() {
        assert!(index.remove(key).expect("no memory needed"));
    }
    assert_eq!(index.check().expect("no error").found, [""; 0]);
}

/// A pool that was filled to its last page and emptied accepts writes as soon as it is reopened: they wait for
/// recovery to find the room.
pub fn a_write_waits_for_the_room_that_recovery_makes<I: OnHeap<Media = Hardware>>() {
    let folder = folder();
    let path = folder.path().join("pool");
    let options = PoolOptions {
        page_size: 64 << 10,
        max_size: 8 << 20,
        ..PoolOptions::default()
    };
    let open = || {
        Heap::new(Pool::open_or_create(&path, &options, Hardware::detect()).expect("a pool")).expect("a heap")
    };
    let value = [7; 100];
    let mut count = 0_u32;
    {
        let heap = open();
        let index = I::create(&heap, b"test").expect("room");
        while index.insert(&count.to_be_bytes(), &value).is_ok() {
            count += 1;
        }
        assert!(count > 10_000, "{count} keys fill the pool");
        for key in 0..count {
            assert!(index.remove(&key.to_be_bytes()).expect("no error"));
        }
    }
    let heap = open();
    let index = I::open(&heap, b"test").expect("sound").expect("there");
    heap.recover(vec![I::tracer()], 1).expect("recovery");
    for key in 0..count / 2 {
        assert!(
            index.insert(&key.to_be_bytes(), &value).expect("room"),
            "key {key}"
        );
    }
    assert!(index.check().expect("no error").found.is_empty());
}

/// An empty store is sound, and stays so when it is closed and opened.
pub fn an_empty_index_is_sound<I: OnHeap<Media = Hardware>>() {
    let mut store = IndexInFile::<I>::create();
    for _ in 0..3 {
        store.compare(&Entries::new());
        store = store.crashed().reopen();
    }
}
