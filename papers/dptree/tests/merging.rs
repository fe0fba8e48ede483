//! Readers beside merges, with threads of the machine: the buffer trees that a point read searches one after the other
//! are in no pool, so no media can stop the read between them.

use heap::Heap;
use index::Index;
use index::conformance::steps::{Stepping, Steps, ThreadStep, with_hook};
use pmem::{Hardware, Pool, PoolOptions};
use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use wollemi_dptree::{DpTree, DpTreeOptions};

/// Number of keys present at a time, in a few leaves.
const KEPT: u64 = 300;

/// The `n`-th key. Keys are spread over the whole tree, so that leaves split, and slots that this has freed are
/// reused.
fn key(n: u64) -> [u8; 8] {
    n.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// A read finds a key that was put before the read began, whichever merges end meanwhile.
#[test]
fn keys_are_found_while_they_are_merged() {
    let options = PoolOptions {
        max_size: 1 << 30,
        ..PoolOptions::default()
    };
    let pool = Pool::anonymous(&options, Hardware::detect()).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    let options = DpTreeOptions {
        merge_threshold: 0.0,
        ..DpTreeOptions::SMALL
    };
    let tree = DpTree::<Hardware>::create_with(&heap, b"tree", options).expect("room");
    // Keys below it were put, and those more than `KEPT` below it may be removed.
    let (put, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let read = || {
            for back in (1..=250).cycle() {
                if done.load(SeqCst) {
                    break;
                }
                let Some(n) = put.load(SeqCst).checked_sub(back) else {
                    continue;
                };
                let guard = heap::pin();
                let is_found = tree.get(&key(n), &guard).expect("sound").is_some();
                if !is_found && put.load(SeqCst) < n + KEPT {
                    return Err(n);
                }
            }
            Ok(())
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        for n in 0..200_000 {
            if readers.iter().any(|reader| reader.is_finished()) {
                break;
            }
            tree.insert(&key(n), b"a value.").expect("room");
            put.store(n + 1, SeqCst);
            if let Some(last) = n.checked_sub(KEPT) {
                assert!(tree.remove(&key(last)).expect("room"));
            }
        }
        done.store(true, SeqCst);
        for reader in readers {
            assert_eq!(reader.join().expect("no panic"), Ok(()), "a key that was put");
        }
    });
    let merges = tree.merges().expect("the tree merges").merges;
    assert!(merges > 1000, "{merges} merges");
}

/// A merge of everything ends beside a writer that puts another key at each of its fences.
#[test]
fn a_merge_of_everything_ends_beside_a_writer() {
    const MAX: u64 = 10_000;
    let options = PoolOptions {
        max_size: 1 << 30,
        ..PoolOptions::default()
    };
    let pool = Pool::anonymous(&options, Stepping::machine(Steps)).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    let options = DpTreeOptions {
        leaf_capacity: 64,
        workers: 0,
        ..DpTreeOptions::default()
    };
    let tree = Rc::new(DpTree::create_with(&heap, b"tree", options).expect("room"));
    for n in 0..KEPT {
        tree.insert(&key(n), b"a value.").expect("room");
    }
    let put = Rc::new(Cell::new(KEPT));
    let (writer, count) = (Rc::clone(&tree), Rc::clone(&put));
    let hook = move |step| {
        if step == ThreadStep::Fence && count.get() < MAX {
            writer.insert(&key(count.get()), b"a value.").expect("room");
            count.set(count.get() + 1);
        }
    };
    with_hook(hook, || tree.settle().expect("room"));
    let put = put.get();
    assert!(put > KEPT, "no write beside the merge");
    assert!(put < MAX, "the merge has not ended before the writer");
    tree.settle().expect("room");
    let guard = heap::pin();
    for n in 0..put {
        assert!(tree.get(&key(n), &guard).expect("sound").is_some(), "key {n}");
    }
}

/// A floor beyond all bounds makes an index that never merges, and allocates no more than for the greatest floor.
#[test]
fn a_floor_may_be_as_high_as_one_likes() {
    let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    let options = DpTreeOptions {
        merge_floor: usize::MAX,
        ..DpTreeOptions::default()
    };
    let index = DpTree::<Hardware>::create_with(&heap, b"index", options).expect("room");
    index.upsert(b"key", b"value").expect("room");
    let guard = heap::pin();
    assert_eq!(
        index.get(b"key", &guard).expect("sound").as_deref(),
        Some(&b"value"[..])
    );
}
