//! The limit on files that the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that a server needs beside those of its connections, its runtimes and its workers' sockets.
const OTHERS: u64 = 64;

/// Files of a thread's runtime: those that wake it for sockets, for other threads and for signals.
const RUNTIME: u64 = 4;

/// Threads with a runtime that are no workers.
const OTHER_RUNTIMES: u64 = 2;

/// Returns the number of files that a server with this many workers needs beside its connections, if it listens on
/// this many addresses.
pub fn beside_connections(workers: usize, addresses: usize) -> u64 {
    let of_worker = RUNTIME + addresses as u64;
    OTHERS + OTHER_RUNTIMES * RUNTIME + workers as u64 * of_worker
}

/// Raises the process's limit on open files for this many connections and `others` beside them, as far as the system
/// allows. If it does not allow as many, further clients wait until a file is free.
pub fn allow(connections: usize, others: u64) {
    let wanted = others.saturating_add(connections as u64);
    let limit = getrlimit(Resource::Nofile);
    let max = limit.maximum.unwrap_or(u64::MAX);
    if limit.current.is_some_and(|now| now < wanted.min(max)) {
        let raised = Rlimit {
            current: Some(wanted.min(max)),
            maximum: limit.maximum,
        };
        // If this fails, the limit stays as it was.
        let _ = setrlimit(Resource::Nofile, raised);
    }
}
