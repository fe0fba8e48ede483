//! memcached's protocol, as sockets and metrics know it.

use crate::net::dialect::Dialect;
use crate::proto::memcached::answer::server_error;

/// What `version` answers. Clients read it to learn which memcached they speak with, and some refuse a major version of
/// zero.
pub const VERSION: &str = concat!("1.6.18-wollemi-", env!("CARGO_PKG_VERSION"));

/// memcached's protocol.
pub static DIALECT: Dialect = Dialect {
    place: 0,
    name: "memcached",
    too_many: b"ERROR Too many open connections\r\n",
    not_durable: |why| {
        let mut out = Vec::new();
        server_error(why, &mut out);
        out
    },
    command: |number| NAMES.get(number).copied(),
};

/// The commands whose durations are recorded, by their numbers.
pub const NAMES: &[&str] = &[
    "get",
    "mg",
    "gat",
    "set",
    "add",
    "replace",
    "append",
    "prepend",
    "cas",
    "delete",
    "incr",
    "decr",
    "touch",
    "flush_all",
    "mn",
    "ms",
    "md",
    "ma",
    "me",
    "stats",
    "version",
    "verbosity",
    "cache_memlimit",
];

/// Returns the number of the command with this name.
pub const fn number(name: &str) -> usize {
    let mut number = 0;
    while !is(NAMES[number].as_bytes(), name.as_bytes()) {
        number += 1;
    }
    number
}

const fn is(one: &[u8], other: &[u8]) -> bool {
    let mut i = 0;
    while i < one.len() && i < other.len() && one[i] == other[i] {
        i += 1;
    }
    i == one.len() && i == other.len()
}
