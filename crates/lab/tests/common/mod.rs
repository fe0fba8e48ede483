//! The binary under test, and a directory of its own for each test.

#![allow(dead_code, unused_imports)] // each test binary uses its part

#[path = "../../../cli/tests/common/run.rs"]
mod run;

pub use run::{Run, text};

use std::ffi::OsStr;
use std::path::Path;
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

    /// Whether nothing was left in the directory.
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

    /// Runs the binary and expects success; returns what it has written.
    pub fn ok<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Vec<u8> {
        self.run(args).ok()
    }
}
