//! Checks the layers of the server's modules.

const ORDER: [&str; 10] = [
    "serve", "fuzzing", "proto", "ops", "net", "items", "freed", "counters", "clock", "error",
];

#[test]
fn rooms_use_those_behind_them() {
    rooms::assert_order(env!("CARGO_MANIFEST_DIR"), &ORDER);
}
