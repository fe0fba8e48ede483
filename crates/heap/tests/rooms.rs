//! Checks the layers of the heap's modules.

/// Each module uses only later ones.
const ORDER: [&str; 7] = ["recovery", "roots", "heap", "reclaim", "alloc", "lock", "error"];

#[test]
fn rooms_use_those_behind_them() {
    rooms::assert_order(env!("CARGO_MANIFEST_DIR"), &ORDER);
}
