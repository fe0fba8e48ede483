//! `exercise` with the real binary: its output and its exit codes.

mod common;

use common::{Lab, text};
use serde_json::Value;

/// A short run, which starts this program as further processes and kills them, reports that every answer was right, and
/// leaves no file behind.
#[test]
fn a_short_run_reports() {
    let lab = Lab::new();
    let args = [
        "exercise", "--index", "wort", "--calls", "20000", "--seed", "8", "--json", "--dir", ".",
    ];
    let line: Value = serde_json::from_slice(&lab.ok(args)).expect("one line of JSON");
    assert_eq!((&line["index"], &line["seed"]), (&"wort".into(), &8.into()));
    assert!(line["calls"].as_u64() >= Some(20_000), "{line}");
    assert!(line["kills"].as_u64() > Some(0), "{line}");
    let indexes = line["indexes"].as_object().expect("an object");
    assert_eq!(indexes.keys().collect::<Vec<_>>(), ["wort"], "{line}");
    assert!(indexes["wort"].as_u64() > Some(10_000), "{line}");
    assert!(lab.is_empty(), "no pool is left");
}

/// Wrong usage and an unreadable round have different exit codes, and `--help` lists the commands.
#[test]
fn usage() {
    let lab = Lab::new();
    lab.run(["exercise", "--index", "tree"])
        .fails(2, &["no index is called 'tree'"]);
    lab.run(["exercise", "--be-killed", "no round"])
        .fails(3, &["exercise cannot begin"]);
    let help = lab.ok(["--help"]);
    for command in ["bench", "torture", "exercise"] {
        assert!(text(&help).contains(command), "{}", text(&help));
    }
}

/// Two exercises cannot share a directory: each would find the other's pools damaged.
#[test]
fn a_directory_has_one_exercise() {
    let lab = Lab::new();
    let other = std::fs::File::open(lab.path()).expect("the directory");
    other.lock().expect("no other process has locked it");
    let args = ["exercise", "--index", "roart", "--calls", "1", "--dir", "."];
    lab.run(args)
        .fails(3, &["another exercise is using this directory"]);
    drop(other);
    lab.ok(args);
}

/// A short run of hot keys, which starts this program as further processes and kills them, reports its result, and
/// leaves no file behind.
#[test]
fn hot_keys_report() {
    let lab = Lab::new();
    let args = [
        "exercise", "--hot", "--index", "clht", "--calls", "1", "--json", "--dir", ".",
    ];
    let line: Value = serde_json::from_slice(&lab.ok(args)).expect("one line of JSON");
    assert_eq!(line["pools"], 1, "{line}");
    assert!(line["kills"].as_u64() >= Some(3), "{line}");
    assert!(lab.is_empty(), "no pool is left");
    lab.run(["exercise", "--hot", "--look", "."])
        .fails(3, &["hot.plan"]);
}
