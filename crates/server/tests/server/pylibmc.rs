//! A widely used client, pylibmc over libmemcached, reads and writes the server.

use crate::python::{python, run};
use crate::support::Running;
use std::path::Path;
use std::process::Command;

/// The client's functions, as its script checks them.
#[test]
fn pylibmc_reads_and_writes() {
    let server = Running::over_pool();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/clients/pylibmc_all.py");
    run(Command::new(python()).arg(script).arg(server.address.to_string()));
    assert_eq!(server.stop().failures, 0);
}
