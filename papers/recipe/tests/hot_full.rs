//! Keys that were removed in a full pool leave empty slots: reads, scans and later writes get past them.

use heap::Heap;
use index::conformance::Entries;
use index::{Index, OnHeap};
use pmem::{Hardware, PWord, Pool, PoolOptions, Purpose, persist_scope};
use std::ops::Bound;
use wollemi_recipe::Hot;

/// Runs `f` while the pool is full.
fn while_full(heap: &Heap, f: impl FnOnce()) {
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

fn compare(index: &Hot, model: &Entries, keys: &[Vec<u8>]) {
    let guard = heap::pin();
    for key in keys {
        let found = index.get(key, &guard).expect("no error");
        assert_eq!(
            found.as_deref(),
            model.get(key).map(Vec::as_slice),
            "{}",
            key.escape_ascii()
        );
        let bound = (Bound::Included(key.as_slice()), Bound::Unbounded);
        let up = index
            .range(bound.0, bound.1, &guard)
            .next()
            .map(|entry| entry.expect("no error").0.to_vec());
        assert_eq!(
            up.as_ref(),
            model.range(key.clone()..).next().map(|(key, _)| key),
            "from {}",
            key.escape_ascii()
        );
        let down = index
            .range(bound.1, bound.0, &guard)
            .next_back()
            .map(|entry| entry.expect("no error").0.to_vec());
        assert_eq!(
            down.as_ref(),
            model.range(..=key.clone()).next_back().map(|(key, _)| key)
        );
    }
    let all: Vec<Vec<u8>> = index
        .range(Bound::Unbounded, Bound::Unbounded, &guard)
        .map(|entry| entry.expect("no error").0.to_vec())
        .collect();
    assert!(all.iter().eq(model.keys()));
    assert_eq!(index.check().expect("no error").found, [""; 0]);
}

/// Removes succeed and leave empty slots; present keys are found, starting from every former key; absent keys are
/// refused without room; and when there is room again keys can be inserted, and no empty slot stays in their way.
#[test]
fn empty_slots_are_passed() {
    let options = PoolOptions {
        page_size: 64 << 10,
        max_size: 4 << 20,
        ..PoolOptions::default()
    };
    let heap = Heap::new(Pool::anonymous(&options, Hardware::detect()).expect("memory")).expect("a heap");
    let index = Hot::create(&heap, b"hot").expect("room");
    let keys: Vec<Vec<u8>> = (0..400_u32)
        .map(|i| match i % 3 {
            0 => i.wrapping_mul(0x9e37_79b9).to_be_bytes().to_vec(),
            1 => vec![b'k', (i / 3) as u8],
            _ => [&b"k"[..], &vec![b'x'; i as usize / 3]].concat(),
        })
        .collect();
    let mut model = Entries::new();
    for key in &keys {
        index.upsert(key, b"8 bytes!").expect("room");
        model.insert(key.clone(), b"8 bytes!".to_vec());
    }
    while_full(&heap, || {
        // A guard keeps removed objects from making room.
        let _guard = heap::pin();
        for key in keys.iter().step_by(2) {
            assert_eq!(
                index.remove(key).expect("no memory needed"),
                model.remove(key).is_some()
            );
        }
        let form = index.form().expect("sound");
        assert!(
            form.entries > form.keys + form.nodes - 1,
            "no slot is empty: {form:?}"
        );
        compare(&index, &model, &keys);
        for key in keys.iter().step_by(2) {
            assert!(!index.update(key, b"8 bytes.").expect("no memory needed"));
            assert!(!index.remove(key).expect("no memory needed"));
        }
    });
    // Keys whose paths end at the empty slots, but which belong elsewhere.
    for key in keys.iter().step_by(2) {
        for (byte, bit) in [(0, 0x01), (0, 0x10), (1, 0x02), (1, 0x40)] {
            let mut other = key.clone();
            if let Some(byte) = other.get_mut(byte) {
                *byte ^= bit;
            }
            index.upsert(&other, b"8 bytes!").expect("room");
            model.insert(other, b"8 bytes!".to_vec());
        }
    }
    compare(&index, &model, &keys);
    for key in keys.iter().step_by(4) {
        index.upsert(key, b"8 bytes!").expect("room");
        model.insert(key.clone(), b"8 bytes!".to_vec());
    }
    compare(&index, &model, &keys);
    for key in model.keys() {
        assert!(index.remove(key).expect("no error"));
    }
    compare(&index, &Entries::new(), &keys);
}
