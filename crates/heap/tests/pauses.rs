//! Requests of an index to the heap besides objects: not to trace for a while, and not to count an object as lost
//! that no root reaches.

use pmem::{Hardware, Media, Offset, PWord, Pool, PoolOptions, Purpose, Tag, persist_scope};
use wollemi_heap::{Heap, RecoveryStage, footprint, pin};

/// An object that nothing leads to.
fn loose<M: Media>(heap: &Heap<M>) -> Offset {
    let link = persist_scope(heap.media(), Purpose::Node, |batch| {
        let draft = heap.draft(PWord::new(7), 100, &batch).expect("room");
        draft
            .flush(&batch)
            .persisted(&batch.fence())
            .into_link(Tag::default())
    });
    link.offset().expect("not null")
}

/// While there is a pause, recovery does not begin its trace; once recovery waits for pauses, no new one begins.
#[test]
fn recovery_waits_for_pauses() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("pool");
    let options = PoolOptions {
        max_size: 1 << 26,
        ..PoolOptions::default()
    };
    {
        let heap =
            Heap::new(Pool::create(&path, &options, Hardware::detect()).expect("a pool")).expect("a heap");
        loose(&heap);
    }
    let heap =
        Heap::new(Pool::open(&path, &options, Hardware::detect()).expect("the pool")).expect("the heap");
    let first = heap.pause_trace();
    let second = heap.try_pause_trace().expect("no trace runs");
    heap.recover(Vec::new(), 1).expect("a thread");
    assert_eq!(heap.recovery().state, RecoveryStage::Running);
    assert!(
        heap.try_pause_trace().is_none(),
        "from here on it is recovery's turn"
    );
    drop(first);
    assert_eq!(heap.recovery().pages_swept, 0);
    drop(second);
    assert_eq!(heap.wait_recovered(), RecoveryStage::Done);
    drop(heap.pause_trace());
    let audit = heap.audit(&Vec::new(), 1).expect("an audit");
    assert!(audit.is_clean(), "{audit:?}");
}

/// A held object does not count as lost, and hides no lost object.
#[test]
fn what_is_held_is_not_lost() {
    let options = PoolOptions {
        max_size: 1 << 26,
        ..PoolOptions::default()
    };
    let heap = Heap::new(Pool::anonymous(&options, Hardware::detect()).expect("memory")).expect("a heap");
    let (held, lost) = (loose(&heap), loose(&heap));
    heap.hold(held);
    let leaked = || heap.audit(&Vec::new(), 1).expect("an audit").leaked();
    assert_eq!(leaked(), 1);
    let len = footprint::<PWord>(100).expect("small");
    // SAFETY: nothing has ever led to the object.
    unsafe { heap.retire(&pin(), lost, len) };
    assert_eq!(leaked(), 0);
    heap.unhold(held);
    assert_eq!(leaked(), 1);
    // SAFETY: as above.
    unsafe { heap.retire(&pin(), held, len) };
    assert_eq!(leaked(), 0);
}
