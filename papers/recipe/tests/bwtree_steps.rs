//! P-BwTree's changes, step by step: a crash, a reader and another writer at each.

use index::conformance::steps::Stepping;
use wollemi_recipe::BwTree;

index::conformance_step_by_step! {
    bwtree: BwTree<Stepping>, BwTree;
}
