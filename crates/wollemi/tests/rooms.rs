//! Checks the layers of the database's modules.

/// Each module uses only later ones. The last ones are shared by all.
const ORDER: [&str; 22] = [
    "typed",
    "expiry",
    "backup",
    "build",
    "doubles",
    "disks",
    "txn",
    "read",
    "options",
    "disk",
    "db",
    "map",
    "write",
    "report",
    "level",
    "bounds",
    "io_error",
    "error",
    "files_error",
    "stream",
    "entry",
    "indexes",
];

#[test]
fn rooms_use_those_behind_them() {
    rooms::assert_order(env!("CARGO_MANIFEST_DIR"), &ORDER);
}
