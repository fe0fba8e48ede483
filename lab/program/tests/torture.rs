//! `torture` with the real binary: its output and its exit codes.

mod common;

use common::{Lab, text};
use serde_json::Value;

/// A small exploration of the heap and of the default index finds no failure, reports its counts, and is reproducible.
#[test]
fn a_small_exploration_reports() {
    let lab = Lab::new();
    let small = ["--ops", "12", "--states", "200", "--seed", "3", "--json"];
    for index in ["roart", "heap"] {
        let run = || -> Value {
            let args = ["torture", "--index", index].into_iter().chain(small);
            serde_json::from_slice(&lab.ok(args)).expect("one line of JSON")
        };
        let line = run();
        assert_eq!(
            line["index"].as_str().map(|name| name.contains(index)),
            Some(true)
        );
        assert_eq!(line["model"], "power");
        assert_eq!(line["seed"], 3);
        assert_eq!(line["failures"], 0);
        assert_eq!(line["counterexample"], Value::Null);
        for field in ["histories", "crash_points", "images"] {
            assert!(line[field].as_u64() > Some(0), "{field}: {line}");
        }
        assert!(line["states"].as_u64() >= Some(200), "{line}");
        assert!(line["states_per_s"].is_f64());
        let operations = line["reached"]["operations"].as_object().expect("an object");
        assert!(!operations.is_empty(), "{line}");
        assert_eq!(
            run()["states"],
            line["states"],
            "the same seed judges the same states"
        );
    }
    assert!(lab.is_empty(), "no pool is created");
}

/// `--history` runs the history of a seed alone, with as many threads as it has among the others.
#[test]
fn one_history_alone() {
    let lab = Lab::new();
    let run = |more: &[&str]| -> Value {
        let args = [
            "torture", "--index", "woart", "--ops", "8", "--seed", "3", "--json",
        ];
        serde_json::from_slice(&lab.ok(args.iter().chain(more).copied())).expect("one line of JSON")
    };
    let first = run(&["--states", "1"]);
    assert_eq!(first["histories"], 1);
    let alone = run(&["--history", "3"]);
    for field in ["histories", "operations", "crash_points", "states"] {
        assert_eq!(alone[field], first[field], "{field}");
    }
    let fourth = run(&["--history", "6"]);
    assert_eq!(fourth["histories"], 1);
    assert_eq!(
        run(&["--history", "6", "--threads", "4"])["states"],
        fourth["states"]
    );
    assert_ne!(
        run(&["--history", "6", "--threads", "1"])["states"],
        fourth["states"]
    );
}

/// Without `--json` it prints a table; wrong usage has exit code 2.
#[test]
fn a_table_and_usage() {
    let lab = Lab::new();
    let table = lab.ok(["torture", "--index", "wort", "--ops", "8", "--states", "50"]);
    assert!(text(&table).contains("states/s"), "{}", text(&table));
    assert!(text(&table).contains("wort"));
    lab.run(["torture", "--index", "tree"])
        .fails(2, &["no index is called 'tree'"]);
    lab.run(["torture", "--budget", "1s", "--states", "1"])
        .fails(2, &["cannot be used with"]);
    lab.run(["torture", "--budget", "5ms"])
        .fails(2, &["unit must be"]);
    lab.run(["torture", "--index", "roart", "--model", "word"])
        .fails(2, &["does not claim the model word"]);
    lab.run(["torture", "--mutants", "--model", "process"])
        .fails(2, &["no persist can be missed"]);
}

/// `--model all` runs all models in turn, and reports each model that an index does not claim, with the reason.
#[test]
fn all_models_in_turn() {
    let lab = Lab::new();
    let run = |index: &str| -> Vec<Value> {
        let args = [
            "torture", "--index", index, "--model", "all", "--ops", "8", "--states", "50", "--json",
        ];
        let out = lab.ok(args);
        let lines = out.split(|&byte| byte == b'\n').filter(|line| !line.is_empty());
        lines
            .map(|line| serde_json::from_slice(line).expect("a line of JSON"))
            .collect()
    };
    let models = |lines: &[Value]| -> Vec<String> {
        let models = lines.iter().map(|line| line["model"].as_str().expect("a name"));
        models.map(str::to_owned).collect()
    };
    let wort = run("wort");
    assert_eq!(models(&wort), ["power", "word", "process"]);
    assert!(
        wort.iter().all(|line| line["states"].as_u64() >= Some(50)),
        "{wort:?}"
    );
    let roart = run("roart");
    assert_eq!(models(&roart), ["power", "process", "word"]);
    let reason = roart[2]["left_out"].as_str().expect("a reason");
    assert!(reason.contains("does not claim the model word"), "{reason}");
    let args = [
        "torture", "--index", "roart", "--model", "all", "--ops", "8", "--states", "50",
    ];
    let table = lab.ok(args);
    assert!(
        text(&table).contains("word left out: it relies on"),
        "{}",
        text(&table)
    );
}

/// A hunt too short to detect the persists that it omits reports the survivors, ends with exit code 1, and keeps to its
/// bound.
#[test]
fn survivors_are_findings() {
    let lab = Lab::new();
    let run = lab.run([
        "torture",
        "--index",
        "heap",
        "--ops",
        "6",
        "--mutants",
        "--states",
        "400",
        "--json",
    ]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(run.err, "", "no progress bar without a terminal");
    let line: Value = serde_json::from_slice(&run.out).expect("one line of JSON");
    let survivors = line["survivors"].as_array().expect("an array");
    assert!(survivors.iter().any(|one| one["reason"].is_null()), "{line}");
    let states = line["states"].as_u64().zip(line["mutant_states"].as_u64());
    let (whole, of_mutants) = states.expect("numbers");
    // One history and the walk of one mutant may exceed the bound.
    assert!(whole + of_mutants < 400 + 4000, "{line}");
    assert!(line["mutants"].as_u64() > line["killed"].as_u64(), "{line}");
}
