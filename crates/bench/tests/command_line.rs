//! What `wollemi bench` prints, asked of a process of its own: `bench open` starts its program anew.
//!
//! Without arguments this is the test; with the arguments of a command it is the program under test.

use clap::Parser;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitCode, Output};

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: bench::Args,
}

fn main() -> ExitCode {
    let first = std::env::args().nth(1);
    if first.is_some_and(|first| ["run", "open", "compare"].contains(&first.as_str())) {
        return match bench::run(&Line::parse().args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{error}");
                ExitCode::FAILURE
            }
        };
    }
    let directory = tempfile::tempdir().expect("a directory for pools");
    let pool = &directory.path().join("pool");
    run_prints_one_object();
    open_prints_an_object_a_size(pool);
    open_refuses_a_file_that_exists(pool);
    #[cfg(feature = "peers")]
    compare_answers_every_target();
    ExitCode::SUCCESS
}

fn program(line: &str, more: &[&Path]) -> Output {
    Command::new(std::env::current_exe().expect("the path of this test"))
        .args(line.split_whitespace())
        .args(more)
        .output()
        .expect("this test as a program")
}

/// The JSON objects that a command prints, one a line.
fn objects(line: &str, more: &[&Path]) -> Vec<Value> {
    let Output {
        status,
        stdout,
        stderr,
    } = program(line, more);
    assert!(status.success(), "{line}: {}", String::from_utf8_lossy(&stderr));
    let text = String::from_utf8(stdout).expect("UTF-8");
    text.lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect()
}

/// `run` prints one object with the figures that scripts read.
fn run_prints_one_object() {
    let objects = objects(
        "run --workload load --keys 2k --key-kind str --threads 2 --json",
        &[],
    );
    let [object] = &objects[..] else {
        panic!("{} lines", objects.len())
    };
    for (field, value) in [("index", "roart"), ("workload", "load"), ("key_kind", "str")] {
        assert_eq!(object[field], value);
    }
    for (field, value) in [("keys", 2000), ("ops", 2000), ("threads", 2)] {
        assert_eq!(object[field], value);
    }
    for field in [
        "seconds",
        "mops",
        "p50_ns",
        "p99_ns",
        "write_backs_per_op",
        "fences_per_op",
        "bytes_per_key",
    ] {
        assert!(
            object[field].as_f64().is_some_and(|figure| figure > 0.0),
            "{field}: {}",
            object[field]
        );
    }
    assert!(object["huge_pages"].is_boolean() && object["machine"].is_object());
}

/// `open` prints an object for each size and way to end, finds the keys after a kill, and removes its pool.
fn open_prints_an_object_a_size(pool: &Path) {
    let objects = objects("open --keys 1k,5k --rounds 2 --json --pool", &[pool]);
    let seen: Vec<_> = objects
        .iter()
        .map(|object| (object["keys"].as_u64(), object["after"].as_str()))
        .collect();
    let sizes = [Some(1000), Some(5000)];
    let expected: Vec<_> = sizes
        .into_iter()
        .flat_map(|keys| [(keys, Some("kill")), (keys, Some("close"))])
        .collect();
    assert_eq!(seen, expected);
    for object in &objects {
        let [open, first_get, recovered] =
            ["open_ms", "first_get_ms", "recovered_ms"].map(|field| object[field].as_f64().expect(field));
        assert!(
            0.0 < open && open <= first_get && first_get <= recovered,
            "{object}"
        );
    }
    assert!(!pool.exists());
}

/// A file that is there is nothing to make a pool of.
fn open_refuses_a_file_that_exists(pool: &Path) {
    std::fs::write(pool, "mine").expect("a file");
    let output = program("open --keys 1k --pool", &[pool]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("exists"));
    assert_eq!(std::fs::read(pool).expect("the file"), b"mine");
}

/// `compare` measures every engine in turn, and answers each target once.
#[cfg(feature = "peers")]
fn compare_answers_every_target() {
    let objects = objects("compare --keys 5k --str-keys 4k --ops 2k --rounds 2 --json", &[]);
    let records = |name: &str| objects.iter().filter(|object| object["record"] == name).count();
    // Insert, get and scan of four engines on u64 and of three on str, and a multi_get each; print8 of ours alone.
    assert_eq!(records("throughput"), (3 * 4 + 1) + (3 * 3 + 1) + 4);
    assert_eq!(records("ratio"), 3 * 3 + 3 * 2);
    assert_eq!(records("space"), 3);
    assert_eq!(records("target"), 9);
    assert_eq!(records("conditions"), 1);
    for target in objects.iter().filter(|object| object["record"] == "target") {
        assert!(
            target["met"].is_boolean() && target["measured"]["median"].is_f64(),
            "{target}"
        );
    }
}
