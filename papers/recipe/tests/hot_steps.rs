//! A crash, a reader, a writer, at every step of a write.

use index::conformance::steps::Stepping;
use wollemi_recipe::Hot;

index::conformance_step_by_step! {
    hot: Hot<Stepping>, Hot;
}
