//! Even on hostile keys, no operation costs more than its key's length and the path to it.

use index::OnHeap;
use index::conformance::{keys_beside_the_path_cost_nothing, there_are_no_cliffs};
use wollemi_wort::{art_cow::ArtCow, woart::Woart, wort::Wort};

#[test]
fn wort() {
    there_are_no_cliffs(|heap| Wort::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn woart() {
    there_are_no_cliffs(|heap| Woart::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn art_cow() {
    there_are_no_cliffs(|heap| ArtCow::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn beside_wort() {
    keys_beside_the_path_cost_nothing(|heap| Wort::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn beside_woart() {
    keys_beside_the_path_cost_nothing(|heap| Woart::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn beside_art_cow() {
    keys_beside_the_path_cost_nothing(|heap| ArtCow::create(heap, b"cliffs").expect("an index"));
}
