//! An interpreter with clients that people use, pymemcache and redis-py. The command line's tests share it.
//!
//! It is installed under the build directory by the first run; `WOLLEMI_PYTHON` names an interpreter that has them
//! already.

use std::path::{Path, PathBuf};
use std::process::Command;

const CLIENTS: [&str; 2] = ["pymemcache==4.0.0", "redis==6.4.0"];

/// Runs it and expects success.
pub fn run(command: &mut Command) {
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// The interpreter.
pub fn python() -> PathBuf {
    if let Some(python) = std::env::var_os("WOLLEMI_PYTHON") {
        return python.into();
    }
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    let python = venv.join("bin/python");
    let has_clients = Command::new(&python)
        .args(["-c", "import pymemcache, redis"])
        .output();
    if !has_clients.is_ok_and(|output| output.status.success()) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
        run(Command::new(&python)
            .args(["-m", "pip", "install", "--quiet"])
            .args(CLIENTS));
    }
    python
}
