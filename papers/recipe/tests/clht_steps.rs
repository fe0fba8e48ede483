//! P-CLHT: a crash, a reader, a writer, at every step.

use index::conformance::steps::Stepping;
use wollemi_recipe::Clht;

index::conformance_step_by_step! {
    clht: Clht<Stepping>, Clht;
}
