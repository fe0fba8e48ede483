//! Even on hostile keys, no operation costs more than its key's length and the path to it.

use index::conformance::there_are_no_cliffs;
use wollemi_dptree::{DpTree, DpTreeOptions};

/// Writers merge themselves, so that the costs of merges are counted.
#[test]
fn merging() {
    let options = DpTreeOptions {
        merge_floor: 50,
        workers: 0,
        ..DpTreeOptions::default()
    };
    there_are_no_cliffs(|heap| DpTree::create_with(heap, b"cliffs", options).expect("an index"));
}

/// Everything in the buffer tree and its log.
#[test]
fn buffered() {
    there_are_no_cliffs(|heap| {
        DpTree::create_with(heap, b"cliffs", DpTreeOptions::default()).expect("an index")
    });
}
