//! A widely used client, pymemcache, reads and writes the server.

use crate::python::{python, run};
use crate::support::Running;
use std::path::Path;
use std::process::Command;

/// The client's whole interface, as its script checks it.
#[test]
fn pymemcache_reads_and_writes() {
    let server = Running::over_pool();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/clients/pymemcache_all.py");
    run(Command::new(python())
        .arg(script)
        .arg("127.0.0.1")
        .arg(server.address.port().to_string()));
    assert_eq!(server.stop().failures, 0);
}
