//! Readers beside merges, by threads of the machine: what a point read looks at one after the other is in no pool, so no
//! media can stop it there.

use heap::Heap;
use index::Index;
use pmem::{Hardware, Pool, PoolOptions};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use wollemi_dptree::{DpTree, Options};

/// Keys that are there at a time, in a few leaves.
const KEPT: u64 = 300;

/// A read finds a key that was put before it began, whichever merges end meanwhile.
#[test]
fn keys_are_found_while_they_are_merged() {
    let options = PoolOptions {
        max_size: 1 << 30,
        ..PoolOptions::default()
    };
    let pool = Pool::anonymous(&options, Hardware::detect()).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    let options = Options {
        merge_threshold: 0.0,
        ..Options::SMALL
    };
    let tree = DpTree::<Hardware>::create_with(&heap, b"tree", options).expect("room");
    // Keys below it were put, and those that are by more than `KEPT` below it may be gone.
    let (put, done) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let read = || {
            for back in (1..=40).cycle() {
                if done.load(SeqCst) {
                    break;
                }
                let Some(key) = put.load(SeqCst).checked_sub(back) else {
                    continue;
                };
                let guard = heap::pin();
                let is_found = tree.get(&key.to_be_bytes(), &guard).expect("sound").is_some();
                if !is_found && put.load(SeqCst) < key + KEPT {
                    return Err(key);
                }
            }
            Ok(())
        };
        let readers = [scope.spawn(read), scope.spawn(read)];
        for key in 0..200_000_u64 {
            if readers.iter().any(|reader| reader.is_finished()) {
                break;
            }
            tree.insert(&key.to_be_bytes(), b"a value.").expect("room");
            put.store(key + 1, SeqCst);
            if let Some(last) = key.checked_sub(KEPT) {
                assert!(tree.remove(&last.to_be_bytes()).expect("room"));
            }
        }
        done.store(true, SeqCst);
        for reader in readers {
            assert_eq!(reader.join().expect("no panic"), Ok(()), "a key that was put");
        }
    });
    let merges = tree.merges().expect("it merges").merges;
    assert!(merges > 1000, "{merges} merges");
}
