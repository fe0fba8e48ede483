//! The server's rooms keep their order.
//!
//! Their arrows form no chain: `proto` and `net` use nothing of each other. Each list is a chain that the rooms must
//! keep, and together the two allow the arrows of the crate's chapter alone.

/// Keeps `proto` and `items` from the rooms that know connections.
const BYTES_LAST: [&str; 11] = [
    "serve", "commands", "ops", "net", "fuzzing", "proto", "items", "freed", "counters", "clock", "error",
];

/// Keeps `net` and `ops` from the protocols, and `net` from the items.
const SOCKETS_LAST: [&str; 11] = [
    "serve", "commands", "fuzzing", "proto", "ops", "items", "net", "freed", "counters", "clock", "error",
];

#[test]
fn rooms_use_those_behind_them() {
    for order in [&BYTES_LAST, &SOCKETS_LAST] {
        rooms::assert_order(env!("CARGO_MANIFEST_DIR"), order);
    }
}

/// In these rooms no two files use each other, directly or through others: a parser stands above the requests that it
/// yields, a command above the state of its connection, and the table of commands above all commands.
#[test]
fn files_of_a_room_form_no_cycle() {
    for room in ["commands", "proto", "net"] {
        rooms::assert_no_cycle(env!("CARGO_MANIFEST_DIR"), room);
    }
}
