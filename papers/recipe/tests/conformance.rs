//! The conformance suite for each index.

use wollemi_recipe::{Clht, Hot, Part};

index::conformance_on_heap! {
    part: Part,
    clht: Clht,
    hot: Hot,
}
