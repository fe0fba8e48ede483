//! A client that people use, pymemcache, reads and writes the server.
//!
//! It is installed under the build directory by the first run; `WOLLEMI_PYTHON` names an interpreter that has it
//! already.

use crate::support::Running;
use std::path::{Path, PathBuf};
use std::process::Command;

const CLIENT: &str = "pymemcache==4.0.0";

fn run(command: &mut Command) {
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// An interpreter with the client.
fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("WOLLEMI_PYTHON") {
        return python.into();
    }
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pymemcache");
    let python = venv.join("bin/python");
    let has_client = Command::new(&python).args(["-c", "import pymemcache"]).output();
    if !has_client.is_ok_and(|output| output.status.success()) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", CLIENT]));
    }
    python
}

/// The client's whole interface, as its script checks it.
#[test]
fn pymemcache_reads_and_writes() {
    let server = Running::start();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/clients/pymemcache_all.py");
    run(Command::new(python())
        .arg(script)
        .arg("127.0.0.1")
        .arg(server.address.port().to_string()));
    assert_eq!(server.stop().failures, 0);
}
