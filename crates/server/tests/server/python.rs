//! An interpreter with a client that people use, pymemcache. The command line's tests share it.
//!
//! It is installed under the build directory by the first run; `WOLLEMI_PYTHON` names an interpreter that has it
//! already.

use std::path::{Path, PathBuf};
use std::process::Command;

const CLIENT: &str = "pymemcache==4.0.0";

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
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("pymemcache");
    let python = venv.join("bin/python");
    let has_client = Command::new(&python).args(["-c", "import pymemcache"]).output();
    if !has_client.is_ok_and(|output| output.status.success()) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", CLIENT]));
    }
    python
}
