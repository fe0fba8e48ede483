//! Removed roots, retirements before recovery, and allocations in a full pool, each beside recovery.

mod toy;

use pmem::{Hardware, Link, PWord, Pool, PoolOptions, Purpose, persist_scope};
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, Barrier, Once};
use std::time::Duration;
use tempfile::TempDir;
use toy::{NAME, PATIENCE, Toy, ToyTrace, settle, tracers};
use wollemi_heap::{Access, Error, Heap, RecoveryStage, Removed, Trace, pin};

const KEYS: u64 = 3000;

fn options() -> PoolOptions {
    PoolOptions {
        page_size: 64 << 10,
        max_size: 8 << 20,
        ..PoolOptions::default()
    }
}

fn open(path: &Path) -> Toy<Hardware> {
    Toy::open(Pool::open_or_create(path, &options(), Hardware::detect()).unwrap()).unwrap()
}

fn remove_root(toy: &Toy<Hardware>) -> Option<Removed<'_, Hardware>> {
    // SAFETY: readers hold guards.
    unsafe { toy.heap.remove_root(NAME) }.unwrap()
}

/// A map made by an earlier generation.
fn reopened() -> (Toy<Hardware>, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pool");
    let toy = open(&path);
    for key in 0..KEYS {
        toy.put(key, 40).unwrap();
    }
    drop(toy);
    (open(&path), folder)
}

/// Waits until recovery has traced.
fn wait_traced<M: pmem::Media>(heap: &Heap<M>) {
    while heap.recovery().state == RecoveryStage::Idle || heap.try_pause_trace().is_none() {
        std::thread::yield_now();
    }
}

/// Waits for recovery to go as far as it can while something keeps it from sweeping, and asserts that it has not
/// swept.
fn assert_does_not_sweep<M: pmem::Media>(heap: &Heap<M>) {
    for _ in 0..20 {
        pin().flush();
        std::thread::sleep(Duration::from_millis(1));
        let progress = heap.recovery();
        assert_eq!(
            (progress.state, progress.pages_swept),
            (RecoveryStage::Running, 0)
        );
    }
}

/// A root is removed before the trace reads the roots, so that nothing below it is marked; its objects are retired
/// after the trace. Each object is freed once.
#[test]
fn a_root_that_goes_before_the_trace_is_freed_once() {
    let (toy, _folder) = reopened();
    let removed = remove_root(&toy).expect("there");
    toy.heap.recover(tracers(), 2).unwrap();
    wait_traced(&toy.heap);
    assert_does_not_sweep(&toy.heap);
    removed.retire(&ToyTrace).unwrap();
    assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
    toy.assert_exact("after the removal");
    assert_eq!(toy.heap.audit(&tracers(), 1).unwrap().reachable, 0);
}

/// A root is removed while a pause keeps the trace from beginning; each object is freed once.
#[test]
fn a_root_that_goes_during_a_pause_is_freed_once() {
    let (toy, _folder) = reopened();
    let pause = toy.heap.pause_trace();
    toy.heap.recover(tracers(), 1).unwrap();
    let removed = remove_root(&toy).expect("there");
    drop(pause);
    wait_traced(&toy.heap);
    assert_does_not_sweep(&toy.heap);
    removed.retire(&ToyTrace).unwrap();
    assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
    toy.assert_exact("after the removal");
}

/// A root removed after the trace does not keep recovery from ending, and its objects are freed once.
#[test]
fn a_root_that_goes_after_the_trace_is_freed_once() {
    for retired_first in [false, true] {
        let (toy, _folder) = reopened();
        let reader = pin();
        toy.heap.recover(tracers(), 1).unwrap();
        wait_traced(&toy.heap);
        let removed = remove_root(&toy).expect("there");
        if retired_first {
            removed.retire(&ToyTrace).unwrap();
            drop(reader);
            assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
        } else {
            drop(reader);
            assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
            removed.retire(&ToyTrace).unwrap();
        }
        toy.assert_exact(&format!("retired first: {retired_first}"));
        assert_eq!(toy.heap.audit(&tracers(), 1).unwrap().reachable, 0);
    }
}

/// Writes, and retries if the pool was full: guards of other tests in this process may delay the reclamation of
/// retired objects.
fn put(toy: &Toy<Hardware>, key: u64, len: usize) {
    if let Err(Error::Full { .. }) = toy.put(key, len) {
        settle(&toy.heap);
        toy.put(key, len).unwrap();
    }
}

/// Before recovery, and while a pause keeps it from tracing, space allocated since the opening is reused; old space
/// is not, and recovery frees it once.
#[test]
fn what_is_new_is_reused_before_the_trace() {
    let (toy, _folder) = reopened();
    let old = toy.heap.stats().unswept;
    for key in 0..KEYS / 2 {
        assert!(toy.remove(key));
    }
    let pause = toy.heap.pause_trace();
    for state in [RecoveryStage::Idle, RecoveryStage::Running] {
        // Three times the pool.
        for i in 0..24_000 {
            put(&toy, KEYS + i % 7, 1000);
        }
        assert_eq!(
            (toy.heap.recovery().state, toy.heap.stats().unswept),
            (state, old)
        );
        toy.heap.recover(tracers(), 1).unwrap();
    }
    drop(pause);
    assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
    toy.assert_exact("after recovery");
    assert_eq!(toy.all().len() as u64, KEYS / 2 + 7);
}

/// Allocates until there is no room, and returns the error.
fn refused_when_full(heap: &Heap<Hardware>) -> Error {
    persist_scope(heap.media(), Purpose::Node, |batch| {
        // Dropped at the end, and free again.
        let mut drafts = Vec::new();
        loop {
            match heap.draft(PWord::new(1), 5000, &batch) {
                Ok(draft) => drafts.push(draft),
                Err(full) => return full,
            }
        }
    })
}

/// While recovery waits for a pause, an allocation in a full pool fails, as the holder of the pause may be the one
/// that allocates; a thread that holds nothing can wait for room, and gets it when the pause is over.
#[test]
fn a_full_pool_does_not_wait_for_a_pause() {
    let (toy, _folder) = reopened();
    let pause = toy.heap.pause_trace();
    toy.heap.recover(tracers(), 1).unwrap();
    let (sender, receiver) = channel();
    let heap = toy.heap.clone();
    let filler = std::thread::spawn(move || {
        sender.send(refused_when_full(&heap)).unwrap();
    });
    let full = receiver
        .recv_timeout(PATIENCE)
        .expect("the allocation waits for the pause");
    assert!(matches!(full, Error::Full { recovering: true, .. }), "{full}");
    filler.join().unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| toy.heap.wait_for_room());
        drop(pause);
        assert!(waiting.join().unwrap());
    });
    assert_eq!(toy.heap.recovery().state, RecoveryStage::Done);
    toy.assert_exact("after the pause");
}

/// While there is a pause, an allocation in a full pool never waits for recovery: its thread may hold the pause, or a
/// thread whose guard recovery waits for may in turn wait for the pause's holder.
#[test]
fn a_full_pool_does_not_wait_beside_a_pause() {
    let (toy, _folder) = reopened();
    let reader = pin();
    toy.heap.recover(tracers(), 1).unwrap();
    wait_traced(&toy.heap);
    assert_does_not_sweep(&toy.heap);
    let (sender, receiver) = channel();
    let heap = toy.heap.clone();
    let filler = std::thread::spawn(move || {
        let _pause = heap.pause_trace();
        sender.send(refused_when_full(&heap)).unwrap();
    });
    let full = receiver.recv_timeout(PATIENCE).expect("the allocation waits");
    assert!(matches!(full, Error::Full { recovering: true, .. }), "{full}");
    filler.join().unwrap();
    drop(reader);
    assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
    toy.assert_exact("after the pause");
}

/// A tracer like the toy's that stops at its first object until the test continues.
struct HeldTrace {
    first: Once,
    /// Passed twice: when the trace has met its first object, and before it goes on.
    steps: Barrier,
}

// SAFETY: it reports the links that the toy's tracer reports.
unsafe impl Trace<Hardware> for HeldTrace {
    fn kind(&self) -> u32 {
        Trace::<Hardware>::kind(&ToyTrace)
    }

    fn trace(&self, heap: &Access<Hardware>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error> {
        self.first.call_once(|| {
            self.steps.wait();
            self.steps.wait();
        });
        ToyTrace.trace(heap, link, children)
    }
}

/// No pause begins while recovery traces, so that the holder of a pause knows that no trace runs.
#[test]
fn no_pause_begins_amid_the_trace() {
    let (toy, _folder) = reopened();
    let trace = Arc::new(HeldTrace {
        first: Once::new(),
        steps: Barrier::new(2),
    });
    toy.heap.recover(vec![trace.clone()], 1).unwrap();
    trace.steps.wait();
    let pause = toy.heap.try_pause_trace();
    trace.steps.wait();
    assert!(pause.is_none());
    assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
    assert!(toy.heap.try_pause_trace().is_some());
    toy.assert_exact("after recovery");
}

/// The last handle of a heap can be dropped while recovery waits for a pause.
#[test]
fn a_heap_can_be_dropped_beside_a_pause() {
    let (toy, folder) = reopened();
    let pause = toy.heap.pause_trace();
    toy.heap.recover(tracers(), 1).unwrap();
    let (sender, receiver) = channel();
    let dropper = std::thread::spawn(move || {
        drop(toy);
        sender.send(()).unwrap();
    });
    receiver
        .recv_timeout(PATIENCE)
        .expect("the drop waits for the pause");
    dropper.join().unwrap();
    drop(pause);
    // It is closed, and can be opened again.
    let toy = open(&folder.path().join("pool"));
    toy.heap.recover(tracers(), 1).unwrap();
    assert_eq!(toy.heap.wait_recovered(), RecoveryStage::Done);
    toy.assert_exact("opened again");
}
