//! The heap's recovery beside an opening that empties a merged log, and beside a merge in a full pool; and the record
//! of a removed pair is freed once.

use heap::{Heap, RecoveryStage};
use index::Index;
use index::conformance::wait_until;
use pmem::watched::{ObservedStep, Observer, StepKind};
use pmem::{Hardware, Media, PWord, Pool, PoolOptions, Purpose, Watched, persist_scope};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use wollemi_dptree::{DpTree, DpTreeOptions, tracer};

/// Upper bound on the wait for the merge; beyond it the test counts as hung.
const PATIENCE: Duration = Duration::from_secs(120);

fn options(workers: usize) -> DpTreeOptions {
    DpTreeOptions {
        merge_floor: 100,
        leaf_capacity: 64,
        partitions: 2,
        log_page: 1024,
        workers,
        ..DpTreeOptions::default()
    }
}

fn pool_options(max_size: u64) -> PoolOptions {
    PoolOptions {
        page_size: 64 << 10,
        max_size,
        ..PoolOptions::default()
    }
}

fn open<M: Media>(path: &Path, max_size: u64, media: M) -> Heap<M> {
    Heap::new(Pool::open_or_create(path, &pool_options(max_size), media).expect("the pool")).expect("a heap")
}

fn key(i: u64) -> [u8; 8] {
    i.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes()
}

/// Copies the pool when a merge has committed but its log is not emptied yet.
struct CopyBetween(PathBuf, PathBuf);

impl Observer for CopyBetween {
    fn comes_to(&self, step: &'static str) {
        // The step is announced before the log's links become null.
        if step == "merge: log emptied" {
            std::fs::copy(&self.0, &self.1).expect("a copy");
        }
    }
}

type AtFence = Box<dyn FnOnce() + Send>;

/// Calls a hook after the fence by which an opening makes the emptying of a merged log durable.
#[derive(Clone, Default)]
struct Emptied {
    comes: Arc<AtomicBool>,
    then: Arc<Mutex<Option<AtFence>>>,
}

impl Observer for Emptied {
    fn comes_to(&self, step: &'static str) {
        self.comes.fetch_or(step == "opening: merged log emptied", SeqCst);
    }

    fn after(&self, step: &ObservedStep) {
        if matches!(step.what, StepKind::Fence(Purpose::Log)) && self.comes.load(SeqCst) {
            let then = self.then.lock().expect("no panic").take();
            if let Some(then) = then {
                then();
            }
        }
    }
}

/// An opening finds links to a merged log and empties it. Recovery starts in the middle of that, and ends there unless
/// the opening holds a guard that makes it wait: the pages are freed once.
#[test]
fn an_opening_that_empties_a_merged_log_frees_its_pages_once() {
    const ROOM: u64 = 1 << 26;
    let folder = tempfile::tempdir().expect("a folder");
    let paths = ["pool", "closed", "killed"].map(|name| folder.path().join(name));
    let [path, closed, killed] = &paths;
    {
        let heap = open(path, ROOM, Hardware::detect());
        let index = DpTree::create_with(&heap, b"test", options(0)).expect("room");
        for i in 0..99 {
            index.insert(&key(i), b"8 bytes!").expect("room");
        }
    }
    std::fs::rename(path, closed).expect("renamed");
    {
        let watch = CopyBetween(closed.clone(), killed.clone());
        let heap = open(closed, ROOM, Watched::machine(watch));
        let index = DpTree::open_with(&heap, b"test", options(0));
        index.expect("sound").expect("there").settle().expect("room");
    }
    let watch = Emptied::default();
    let heap = open(killed, ROOM, Watched::machine(watch.clone()));
    let tracers = || vec![tracer()];
    let recovering = heap.clone();
    let went = Arc::<AtomicBool>::default();
    let has_gone = Arc::clone(&went);
    *watch.then.lock().expect("no panic") = Some(Box::new(move || {
        has_gone.store(true, SeqCst);
        recovering.recover(tracers(), 1).expect("a thread");
        // Recovery waits for this thread's guard, if it holds one.
        while !heap::is_pinned() && recovering.recovery().state == RecoveryStage::Running {
            std::thread::yield_now();
        }
    }));
    let index = DpTree::open_with(&heap, b"test", options(0));
    let index = index.expect("sound").expect("there");
    assert!(went.load(SeqCst), "there was a log to empty");
    assert_eq!(heap.wait_recovered(), RecoveryStage::Done);
    assert_eq!(index.check().expect("sound").keys, 99);
    drop(index);
    let audit = heap.audit(&tracers(), 1).expect("an audit");
    assert!(audit.is_clean(), "{audit:?}");
}

/// Starts recovery when a merge has begun.
#[derive(Clone, Default)]
struct Merging(Arc<Mutex<Option<AtFence>>>);

impl Observer for Merging {
    fn comes_to(&self, step: &'static str) {
        if step == "merge: front becomes middle" {
            let then = self.0.lock().expect("no panic").take();
            if let Some(then) = then {
                then();
            }
        }
    }
}

/// Recovery begins during a merge that is about to find the pool full, and waits for its end. The merge does not wait
/// for recovery in turn: it fails and changes nothing. Then recovery ends, and when there is room, the next merge
/// succeeds.
#[test]
fn a_merge_in_a_full_pool_does_not_wait_for_the_recovery_that_waits_for_it() {
    const ROOM: u64 = 1 << 20;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    {
        let heap = open(&path, ROOM, Hardware::detect());
        DpTree::create_with(&heap, b"test", options(0)).expect("room");
    }
    let watch = Merging::default();
    let heap = open(&path, ROOM, Watched::machine(watch.clone()));
    let tracers = || vec![tracer()];
    let index = DpTree::open_with(&heap, b"test", options(0));
    let index = index.expect("sound").expect("there");
    for i in 0..99 {
        assert!(index.insert(&key(i), b"8 bytes!").expect("room"));
    }
    persist_scope(heap.media(), Purpose::Node, |batch| {
        let mut fillers = Vec::new();
        for tail in [30_000, 5000, 1400] {
            while let Ok(draft) = heap.draft(PWord::new(0), tail, &batch) {
                fillers.push(draft);
            }
        }
        let recovering = heap.clone();
        *watch.0.lock().expect("no panic") = Some(Box::new(move || {
            recovering.recover(tracers(), 1).expect("a thread");
        }));
        let (sender, receiver) = channel();
        let merging = index.clone();
        let merger = std::thread::spawn(move || sender.send(merging.settle()));
        let merged = receiver.recv_timeout(PATIENCE);
        let merged = merged.expect("the merge and recovery wait for each other");
        assert!(matches!(merged, Err(heap::Error::Full { .. })), "{merged:?}");
        merger.join().expect("no panic").expect("awaited");
        assert_eq!(heap.wait_recovered(), RecoveryStage::Done);
        drop(fillers);
    });
    index.settle().expect("room");
    assert_eq!(index.check().expect("sound").keys, 99);
    drop(index);
    let audit = heap.audit(&tracers(), 1).expect("an audit");
    assert!(audit.is_clean(), "{audit:?}");
}

/// The log record of a removal leads to the record of the removed pair, to which a leaf or an earlier log record
/// leads as well. It is freed once: by a merge, or by the removal of the root while the log is not merged.
#[test]
fn the_record_of_a_removed_pair_is_given_back_once() {
    let long = |i: u64| [&b"not of eight bytes"[..], &key(i)].concat();
    // With these options nothing is merged but by `settle`.
    let few = DpTreeOptions {
        merge_floor: 1000,
        ..options(0)
    };
    for in_base in [false, true] {
        for merged in [false, true] {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("pool");
            let heap = open(&path, 1 << 26, Hardware::detect());
            let before = heap.stats().objects;
            let index = DpTree::create_with(&heap, b"test", few).expect("room");
            for i in 0..40 {
                assert!(index.insert(&long(i), b"value").expect("room"));
            }
            if in_base {
                index.settle().expect("room");
            }
            for i in 0..40 {
                assert!(index.remove(&long(i)).expect("room"));
            }
            for i in (0..40).step_by(3) {
                assert!(index.insert(&long(i), b"other").expect("room"));
            }
            drop((index, heap));
            let heap = open(&path, 1 << 26, Hardware::detect());
            let index = DpTree::open_with(&heap, b"test", few)
                .expect("sound")
                .expect("there");
            heap.recover(vec![tracer()], 1).expect("a thread");
            assert_eq!(heap.wait_recovered(), RecoveryStage::Done);
            if merged {
                index.settle().expect("room");
            }
            assert_eq!(index.check().expect("sound").keys, 14);
            let audit = heap.audit(&vec![tracer()], 1).expect("an audit");
            assert!(audit.is_clean(), "{audit:?}");
            drop(index);
            // SAFETY: no index is open under the root.
            let removed = unsafe { heap.remove_root(b"test") }
                .expect("sound")
                .expect("there");
            removed.retire(&*tracer()).expect("one link to each object");
            wait_until("all is given back", || heap.stats().objects == before);
        }
    }
}
