//! P-BwTree in a full pool.

use heap::Heap;
use index::conformance::Entries;
use index::{Index, OnHeap};
use pmem::{Hardware, Media, PWord, Pool, PoolOptions, Purpose, persist_scope};
use std::ops::Bound;
use wollemi_recipe::BwTree;

/// One test at a time: in a heap with little room, the guards of one would delay the reclamation of the other's
/// retired objects.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

const NAME: &[u8] = b"bwtree";

fn heap_of<M: Media>(media: M, pages: u64) -> Heap<M> {
    let options = PoolOptions {
        page_size: 64 << 10,
        max_size: pages * (64 << 10),
        ..PoolOptions::default()
    };
    Heap::new(Pool::anonymous(&options, media).expect("memory")).expect("a heap")
}

/// Runs `f` while no allocation succeeds.
fn while_full<M: Media>(heap: &Heap<M>, f: impl FnOnce()) {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let mut taken = Vec::new();
        for len in [30_000, 15_000, 8_000, 4_000]
            .into_iter()
            .chain((0..3_000).rev().step_by(16))
        {
            while let Ok(draft) = heap.draft(PWord::new(0), len, &batch) {
                taken.push(draft);
            }
        }
        f();
    });
}

/// Reads, and scans from each of these keys, find the model's entries; and the structure is sound.
fn compare<I: Index>(index: &I, model: &Entries, keys: &[Vec<u8>]) {
    let guard = heap::pin();
    for key in keys {
        let found = index.get(key, &guard).expect("no error");
        assert_eq!(found.as_deref(), model.get(key).map(Vec::as_slice), "{key:?}");
        let next = index.range(Bound::Included(key), Bound::Unbounded, &guard).next();
        let next = next.map(|entry| entry.expect("no error").0.to_vec());
        assert_eq!(
            next.as_ref(),
            model.range(key.clone()..).next().map(|(key, _)| key)
        );
    }
    let all = index.range(Bound::Unbounded, Bound::Unbounded, &guard);
    let all: Vec<Vec<u8>> = all.map(|entry| entry.expect("no error").0.to_vec()).collect();
    assert!(all.iter().eq(model.keys()));
    assert_eq!(index.check().expect("no error").found, [""; 0]);
}

/// Keys of 8 bytes, and longer ones with common prefixes.
fn key(number: u64) -> Vec<u8> {
    match number % 3 {
        0 => number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes().to_vec(),
        1 => [&b"a common beginning"[..], &number.to_be_bytes()].concat(),
        _ => vec![b'x'; 1 + number as usize % 20],
    }
}

/// A leaf that drops its removed pairs while no allocation succeeds, with or without the mark of its split below
/// them, has no pair for any reader; keys can be inserted when there is room, and nothing is left over at the end.
#[test]
fn a_leaf_that_lets_go_has_nothing() {
    let _alone = alone();
    let heap = heap_of(Hardware::detect(), 64);
    let index = BwTree::<Hardware, 8>::create(&heap, NAME).expect("room");
    let empty = index::conformance::settled(&heap).objects;
    let mut model = Entries::new();
    let keys: Vec<Vec<u8>> = (0..200).map(key).collect();
    for key in &keys {
        index.upsert(key, b"the value").expect("room");
        model.insert(key.clone(), b"the value".to_vec());
    }
    while_full(&heap, || {
        let before = heap.stats().objects;
        for (i, key) in keys.iter().enumerate() {
            assert_eq!(
                index.remove(key).expect("no memory needed"),
                model.remove(key).is_some()
            );
            if i % 20 == 0 {
                compare(&index, &model, &keys);
            }
        }
        compare(&index, &model, &keys);
        let left = index::conformance::settled(&heap).objects;
        assert!(left + 150 < before, "{before} objects, and {left} when emptied");
    });
    for key in keys.iter().step_by(3) {
        index.upsert(key, b"8 bytes!").expect("room");
        model.insert(key.clone(), b"8 bytes!".to_vec());
    }
    compare(&index, &model, &keys);
    for key in model.keys() {
        assert!(index.remove(key).expect("no error"));
    }
    compare(&index, &Entries::new(), &keys);
    assert_eq!(index::conformance::settled(&heap).objects, empty);
}

/// Runs `f` while objects of more than `longest` bytes cannot be allocated, but small ones of any length can.
fn while_short<M: Media>(heap: &Heap<M>, longest: usize, f: impl FnOnce()) {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let mut taken = Vec::new();
        let mut free = Vec::new();
        for len in (0..longest).step_by(32) {
            // A part stays in use, so that no page becomes one of longer objects.
            for i in 0..400 {
                let draft = heap.draft(PWord::new(0), len, &batch).expect("room");
                if i % 8 == 0 { &mut taken } else { &mut free }.push(draft);
            }
        }
        for len in [30_000, 15_000, 8_000, 4_000, 2_000]
            .into_iter()
            .chain((longest..1_500).rev().step_by(16))
        {
            while let Ok(draft) = heap.draft(PWord::new(0), len, &batch) {
                taken.push(draft);
            }
        }
        drop(free);
        f();
    });
}

/// Leaves that split while their parent finds no room for a longer base do not use up the room for removals: when all
/// keys are removed, keys can be inserted wherever they were, and when there is room nothing is left over.
#[test]
fn a_parent_without_room_keeps_no_leaf_from_taking_keys() {
    let _alone = alone();
    // Keys in records make long separators, and entries of leaves that are as short as others.
    let key = |number: usize| [&b"twenty bytes in common, "[..], &(number as u16).to_be_bytes()].concat();
    for step in [1, 7, 37] {
        let heap = heap_of(Hardware::detect(), 64);
        let index = BwTree::<Hardware, 8>::create(&heap, NAME).expect("room");
        let empty = index::conformance::settled(&heap).objects;
        let keys: Vec<Vec<u8>> = (0..600).map(|i| key(i * step % 600)).collect();
        let mut model = Entries::new();
        for key in &keys[..60] {
            index.upsert(key, b"8 bytes!").expect("room");
            model.insert(key.clone(), b"8 bytes!".to_vec());
        }
        while_short(&heap, 384, || {
            for key in &keys[60..] {
                if index.upsert(key, b"8 bytes!").is_ok() {
                    model.insert(key.clone(), b"8 bytes!".to_vec());
                }
            }
            assert!(model.len() > 100, "{} keys", model.len());
            compare(&index, &model, &keys);
            for key in &keys {
                let removed = index.remove(key).expect("no memory needed");
                assert_eq!(removed, model.remove(key).is_some());
            }
            compare(&index, &Entries::new(), &keys);
            for key in &keys {
                index.upsert(key, b"8 bytes!").expect("the keys are gone");
                assert!(index.remove(key).expect("no memory needed"));
            }
        });
        for key in &keys {
            index.upsert(key, b"8 bytes!").expect("room");
        }
        for key in &keys {
            assert!(index.remove(key).expect("no error"));
        }
        compare(&index, &Entries::new(), &keys);
        assert_eq!(index::conformance::settled(&heap).objects, empty);
    }
}
