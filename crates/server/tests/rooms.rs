//! The server's rooms keep their order.

const ORDER: [&str; 11] = [
    "serve", "fuzzing", "commands", "proto", "ops", "net", "items", "freed", "counters", "clock", "error",
];

#[test]
fn rooms_use_those_behind_them() {
    rooms::assert_order(env!("CARGO_MANIFEST_DIR"), &ORDER);
}
