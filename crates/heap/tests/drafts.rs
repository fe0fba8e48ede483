//! Drafts, retirement and roots on anonymous pools.

use pmem::{Hardware, PSlot, PWord, Pool, PoolOptions, Purpose, Tag, persist_scope, persistent};
use std::time::{Duration, Instant};
use wollemi_heap::{self as heap, Heap};

/// Upper bound on any wait for other threads; beyond it the test counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

persistent! {
    struct Node [size: 16] {
        next: PSlot,
        value: PWord,
    }
}

fn node(value: u64) -> Node {
    Node {
        next: PSlot::null(),
        value: PWord::new(value),
    }
}

fn heap() -> Heap {
    let options = PoolOptions {
        page_size: 64 << 10,
        max_size: 1 << 30,
        ..PoolOptions::default()
    };
    Heap::new(Pool::anonymous(&options, Hardware::detect()).unwrap()).unwrap()
}

/// Two drafts of half a line each share one line.
#[test]
fn pairs_share_a_line() {
    let heap = heap();
    for i in 0..10_000_usize {
        persist_scope(heap.media(), Purpose::Node, |batch| {
            if i % 3 == 0 {
                let single = heap.draft(node(7), 16, &batch).unwrap();
                std::mem::forget(single);
            }
            let tail = i % 16 + 1;
            let (a, b) = heap
                .draft_pair(node(1), tail, node(2), 17 - tail, &batch)
                .unwrap();
            let (first, second) = (a.offset().get(), b.offset().get());
            assert_eq!(first + 32, second);
            assert_eq!(first / 64, second / 64, "{first:#x} and {second:#x}");
            std::mem::forget((a, b));
        });
    }
}

/// A root is found by its name, with its contents, and only once.
#[test]
fn roots_are_found_by_name() {
    let heap = heap();
    let create = |name: &[u8], value| {
        persist_scope(heap.media(), Purpose::Node, |batch| {
            let object = heap.draft(node(value), 0, &batch).unwrap().flush(&batch);
            let fenced = batch.fence();
            // SAFETY: only this test reads or traces roots of this kind.
            unsafe { heap.create_root(name, 3, object.persisted(&fenced), Tag::new(2)) }
        })
    };
    let names: Vec<Vec<u8>> = (0..=240).step_by(5).map(|len| vec![len as u8; len]).collect();
    for name in &names {
        let link = create(name, name.len() as u64).unwrap();
        assert_eq!(link.tag(), Tag::new(2));
        assert!(matches!(create(name, 0), Err(heap::Error::RootExists(_))));
    }
    assert!(matches!(create(&[0; 241], 0), Err(heap::Error::NameTooLong(241))));
    for name in &names {
        let root = heap.root(name).unwrap().unwrap();
        assert_eq!(root.kind, 3);
        // SAFETY: the root stays where it is, and it leads to a node.
        let object: &Node = unsafe { heap.access() }.at(root.link.offset().unwrap()).unwrap();
        assert_eq!(object.value.load(heap.media()), name.len() as u64);
        assert!(object.next.load(heap.media()).is_null());
    }
    assert_eq!(heap.roots().unwrap().len(), names.len());
    // SAFETY: no thread uses the objects that the roots lead to.
    let remove = || unsafe { heap.remove_root(&names[3]) }.unwrap();
    assert!(remove().is_some());
    assert_eq!(heap.root(&names[3]).unwrap(), None);
    assert!(remove().is_none());
    create(&names[3], 1).unwrap();
}

/// A pool whose objects are all freed again and again grows to at most twice its early length.
#[test]
fn retired_chunks_are_reused() {
    let begin = Instant::now();
    // Guards of other tests in this process may delay the reuse.
    loop {
        let (early, late) = lengths_over_rounds();
        if late <= early * 2 {
            break;
        }
        assert!(begin.elapsed() < PATIENCE, "{late} after {early}");
    }
}

/// Frees all objects of a pool again and again, and returns its length early and at the end.
fn lengths_over_rounds() -> (u64, u64) {
    let heap = heap();
    let mut early = 0;
    for round in 0..200 {
        for i in 0..2_000_usize {
            persist_scope(heap.media(), Purpose::Node, |batch| {
                let tail = (round * 7 + i * 131) % 1500;
                let draft = heap.draft(node(1), tail, &batch).unwrap();
                let offset = draft.offset();
                if i % 2 == 0 {
                    std::mem::forget(draft);
                    let len = heap::footprint::<Node>(tail).unwrap();
                    // SAFETY: nothing has ever led to the object.
                    unsafe { heap.retire(&heap::pin(), offset, len) };
                }
            });
        }
        if round == 20 {
            early = heap.pool().len();
        }
    }
    (early, heap.pool().len())
}
