//! A Python interpreter with the clients pymemcache, pylibmc and redis-py, and with Prometheus's parser. The tests of
//! the command line share it.
//!
//! The first run installs it under the build directory; `WOLLEMI_PYTHON` names an interpreter that already has them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const CLIENTS: [&str; 4] = [
    "pymemcache==4.0.0",
    "pylibmc==1.6.3",
    "redis==6.4.0",
    "prometheus-client==0.26.0",
];

/// Number of attempts to download.
const TRIES: usize = 3;

/// Runs it and expects success.
pub fn run(command: &mut Command) {
    let status = command
        .status()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?}: {status}");
}

/// Returns the interpreter. Concurrent tests install it once.
pub fn python() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(install)
}

fn install() -> PathBuf {
    if let Some(python) = std::env::var_os("WOLLEMI_PYTHON") {
        return python.into();
    }
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients");
    let python = venv.join("bin/python");
    // Concurrent test programs share it too.
    let lock = File::create(venv.with_extension("lock")).expect("a file");
    lock.lock().expect("a lock");
    let has_clients = Command::new(&python)
        .args(["-c", "import prometheus_client, pylibmc, pymemcache, redis"])
        .output();
    if !has_clients.is_ok_and(|output| output.status.success()) {
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&venv));
        let installed = (0..TRIES).any(|_| {
            let pip = Command::new(&python)
                .args(["-m", "pip", "install", "--quiet"])
                .args(CLIENTS)
                .status();
            pip.is_ok_and(|status| status.success())
        });
        assert!(installed, "{CLIENTS:?} cannot be installed");
    }
    python
}
