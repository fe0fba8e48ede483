//! The conformance suite for each index.

use wollemi_recipe::Part;

index::conformance_on_heap! {
    part: Part,
}
