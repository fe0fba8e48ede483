//! Even on hostile keys, no operation costs more than its key's length and the path to it.

use index::conformance::there_are_no_cliffs;
use wollemi_dptree::{DpTree, Options};

/// Writers merge themselves, so that the costs of merges are counted.
#[test]
fn merging() {
    let options = Options {
        merge_floor: 50,
        workers: 0,
        ..Options::default()
    };
    there_are_no_cliffs(|heap| DpTree::create_with(heap, b"cliffs", options).expect("an index"));
}

/// Everything in the buffer tree and its log.
#[test]
fn buffered() {
    there_are_no_cliffs(|heap| DpTree::create_with(heap, b"cliffs", Options::default()).expect("an index"));
}
