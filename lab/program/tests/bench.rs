//! `bench` with the real binary: it runs and ends as it should. `lab/bench` tests its output.

mod common;

use common::Lab;
use serde_json::Value;

/// A benchmark runs, and reports as JSON; wrong usage is an error.
#[test]
fn benchmarks_run() {
    let lab = Lab::new();
    let out = lab.ok(["bench", "run", "--workload", "get", "--keys", "1000", "--json"]);
    let line: Value = serde_json::from_slice(&out).expect("one JSON object");
    assert_eq!(line["keys"], 1000);
    lab.run(["bench", "run", "--workload", "get", "--index", "none"])
        .fails(2, &["none"]);
    assert!(lab.is_empty(), "no pool is left");
}

/// If the server's program is missing, the error says how to build it.
#[test]
fn a_server_that_is_not_there_is_named() {
    let lab = Lab::new();
    lab.run(["bench", "server", "--wollemi", "nowhere/wollemi"])
        .fails(3, &["nowhere/wollemi", "--wollemi", "cargo build --release"]);
}
