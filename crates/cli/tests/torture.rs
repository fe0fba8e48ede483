//! `torture` with the real binary: what it writes and how it ends.

mod common;

use common::{Pool, text};
use serde_json::Value;

/// A small exploration of the heap and of the default index finds nothing, says what it has judged, and does so again.
#[test]
fn a_small_exploration_reports() {
    let pool = Pool::new();
    let small = ["--ops", "12", "--states", "200", "--seed", "3", "--json"];
    for index in ["roart", "heap"] {
        let run = || -> Value {
            let args = ["torture", "--index", index].into_iter().chain(small);
            serde_json::from_slice(&pool.ok(args)).expect("one line of JSON")
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
        assert_eq!(run()["states"], line["states"], "the same seed judges the same");
    }
    assert!(!pool.path().exists(), "no pool is touched");
}

/// The table is for people; usage errors are told from findings.
#[test]
fn a_table_and_usage() {
    let pool = Pool::new();
    let table = pool.ok(["torture", "--index", "wort", "--ops", "8", "--states", "50"]);
    assert!(text(&table).contains("states/s"), "{}", text(&table));
    assert!(text(&table).contains("wort"));
    pool.run(["torture", "--index", "tree"])
        .fails(2, &["no index is called 'tree'"]);
    pool.run(["torture", "--budget", "1s", "--states", "1"])
        .fails(2, &["cannot be used with"]);
    pool.run(["torture", "--budget", "5ms"]).fails(2, &["one unit"]);
}
