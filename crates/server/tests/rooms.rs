//! Checks the layers of the server's modules.
//!
//! Their dependencies do not form one chain: `proto` and `net` use nothing of each other. Each list below is a chain in
//! which modules use only later ones, and together the lists allow only the dependencies that the crate's documentation
//! shows.

/// Keeps `proto` and `items` from using the modules that know connections.
const BYTES_LAST: [&str; 11] = [
    "serve", "commands", "ops", "net", "fuzzing", "proto", "items", "freed", "counters", "clock", "error",
];

/// Keeps `net` and `ops` from using the protocols, and `net` from using the items.
const SOCKETS_LAST: [&str; 11] = [
    "serve", "commands", "fuzzing", "proto", "ops", "items", "net", "freed", "counters", "clock", "error",
];

#[test]
fn rooms_use_those_behind_them() {
    for order in [&BYTES_LAST, &SOCKETS_LAST] {
        rooms::assert_order(env!("CARGO_MANIFEST_DIR"), order);
    }
}

/// In these modules no two files use each other, directly or through others: a parser uses the requests that it yields,
/// a command uses the state of its connection, and the table of commands uses all commands.
#[test]
fn files_of_a_room_form_no_cycle() {
    for room in ["commands", "proto", "net"] {
        rooms::assert_no_cycle(env!("CARGO_MANIFEST_DIR"), room);
    }
}
