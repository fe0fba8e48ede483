//! Even on hostile keys, no operation costs more than its key's length and the path to it.

use index::OnHeap;
use index::conformance::{keys_beside_the_path_cost_nothing, there_are_no_cliffs};
use wollemi_recipe::{BwTree, Clht, Hot, Masstree, Part};

#[test]
fn part() {
    there_are_no_cliffs(|heap| Part::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn clht() {
    there_are_no_cliffs(|heap| Clht::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn hot() {
    there_are_no_cliffs(|heap| Hot::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn masstree() {
    there_are_no_cliffs(|heap| Masstree::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn bwtree() {
    there_are_no_cliffs(|heap| <BwTree<_>>::create(heap, b"cliffs").expect("an index"));
}

#[test]
fn beside_part() {
    keys_beside_the_path_cost_nothing(|heap| Part::create(heap, b"cliffs").expect("an index"));
}
