//! The database's rooms keep their order.

/// Below the rooms: what they share.
const ORDER: [&str; 17] = [
    "typed", "expiry", "backup", "build", "doubles", "txn", "read", "options", "db", "map", "write",
    "report", "bounds", "io_error", "error", "entry", "indexes",
];

#[test]
fn rooms_use_those_behind_them() {
    rooms::assert_order(env!("CARGO_MANIFEST_DIR"), &ORDER);
}
