//! The binary under test, with a separate directory for each test.

#![allow(dead_code, unused_imports)] // each test binary uses its part

mod before_exec;
mod run;
pub mod server;

pub use before_exec::{fail_write_out, hear_interrupts};
pub use run::{Run, text, to_end};

use std::ffi::OsStr;
use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use tempfile::TempDir;

/// A pool in a temporary directory.
pub struct Pool {
    dir: TempDir,
}

impl Pool {
    pub fn new() -> Pool {
        Pool {
            dir: tempfile::tempdir().expect("a temporary directory"),
        }
    }

    /// Returns the path of the pool's file, which the first write creates.
    pub fn path(&self) -> PathBuf {
        self.file("wollemi.pool")
    }

    /// Returns the path of a file beside the pool.
    pub fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the temporary file of this name, which is being written or was left by an interrupted command.
    pub fn part_of(&self, name: &str) -> Option<PathBuf> {
        let begin = format!(".{name}.wollemi-");
        let mut files = std::fs::read_dir(self.dir.path()).expect("a directory");
        files.find_map(|file| {
            let path = file.expect("a file").path();
            let is_part = path.file_name()?.to_str()?.starts_with(&begin);
            is_part.then_some(path)
        })
    }

    /// Returns a command of the binary, in the pool's directory, where the default pool is.
    pub fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_wollemi"));
        command
            .args(args)
            .current_dir(self.dir.path())
            .env_remove("WOLLEMI_POOL");
        command
    }

    /// Runs the binary to its end, with empty input.
    pub fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Run {
        self.run_with(args, b"")
    }

    /// Runs the binary to its end, with `input` as its input.
    pub fn run_with<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>, input: &[u8]) -> Run {
        run::to_end(&mut self.command(args), input)
    }

    /// Runs the binary and expects success; returns its output.
    pub fn ok<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Vec<u8> {
        self.run(args).ok()
    }

    /// Expects a clean check.
    pub fn check(&self) {
        let check = self.run(["check"]);
        assert_eq!(check.code, 0, "{check:?}");
    }
}

/// Returns an address without a listener: a port of a loopback address that only this process uses, so that no other
/// process gets the port.
pub fn free_address() -> String {
    let [_, rest @ ..] = std::process::id().to_be_bytes();
    let own = Ipv4Addr::new(127, rest[0], rest[1], rest[2]);
    let listener = TcpListener::bind((own, 0)).expect("a port");
    listener.local_addr().expect("bound").to_string()
}

/// Keys that have exposed bugs elsewhere.
pub fn hostile_keys() -> Vec<Vec<u8>> {
    let mut keys = vec![
        Vec::new(),
        b"\0".to_vec(),
        b"\0\0".to_vec(),
        b"a".to_vec(),
        b"a\0".to_vec(),
        b"a\0b".to_vec(),
        b"ab".to_vec(),
        b"\xff".to_vec(),
        b"\xff\xff".to_vec(),
        b"tab\there".to_vec(),
        b"line\nfeed\r".to_vec(),
        b"back\\slash\\t\\x41".to_vec(),
        "\u{2603}\u{feff}".into(),
        b"\xe2\x98".to_vec(),
        b"\"{}\"".to_vec(),
        vec![b'x'; 65_535],
        vec![0; 65_535],
    ];
    keys.extend((0..=255).map(|byte| vec![b'k', byte]));
    keys
}

/// A small random number generator (splitmix64); its seed determines everything.
pub struct Random(u64);

impl Random {
    /// Seeds it from the environment (`WOLLEMI_SEED`) or the clock, and prints the seed.
    pub fn announced(test: &str) -> Random {
        let seed = std::env::var("WOLLEMI_SEED")
            .ok()
            .and_then(|seed| seed.parse().ok());
        let now = || std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_nanos() as u64;
        let seed = seed.unwrap_or_else(now);
        println!("{test}: WOLLEMI_SEED={seed}");
        Random(seed)
    }

    pub fn from_seed(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}
