//! Keys that change the entries of a node while a scan reads it.

use heap::Heap;
use index::conformance::options;
use index::conformance::steps::{Stepping, Steps, ThreadStep, with_hook};
use index::{Index, OnHeap};
use pmem::Pool;
use std::cell::Cell;
use std::ops::Bound;
use std::rc::Rc;
use wollemi_wort::woart::Woart;

type Tree = Woart<Stepping>;

fn key(byte: u8) -> [u8; 2] {
    [7, byte]
}

fn put(tree: &Tree, byte: u8) {
    tree.upsert(&key(byte), b"value").expect("no error");
}

fn remove(tree: &Tree, byte: u8) {
    assert!(tree.remove(&key(byte)).expect("no error"));
}

/// Scans, and makes changes after load number `first` of the scan, after the next one, and after number `last`. Returns
/// `false` if the scan has fewer loads than `last`.
fn scan_amid(first: usize, last: usize) -> bool {
    let pool = Pool::anonymous(&options(), Stepping::machine(Steps)).expect("a pool");
    let heap = Heap::new(pool).expect("a heap");
    let tree = Rc::new(Tree::create(&heap, b"test").expect("an index"));
    (0..9).for_each(|byte| put(&tree, byte));
    let loads = Rc::new(Cell::new(0));
    let (count, changed) = (Rc::clone(&loads), Rc::clone(&tree));
    let hook = move |step| {
        count.set(count.get() + usize::from(step == ThreadStep::Load));
        match count.get() {
            _ if step != ThreadStep::Load => {}
            // The first key moves into the entry of the last one...
            nth if nth == first => {
                remove(&changed, 8);
                remove(&changed, 0);
                put(&changed, 200);
                put(&changed, 0);
            }
            // ...and back into its own, and is still in the other one, which does not count...
            nth if nth == first + 1 => {
                remove(&changed, 0);
                remove(&changed, 200);
                put(&changed, 0);
            }
            // ...which then counts again, for another key: the bitmap is as before.
            nth if nth == last => put(&changed, 201),
            _ => {}
        }
    };
    let found: Vec<Vec<u8>> = with_hook(hook, || {
        let guard = heap::pin();
        let range = tree.range(Bound::Unbounded, Bound::Unbounded, &guard);
        range.map(|entry| entry.expect("no error").0.to_vec()).collect()
    });
    assert!(
        found.is_sorted_by(|a, b| a < b),
        "loads {first} and {last}: {found:?}"
    );
    loads.get() >= last
}

/// All entries of a node with a bitmap may be reused between two loads of the bitmap. Even then a scan shows a key
/// that it meets in two entries only once.
#[test]
fn a_key_that_changes_entries_is_shown_once() {
    let mut first = 1;
    while (first + 2..).take_while(|last| scan_amid(first, *last)).count() > 0 {
        first += 1;
    }
    assert!(first > 10, "{first}");
}
