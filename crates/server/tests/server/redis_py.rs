//! A widely used client, redis-py, reads and writes the server.

use crate::python::{python, run};
use crate::support::Running;
use std::path::Path;
use std::process::Command;

/// The client's functions for strings, keys, transactions and connections, as its script checks them, in both
/// protocols.
#[test]
fn redis_py_reads_and_writes() {
    let server = Running::over_pool();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/clients/redis_all.py");
    let port = server
        .redis
        .expect("the server serves Redis clients")
        .port()
        .to_string();
    for protocol in ["2", "3"] {
        run(Command::new(python())
            .arg(&script)
            .args(["127.0.0.1", &port, protocol]));
    }
    assert_eq!(server.stop().failures, 0);
}
