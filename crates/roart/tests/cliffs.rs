//! Even on hostile keys, no operation costs more than its key's length and the path to it.

use index::conformance::there_are_no_cliffs;
use wollemi_roart::{Full, Roart, WithoutInline};

#[test]
fn roart() {
    there_are_no_cliffs(|heap| Roart::<_, Full>::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn without_inline_arrays() {
    there_are_no_cliffs(|heap| Roart::<_, WithoutInline>::create(heap, b"cliffs").expect("an index"));
}
