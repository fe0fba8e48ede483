//! An index reads the pool only under a guard, in checks too, and so does an audit: beside writers they may reach
//! objects that are being retired.

use heap::Heap;
use index::{Index, OnHeap};
use pmem::watched::{ObservedStep, Observer, StepKind};
use pmem::{Pool, PoolOptions, Watched};
use std::cell::Cell;

thread_local! {
    /// Whether this thread reads objects that other threads may retire.
    static READS: Cell<bool> = const { Cell::new(false) };
    /// Number of its loads, and of those without a guard.
    static LOADS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// Counts the loads of threads that are reading.
struct Guarded;

impl Observer for Guarded {
    fn before(&self, step: &ObservedStep) {
        if READS.get() && matches!(step.what, StepKind::Load | StepKind::Touch) {
            let (loads, bare) = LOADS.get();
            LOADS.set((loads + 1, bare + u64::from(!heap::is_pinned())));
        }
    }
}

type Media = Watched<Guarded>;

/// Counts all loads of `read`, each of which must be under a guard; returns their number with its result.
fn guarded<R>(what: &str, read: impl FnOnce() -> R) -> (R, u64) {
    LOADS.set((0, 0));
    READS.set(true);
    let result = read();
    READS.set(false);
    let (loads, bare) = LOADS.get();
    assert_eq!(bare, 0, "{what}: loads under no guard, of {loads}");
    (result, loads)
}

fn reads_hold_a_guard<I: OnHeap<Media = Media>>() {
    let pool = Pool::anonymous(&PoolOptions::default(), Watched::machine(Guarded)).expect("memory");
    let heap: Heap<Media> = Heap::new(pool).expect("a heap");
    let index = I::create(&heap, b"test").expect("room");
    for i in 0..500u32 {
        let value = vec![7; i as usize % 40];
        index.insert(&i.to_be_bytes(), &value).expect("room");
    }
    let (faults, checked) = guarded("the check", || index.check().expect("a check"));
    assert_eq!(faults.found, [""; 0]);
    let audit = || heap.audit(&vec![I::tracer()], 1).expect("an audit");
    let (audit, traced) = guarded("the audit", audit);
    assert_eq!(audit.faults, [""; 0]);
    assert!(checked > 0 && traced > 0);
    // A DPTree's write loads nothing: its buffer is in DRAM.
    guarded("a write", || index.upsert(b"another", b"value").expect("room"));
}

#[test]
fn checks_audits_and_writes_hold_a_guard() {
    reads_hold_a_guard::<roart::Roart<Media>>();
    reads_hold_a_guard::<recipe::Part<Media>>();
    reads_hold_a_guard::<wort::wort::Wort<Media>>();
    reads_hold_a_guard::<wort::woart::Woart<Media>>();
    reads_hold_a_guard::<wort::art_cow::ArtCow<Media>>();
    reads_hold_a_guard::<dptree::DpTree<Media>>();
}
