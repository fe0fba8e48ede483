//! Runs the binary under test, in a directory of its own for each test.

#![allow(dead_code, unused_imports)] // each test binary uses its part

#[path = "../../../../crates/cli/tests/common/run.rs"]
mod run;

pub use run::{Run, text};

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A temporary directory in which the binary runs.
pub struct Lab {
    dir: TempDir,
}

impl Lab {
    pub fn new() -> Lab {
        Lab {
            dir: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// Returns whether the directory is empty.
    pub fn is_empty(&self) -> bool {
        let mut entries = std::fs::read_dir(self.path()).expect("the directory");
        entries.next().is_none()
    }

    /// Runs the binary to its end.
    pub fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Run {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wollemi-lab"));
        command.args(args).current_dir(self.path());
        run::to_end(&mut command, b"")
    }

    /// Runs the binary and expects success. Returns its standard output.
    pub fn ok<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Vec<u8> {
        self.run(args).ok()
    }
}

/// Returns the path of the program `wollemi`, beside the one under test. Builds it first if it does not exist, as in a
/// build of this crate's tests alone.
pub fn wollemi() -> PathBuf {
    let lab = PathBuf::from(env!("CARGO_BIN_EXE_wollemi-lab"));
    let program = lab.with_file_name("wollemi");
    if !program.exists() {
        let target = lab.ancestors().nth(2).expect("a build directory");
        let mut build = Command::new(env!("CARGO"));
        build
            .args(["build", "-p", "wollemi-cli", "--target-dir"])
            .arg(target);
        assert!(build.status().expect("cargo").success(), "{build:?}");
    }
    program
}
