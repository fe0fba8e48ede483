//! A crash after each step of each change of a ROART.

use index::conformance::steps::{Stepping, any_step_can_be_the_last};
use pmem::Hardware;
use wollemi_roart::{Full, Roart, Variant, WithoutInline};

fn every_step<V: Variant>() {
    any_step_can_be_the_last::<Roart<Stepping, V>, Roart<Hardware, V>>();
}

#[test]
fn every_step_of_every_change_can_be_the_last() {
    every_step::<Full>();
}

/// With leaves only.
#[test]
fn every_step_can_be_the_last_without_inline_leaf_arrays() {
    every_step::<WithoutInline>();
}
