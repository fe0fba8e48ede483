//! Even on hostile keys, no operation costs more than its key's length and the path to it.

use index::conformance::{keys_beside_the_path_cost_nothing, there_are_no_cliffs};
use wollemi_roart::{Full, Roart, WithoutInline, WithoutLc};

#[test]
fn roart() {
    there_are_no_cliffs(|heap| Roart::<_, Full>::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn without_inline_arrays() {
    there_are_no_cliffs(|heap| Roart::<_, WithoutInline>::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn beside_roart() {
    keys_beside_the_path_cost_nothing(|heap| Roart::<_, Full>::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn beside_without_inline_arrays() {
    keys_beside_the_path_cost_nothing(|heap| {
        Roart::<_, WithoutInline>::create(heap, b"cliffs").expect("an index")
    });
}

#[test]
fn beside_without_leaf_arrays() {
    keys_beside_the_path_cost_nothing(|heap| {
        Roart::<_, WithoutLc>::create(heap, b"cliffs").expect("an index")
    });
}
