//! Tests the output of `wollemi-lab bench`, run in a separate process because `bench open` re-executes its program.
//!
//! Without arguments this program is the test; with the arguments of a command it is the program under test.

use clap::Parser;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitCode, Output};

#[cfg(feature = "peers")]
mod peers;
mod python;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: bench::Args,
}

fn main() -> ExitCode {
    let first = std::env::args().nth(1);
    if first.is_some_and(|first| {
        [
            "run",
            "open",
            "compare",
            "restart",
            "about",
            "alloc",
            "transactions",
            "durable",
        ]
        .contains(&first.as_str())
    }) {
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
    open_recovers_with_several_threads(pool);
    open_refuses_a_file_that_exists(pool);
    alloc_measures_each_allocator();
    figure_tests_pass();
    figure_command_lines_parse();
    #[cfg(feature = "peers")]
    peers::compare_answers_every_target();
    #[cfg(feature = "peers")]
    peers::compare_syncs_every_write();
    #[cfg(feature = "peers")]
    peers::restart_asks_every_engine(tempfile::tempdir().expect("a directory for engines").path());
    #[cfg(feature = "peers")]
    peers::transactions_lose_nothing(tempfile::tempdir().expect("a directory for engines").path());
    #[cfg(feature = "peers")]
    peers::durable_measures_every_part();
    ExitCode::SUCCESS
}

fn program(line: &str, more: &[&Path]) -> Output {
    Command::new(std::env::current_exe().expect("the path of this test"))
        .args(line.split_whitespace())
        .args(more)
        .output()
        .expect("this test as a program")
}

/// Runs a command and returns the JSON objects that it prints, one per line.
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

/// `open` prints an object for each size and kind of end, finds the keys after a kill, and removes its pool.
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
        // At least 64 calls, only after a kill.
        let done = object["timeline"]["ops"].as_array().map(|slots| {
            let ops = slots.iter().map(|ops| ops.as_u64().expect("operations"));
            ops.sum::<u64>()
        });
        assert_eq!(done.is_some(), object["after"] == "kill", "{object}");
        assert!(done.is_none_or(|ops| ops >= 64), "{object}");
        assert!(object["pace"]["drifted"].is_boolean(), "{object}");
    }
    assert!(!pool.exists());
}

/// Several threads recover and replay DPTree's log, and the keys are found afterwards.
fn open_recovers_with_several_threads(pool: &Path) {
    for index in ["roart", "dptree"] {
        let line = format!("open --index {index} --keys 3k --rounds 1 --recovery-threads 2 --json --pool");
        for object in objects(&line, &[pool]) {
            assert_eq!(object["recovery_threads"], 2);
        }
    }
    let output = program("open --keys 1k --recovery-threads 257 --pool", &[pool]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("threads from 1 to 256"));
    assert!(!pool.exists());
}

/// `open` rejects an existing file, and leaves it unchanged.
fn open_refuses_a_file_that_exists(pool: &Path) {
    std::fs::write(pool, "mine").expect("a file");
    let output = program("open --keys 1k --pool", &[pool]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("exists"));
    assert_eq!(std::fs::read(pool).expect("the file"), b"mine");
}

/// `alloc` prints an object for each allocator, always in the same order.
fn alloc_measures_each_allocator() {
    let objects = objects("alloc --chunks 2k --rounds 3 --json", &[]);
    let names: Vec<_> = objects.iter().map(|object| &object["allocator"]).collect();
    assert!(
        names == ["dcmm", "malloc"] || names == ["dcmm", "libpmemobj", "malloc"],
        "{names:?}"
    );
    for object in &objects {
        let mops = &object["mops"]["median"];
        assert!(mops.as_f64().is_some_and(|mops| mops > 0.0), "{object}");
        assert_eq!(
            (&object["rounds"], &object["chunks"]),
            (&3.into(), &2000.into()),
            "{object}"
        );
    }
}

/// The tests of `lab/figures` pass with this program.
fn figure_tests_pass() {
    let mut tests = Command::new(python::with_matplotlib());
    tests.arg(python::FIGURES.to_owned() + "/tests.py");
    tests.env(
        "WOLLEMI_BENCH",
        std::env::current_exe().expect("the path of this test"),
    );
    python::run(&mut tests);
}

/// The command lines of all figures parse, at every scale and on few and many cores.
fn figure_command_lines_parse() {
    let program = std::env::current_exe().expect("the path of this test");
    for (scale, cores) in [("smoke", "1"), ("laptop", "2"), ("paper", "64")] {
        let output = Command::new("python3")
            .args([
                python::FIGURES,
                "--list",
                "--scale",
                scale,
                "--cores",
                cores,
                "--program",
            ])
            .arg(&program)
            .output()
            .expect("python3");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(
            text.lines().count() > 100,
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        for line in text.lines() {
            // As the script runs it.
            let words = ["bench"]
                .into_iter()
                .chain(line.split_whitespace())
                .chain(["--json"]);
            if let Err(error) = Line::try_parse_from(words) {
                panic!("{line}: {error}");
            }
        }
    }
}
