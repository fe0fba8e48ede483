//! What `wollemi-lab bench` prints, asked of a process of its own: `bench open` starts its program anew.
//!
//! Without arguments this is the test; with the arguments of a command it is the program under test.

use clap::Parser;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, ExitCode, Output};

#[cfg(feature = "peers")]
mod peers;

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
            "figures",
            "alloc",
            "transactions",
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
    figures_write_a_page_once(&directory.path().join("figures"));
    #[cfg(feature = "peers")]
    peers::compare_answers_every_target();
    #[cfg(feature = "peers")]
    peers::compare_syncs_every_write();
    #[cfg(feature = "peers")]
    peers::restart_asks_every_engine(tempfile::tempdir().expect("a directory for engines").path());
    #[cfg(feature = "peers")]
    peers::transactions_lose_nothing(tempfile::tempdir().expect("a directory for engines").path());
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
        // At least a turn of calls, after the kill.
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

/// Several threads recover, and replay DPTree's log; what they find is compared with what was put in.
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

/// A file that is there is nothing to make a pool of.
fn open_refuses_a_file_that_exists(pool: &Path) {
    std::fs::write(pool, "mine").expect("a file");
    let output = program("open --keys 1k --pool", &[pool]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("exists"));
    assert_eq!(std::fs::read(pool).expect("the file"), b"mine");
}

/// `alloc` has an object for each allocator that there is, in the same order whoever went first.
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

/// `figures` writes one page that needs nothing else, from runs that are not made again.
fn figures_write_a_page_once(directory: &Path) {
    let line = "figures --scale smoke --only wort-7,roart-2,limit --json --out";
    let figures = objects(line, &[directory]);
    // WORT's figure 7, ROART's 20 to 22, and the limit.
    assert_eq!(figures.len(), 5);
    for figure in &figures {
        assert_eq!(figure["failed"], Value::Array(Vec::new()), "{figure}");
        for series in figure["panels"][0]["series"].as_array().expect("series") {
            let values = series["values"].as_array().expect("values");
            assert!(
                values
                    .iter()
                    .all(|value| value["median"].as_f64().is_some_and(|median| median > 0.0)),
                "{series}"
            );
        }
    }
    let page = std::fs::read_to_string(directory.join("index.html")).expect("the page");
    assert!(page.contains("<svg") && page.contains("WORT Fig. 7") && !page.contains("src="));
    assert!(page.contains("A miss took") && !page.contains("Not calibrated"));
    let summary = std::fs::read_to_string(directory.join("summary.md")).expect("the table");
    assert!(
        summary.contains("| **WORT Fig. 7") && summary.contains("| inserts, wort: clustered to dense | 1.5 ")
    );
    let cells = || std::fs::read(directory.join("cells.jsonl")).expect("what was run");
    let before = cells();
    assert_eq!(objects(line, &[directory]), figures);
    assert_eq!(cells(), before);
    figures_are_held_against_others(directory);
    figures_show_timelines(directory);
    #[cfg(feature = "peers")]
    figures_show_peers(directory);
    let output = program("figures --scale smoke --only wort-7,roart-99 --out", &[directory]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("'roart-99'") && said.contains("dptree-13"),
        "{said}"
    );
}

/// What merges and recovery hold up is shown over time, of both indexes.
fn figures_show_timelines(directory: &Path) {
    let figures = objects("figures --scale smoke --only stalls --json --out", &[directory]);
    let [figure] = &figures[..] else {
        panic!("{} figures", figures.len())
    };
    assert_eq!(figure["failed"], Value::Array(Vec::new()), "{figure}");
    for panel in figure["panels"].as_array().expect("panels") {
        let timelines = panel["timelines"].as_array().expect("timelines");
        let names = timelines.iter().map(|timeline| &timeline["name"]);
        assert!(names.eq(["roart", "dptree"]), "{panel}");
    }
}

/// Peers stand beside ours in every panel.
#[cfg(feature = "peers")]
fn figures_show_peers(directory: &Path) {
    let figures = objects(
        "figures --scale smoke --only peers,restart --json --out",
        &[directory],
    );
    assert_eq!(figures.len(), 2);
    for figure in &figures {
        assert_eq!(figure["failed"], Value::Array(Vec::new()), "{figure}");
        for panel in figure["panels"].as_array().expect("panels") {
            let series = panel["series"].as_array().expect("series");
            assert!(series.len() > 3, "{panel}");
            for series in series {
                let values = series["values"].as_array().expect("values");
                assert!(values.iter().all(|value| value["median"].is_f64()), "{series}");
            }
        }
    }
}

/// What is held against itself finds each ratio where it was, once there are rounds to state a spread.
fn figures_are_held_against_others(directory: &Path) {
    let line = "figures --scale smoke --only wort-7 --rounds 2 --json --out";
    let objects = objects(line, &[directory, Path::new("--against"), directory]);
    let against = objects.last().expect("what holding gave");
    // Three kinds of keys, each index but the first.
    assert!(
        against["of"].as_u64().is_some_and(|of| of > 0 && of % 3 == 0),
        "{against}"
    );
    assert_eq!(against["met"], against["of"]);
    assert_eq!(
        (&against["unstated"], &against["missing"]),
        (&0.into(), &0.into())
    );
    let kept = std::fs::read_to_string(directory.join("against.json")).expect("what holding gave");
    assert_eq!(serde_json::from_str::<Value>(&kept).expect("JSON"), *against);
    let output = program(line, &[directory, Path::new("--against"), Path::new("nowhere")]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("nowhere/cells.jsonl"));
}
