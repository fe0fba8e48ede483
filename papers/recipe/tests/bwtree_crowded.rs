//! P-BwTree in a full pool, where no other test of the process delays the reclamation of retired objects.

use heap::{Heap, MayBeFull};
use index::{Index, OnHeap};
use pmem::{Hardware, PWord, Pool, PoolOptions, Purpose, persist_scope};
use std::collections::BTreeMap;
use wollemi_recipe::BwTree;

/// The contents are as in the model, and the structure is sound.
fn compare(index: &BwTree, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
    let guard = heap::pin();
    for (key, value) in model {
        let found = index.get(key, &guard).expect("no error");
        assert_eq!(found.as_deref(), Some(&value[..]), "{key:?}");
    }
    let faults = index.check().expect("no error");
    assert_eq!((faults.found, faults.keys), (Vec::new(), model.len() as u64));
}

/// If there is no room for the mapping-table cell of a split, the leaf accepts a bounded number of further keys,
/// although there is room for these and for longer bases. Then it reports `full`. Once there is room, it splits.
#[test]
fn unsplittable_leaf_reports_full() {
    let options = PoolOptions {
        page_size: 64 << 10,
        max_size: 16 << 20,
        ..PoolOptions::default()
    };
    let pool = Pool::anonymous(&options, Hardware::detect()).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    let index = BwTree::<Hardware>::create(&heap, b"bwtree").expect("room");
    let key = |number: u64| number.to_be_bytes().to_vec();
    let mut model = BTreeMap::new();
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let draft = |len| heap.draft(PWord::new(0), len, &batch);
        let (mut taken, mut free) = (Vec::new(), Vec::new());
        let longer = (1..32).flat_map(|thousands| [1000 * thousands; 8]);
        // Half of them stay in use, so that no page is reassigned to a smaller size class.
        for (i, len) in longer.chain([24; 6000]).enumerate() {
            let drafts = if i % 2 == 0 { &mut taken } else { &mut free };
            drafts.push(draft(len).expect("room"));
        }
        for len in [30_000, 15_000, 8_000, 4_000]
            .into_iter()
            .chain((0..3_000).rev().step_by(8))
        {
            taken.extend(std::iter::from_fn(|| draft(len).ok()));
        }
        drop(free);
        let is_full = |number: &u64| {
            // Chunks of replaced bases become free.
            let refused = (0..2).all(|_| match index.upsert(&key(*number), b"8 bytes!") {
                Ok(()) => false,
                Err(error) => {
                    assert!(error.is_full(), "{error}");
                    index::conformance::settled(&heap);
                    true
                }
            });
            if !refused {
                model.insert(key(*number), b"8 bytes!".to_vec());
            }
            refused
        };
        let full = (0..3000).find(is_full);
        assert!(
            full.is_some_and(|number| (900..1100).contains(&number)),
            "{full:?}"
        );
    });
    compare(&index, &model);
    for key in (0..1200).map(key) {
        index.upsert(&key, b"changed.").expect("room");
        model.insert(key, b"changed.".to_vec());
    }
    compare(&index, &model);
}
