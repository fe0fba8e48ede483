//! The buffer trees are bounded, even while recovery's trace keeps merges from beginning.

use heap::{Access, Error, Heap, RecoveryStage, Trace, footprint};
use index::Index;
use pmem::{Hardware, Link, PWord, Pool, PoolOptions, Purpose, Tag, persist_scope};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use wollemi_dptree::{DpTree, DpTreeOptions, tracer};

/// A tracer that ends only when it is stopped.
struct Slow(Arc<AtomicBool>);

// SAFETY: its roots are words, which lead nowhere.
unsafe impl Trace<Hardware> for Slow {
    fn kind(&self) -> u32 {
        SLOW
    }

    fn trace(&self, _: &Access<Hardware>, _: Link, _: &mut Vec<Link>) -> Result<u64, Error> {
        while !self.0.load(SeqCst) {
            std::thread::yield_now();
        }
        Ok(footprint::<PWord>(0).expect("small") as u64)
    }
}

const SLOW: u32 = 99;

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// A writer that outruns everything waits for the trace, and for the merge after it, and goes on.
#[test]
fn writers_wait_for_the_trace() {
    for workers in [0, 1] {
        let options = DpTreeOptions {
            merge_floor: 100,
            workers,
            ..DpTreeOptions::default()
        };
        let bound = options.merge_floor * options.backlog;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("pool");
        let pool = Pool::create(&path, &PoolOptions::default(), Hardware::detect()).expect("a pool");
        let heap = Heap::new(pool).expect("a heap");
        drop(DpTree::create_with(&heap, b"test", options).expect("an index"));
        persist_scope(heap.media(), Purpose::Node, |batch| {
            let word = heap.draft(PWord::new(7), 0, &batch).expect("room");
            let word = word.flush(&batch);
            let word = word.persisted(&batch.fence());
            // SAFETY: the slow tracer knows words.
            unsafe { heap.create_root(b"slow", SLOW, word, Tag::default()) }.expect("room");
        });
        heap.close().expect("closed");

        let pool = Pool::open(&path, &PoolOptions::default(), Hardware::detect()).expect("the pool");
        let heap = Heap::new(pool).expect("the heap");
        let index = DpTree::open_with(&heap, b"test", options);
        let index = index.expect("sound").expect("the root");
        let stop = Arc::<AtomicBool>::default();
        let tracers = vec![tracer(), Arc::new(Slow(Arc::clone(&stop)))];
        heap.recover(tracers, 1).expect("recovery");
        std::thread::scope(|threads| {
            threads.spawn(|| {
                for i in 0..10 * bound as u64 {
                    index.insert(&key(i), b"8 bytes!").expect("room");
                    let stats = index.stats();
                    let max = stats.threshold * options.backlog;
                    assert!(stats.front <= max, "after {i} writes: {stats:?}");
                }
            });
            // The trace ends only once the writer has reached the bound.
            while index.stats().front < bound {
                std::thread::yield_now();
            }
            stop.store(true, SeqCst);
        });
        assert_eq!(heap.wait_recovered(), RecoveryStage::Done);
        let faults = index.check().expect("sound");
        assert_eq!((faults.keys, faults.found), (10 * bound as u64, Vec::new()));
        assert!(index.stats().merges > 0);
    }
}

/// While the index is quiescent nothing is merged, though a merge is due; afterwards it is. An audit in between finds
/// no object that a merge is about to link.
#[test]
fn an_index_that_is_held_still_does_not_merge() {
    let options = DpTreeOptions {
        merge_floor: 100,
        workers: 1,
        ..DpTreeOptions::default()
    };
    let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    let index = DpTree::create_with(&heap, b"test", options).expect("an index");
    heap.recover(vec![tracer()], 1).expect("recovery begins");
    heap.wait_recovered();
    let merges = || index.stats().merges;
    {
        let _quiesced = Index::quiesce(&index);
        let before = merges();
        for i in 0..options.merge_floor as u64 + 50 {
            index
                .upsert(&key(i), b"a value of more than eight bytes")
                .expect("room");
        }
        assert_eq!(merges(), before);
        let audit = heap.audit(&vec![tracer()], 1).expect("an audit");
        assert!(audit.is_clean(), "{audit:?}");
    }
    let held = merges();
    let started = std::time::Instant::now();
    for i in 0.. {
        if merges() > held {
            break;
        }
        assert!(started.elapsed().as_secs() < 120, "nothing is merged");
        index
            .upsert(&key(i % 1000), b"a value of more than eight bytes")
            .expect("room");
    }
}
