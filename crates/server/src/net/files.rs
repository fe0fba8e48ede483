//! The limit on files that the process may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files that a server needs beside its connections.
const OTHERS: u64 = 64;

/// Raises the process's limit on open files for this many connections, as far as the system allows. If it does not
/// allow as many, further clients wait until a file is free.
pub fn allow(connections: usize) {
    let wanted = (connections as u64).saturating_add(OTHERS);
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
