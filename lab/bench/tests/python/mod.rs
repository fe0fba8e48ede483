//! A Python interpreter with matplotlib, which `lab/figures` needs. The first run installs it below the build
//! directory; `WOLLEMI_PYTHON` names an interpreter that has matplotlib already.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The directory of the figures' script.
pub const FIGURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../figures");

const MATPLOTLIB: &str = "matplotlib==3.11.2";

/// Runs a command and expects success.
pub fn run(command: &mut Command) {
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// Returns an interpreter with matplotlib, which it installs if necessary.
pub fn with_matplotlib() -> PathBuf {
    if let Some(python) = std::env::var_os("WOLLEMI_PYTHON") {
        return python.into();
    }
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("figures");
    let python = venv.join("bin/python");
    let has_it = Command::new(&python).args(["-c", "import matplotlib"]).output();
    if !has_it.is_ok_and(|output| output.status.success()) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
        run(Command::new(&python).args(["-m", "pip", "install", "--quiet", MATPLOTLIB]));
    }
    python
}
