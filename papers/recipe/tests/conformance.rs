//! The conformance suite for each index.

use wollemi_recipe::{Hot, Part};

index::conformance_on_heap! {
    part: Part,
    hot: Hot,
}
