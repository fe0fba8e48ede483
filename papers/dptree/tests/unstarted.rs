//! Trees for whose merges the system starts no thread.

use heap::Heap;
use index::conformance::settled;
use index::{Bulk, Index, Parts, Sorted};
use pmem::{Hardware, Pool, PoolOptions};
use std::process::Command;
use wollemi_dptree::{DpTree, DpTreeOptions};

const TEST: &str = "a_tree_whose_thread_does_not_start_is_not_made";

/// The variable that says how large a stack the standard library gives a thread.
const STACK: &str = "RUST_MIN_STACK";

/// A stack for which no address space has room: no thread starts.
const TOO_LARGE: u64 = 1 << 47;

/// Nothing remains of a build or a creation for which no thread starts, and its name is free. (The test runs itself
/// again in a process that starts no threads.)
#[test]
fn a_tree_whose_thread_does_not_start_is_not_made() {
    if std::env::var(STACK).is_ok_and(|stack| stack == TOO_LARGE.to_string()) {
        return nothing_is_made_without_threads();
    }
    let mut test = Command::new(std::env::current_exe().expect("this program"));
    let test = test.args(["--exact", TEST, "--test-threads=1"]);
    let done = test.env(STACK, TOO_LARGE.to_string()).output().expect("it runs");
    let printed = String::from_utf8_lossy(&done.stdout);
    assert!(done.status.success() && printed.contains("1 passed"), "{printed}");
}

fn nothing_is_made_without_threads() {
    let pool = Pool::anonymous(&PoolOptions::default(), Hardware::detect()).expect("memory");
    let heap = Heap::new(pool).expect("a heap");
    let before = settled(&heap).objects;
    let pairs = || (0..1000_u32).map(|i| (i.to_be_bytes(), "longer than a word"));
    let built = <DpTree as Bulk>::build(&heap, b"test", Parts::new(&mut Sorted::new(pairs()))).map(drop);
    assert!(
        matches!(built, Err(index::Error::Heap(heap::Error::Thread(_)))),
        "{built:?}"
    );
    let created = DpTree::create(&heap, b"test").map(drop);
    assert!(matches!(created, Err(heap::Error::Thread(_))), "{created:?}");
    assert!(heap.root(b"test").expect("sound").is_none());
    assert_eq!(settled(&heap).objects, before);

    let options = DpTreeOptions {
        workers: 0,
        ..DpTreeOptions::default()
    };
    let index = DpTree::create_with(&heap, b"test", options).expect("the name is free");
    assert!(index.insert(b"key", b"value").expect("room"));
}
