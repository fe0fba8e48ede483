//! P-Masstree's changes, step by step: a crash, a reader and another writer at each.

use index::conformance::steps::Stepping;
use wollemi_recipe::Masstree;

index::conformance_step_by_step! {
    masstree: Masstree<Stepping>, Masstree;
}
