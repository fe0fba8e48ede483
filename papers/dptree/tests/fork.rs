//! A forked child that drops an index: it does not have the merging thread, and must not wait for it.

use heap::{Heap, RecoveryStage};
use index::Index;
use pmem::{Hardware, Pool, PoolOptions};
use rustix::process::{Pid, WaitOptions, waitpid};
use wollemi_dptree::{DpTree, DpTreeOptions, tracer};

// SAFETY: the C library, which the standard library links, has all three with these types; none takes a pointer. A
// child of `fork` has the calling thread alone: the test's child makes no call that could wait for another.
unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn alarm(seconds: u32) -> u32;
    safe fn _exit(code: i32) -> !;
}

/// The child ends, the parent's thread goes on merging, and the pool is intact.
#[test]
fn a_forked_child_drops_the_index_without_its_thread() {
    let folder = tempfile::tempdir().expect("a folder");
    let open = || {
        let pool_options = PoolOptions {
            page_size: 64 << 10,
            ..PoolOptions::default()
        };
        let path = folder.path().join("pool");
        let pool = Pool::open_or_create(path, &pool_options, Hardware::detect());
        Heap::new(pool.expect("the pool")).expect("a heap")
    };
    let heap = open();
    let options = DpTreeOptions {
        merge_floor: 100,
        leaf_capacity: 64,
        workers: 1,
        ..DpTreeOptions::default()
    };
    let index = DpTree::create_with(&heap, b"test", options).expect("room");
    let insert = |index: &DpTree<Hardware>, keys: std::ops::Range<u32>| {
        for key in keys {
            index.insert(&key.to_be_bytes(), b"8 bytes!").expect("room");
        }
    };
    insert(&index, 0..50);

    let mut handles = Some((index, heap));
    let child = fork();
    if child == 0 {
        alarm(120);
        drop(handles.take());
        _exit(0);
    }
    let child = Pid::from_raw(child).expect("a child");
    let (_, status) = waitpid(Some(child), WaitOptions::empty())
        .expect("our child")
        .expect("the child has ended");
    assert_eq!(status.exit_status(), Some(0), "{status:?}");

    let (index, heap) = handles.take().expect("the child has its own");
    insert(&index, 50..1000);
    drop((index, heap));
    let heap = open();
    heap.recover(vec![tracer()], 1).expect("a thread");
    let index = DpTree::open(&heap, b"test").expect("sound").expect("there");
    assert_eq!(index.check().expect("sound").keys, 1000);
    assert_eq!(heap.wait_recovered(), RecoveryStage::Done);
    drop(index);
    let audit = heap.audit(&vec![tracer()], 1).expect("an audit");
    assert!(audit.is_clean(), "{audit:?}");
}
