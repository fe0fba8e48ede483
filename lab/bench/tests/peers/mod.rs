//! Tests the output of `compare`, `restart`, `transactions` and `durable`, which measure ours beside peers.

use crate::{objects, program};
use serde_json::Value;
use std::path::Path;

/// `compare` measures every engine, and judges each target once.
pub fn compare_answers_every_target() {
    let line =
        "compare --with part,clht --keys 5k --str-keys 4k --durable-keys 200 --ops 1k --rounds 2 --json";
    let objects = objects(line, &[]);
    let count = |record: &str, section: &str| {
        let of = |object: &&Value| object["record"] == record && object["section"] == section;
        objects.iter().filter(of).count()
    };
    // Loads, gets, scans, updates, YCSB A, inserts and removals for each engine, but no scans of P-CLHT, and
    // `multi_get` for ours: seven engines for u64, six for str; for print8 only ours.
    assert_eq!(
        count("throughput", "memory"),
        (7 * 7 + 2) + (7 * 6 + 2) + (7 * 3 + 2)
    );
    // Of ROART to all others, among which P-ART has `multi_get`, too, and P-CLHT that instead of scans.
    assert_eq!(count("ratio", "memory"), (7 * 6 + 1) + (7 * 5 + 1) + (7 * 2 + 1));
    let durable = if cfg!(feature = "rocksdb") { 5 } else { 4 };
    assert_eq!(count("throughput", "durable"), 2 * (7 * (durable + 1) + 1));
    assert_eq!(count("ratio", "durable"), 2 * 7 * durable);
    // Loads, updates, YCSB A, inserts and removals for ours, for each kind of keys.
    assert_eq!(count("persists", "memory"), 3 * 5);
    assert_eq!(count("persists", "durable"), 2 * 5);
    let records = |name: &str| objects.iter().filter(|object| object["record"] == name).count();
    assert_eq!(records("space"), 3 * 3 + 2);
    assert_eq!(records("target"), 9);
    // For u64 the programs have 35 columns, of which five are scans, and for str 19 columns, of which four are scans:
    // each beside three indexes, and the scans beside two.
    assert_eq!(records("published"), 3 * (35 + 19) - (5 + 4));
    assert_eq!(records("files"), 2 * (durable + 1));
    for files in objects.iter().filter(|object| object["record"] == "files") {
        assert!(
            files["bytes_per_key"].as_f64().is_some_and(|bytes| bytes > 8.0),
            "{files}"
        );
    }
    // 5000 loads in 28 turns suffice for a median, 25 scans do not.
    let latencies = |operation: &str| {
        let of = |object: &&Value| {
            object["record"] == "throughput"
                && (&object["section"], &object["key_kind"]) == (&"memory".into(), &"u64".into())
                && object["operation"] == operation
        };
        let all = objects.iter().filter(of);
        all.map(|object| object["p50_ns"]["median"].as_f64())
            .collect::<Vec<_>>()
    };
    assert!(latencies("load").iter().all(|ns| ns.is_some_and(|ns| ns > 0.0)));
    assert!(latencies("scan100").iter().all(Option::is_none));
    assert_eq!(records("conditions"), 1);
    // A calibration for each round: two rounds of four comparisons, and one of print8.
    let conditions = objects.iter().find(|object| object["record"] == "conditions");
    let pace = conditions.expect("conditions")["pace"]
        .as_array()
        .expect("rounds");
    assert_eq!(pace.len(), 2 * 4 + 1);
    for round in pace {
        let miss = |when: &str, of: &str| round[when][of].as_f64().is_some_and(|ns| ns > 0.0);
        assert!(
            miss("before", "dependent_ns") && miss("after", "parallel_ns") && round["drifted"].is_boolean(),
            "{round}"
        );
    }
    for target in objects.iter().filter(|object| object["record"] == "target") {
        assert!(
            target["met"].is_boolean() && target["measured"]["median"].is_f64(),
            "{target}"
        );
    }
}

/// With `--sync` only persistent engines are compared, and their settings say that they sync. The setting of ours says
/// that it does so only on DAX.
pub fn compare_syncs_every_write() {
    let objects = objects("compare --sync --durable-keys 100 --rounds 1 --json", &[]);
    let is = |record: &'static str| move |object: &&Value| object["record"] == record;
    for object in objects.iter().filter(is("throughput")) {
        assert_eq!(object["section"], "synced", "{object}");
        let setting = object["setting"].as_str().expect("a setting");
        let level = setting.contains("not DAX") || setting.contains("level power");
        assert_eq!(level, object["engine"] == "roart", "{setting}");
        assert!(!setting.contains("survives a kill"), "{setting}");
    }
    let engines = if cfg!(feature = "rocksdb") { 6 } else { 5 };
    assert_eq!(
        objects.iter().filter(is("throughput")).count(),
        2 * (7 * engines + 1)
    );
    assert_eq!(objects.iter().filter(is("target")).count(), 0);
}

/// `restart` kills and restarts every persistent engine, and removes its files.
pub fn restart_asks_every_engine(directory: &Path) {
    let objects = objects("restart --keys 500 --rounds 2 --json --dir", &[directory]);
    assert_eq!(objects.len(), if cfg!(feature = "rocksdb") { 6 } else { 5 });
    for object in &objects {
        assert!(
            object["first_get_ms"]["median"]
                .as_f64()
                .is_some_and(|ms| ms > 0.0),
            "{object}"
        );
        let pace = object["pace"].as_array().expect("rounds");
        assert_eq!(pace.len(), 2, "{object}");
        assert!(pace.iter().all(|round| round["drifted"].is_boolean()), "{object}");
    }
    let objects = crate::objects(
        "restart --engine dptree,redb --keys 200,300 --rounds 1 --json --dir",
        &[directory],
    );
    let asked = objects.iter().map(|object| {
        let engine = object["engine"].as_str().expect("an engine");
        (engine, object["keys"].as_u64().expect("keys"))
    });
    let expected = [("dptree", 200), ("redb", 200), ("dptree", 300), ("redb", 300)];
    assert!(asked.eq(expected), "{objects:?}");
    assert!(!program("restart --engine nothing", &[]).status.success());
    assert_eq!(std::fs::read_dir(directory).expect("the directory").count(), 0);
}

/// `transactions` measures every engine in every case, and counts the conflicts of engines that have any.
pub fn transactions_lose_nothing(directory: &Path) {
    let line = "transactions --keys 50 --threads 1,4 --seconds 0.1 --rounds 2 --json --dir";
    let objects = objects(line, &[directory]);
    let engines = ["wollemi", "redb", "fjall", "lmdb"];
    let is = |record: &'static str| move |object: &&Value| object["record"] == record;
    let cases: Vec<&Value> = objects.iter().filter(is("transactions")).collect();
    let reported = cases.iter().map(|case| {
        let text = |field: &str| case[field].as_str().expect("a name").to_owned();
        (text("distribution"), case["threads"].as_u64(), text("engine"))
    });
    let expected = ["uniform", "zipfian"].into_iter().flat_map(|distribution| {
        let threads = [Some(1), Some(4)].into_iter();
        threads.flat_map(move |threads| {
            engines.map(|engine| (distribution.to_owned(), threads, engine.to_owned()))
        })
    });
    assert!(reported.eq(expected), "{cases:?}");
    for case in &cases {
        assert!(
            case["ktps"]["median"].as_f64().is_some_and(|ktps| ktps > 0.0),
            "{case}"
        );
        let ratio = case["ratio"]["median"].as_f64();
        assert_eq!(
            ratio.is_some_and(|ratio| ratio > 0.0),
            case["engine"] != "wollemi",
            "{case}"
        );
        // A single thread has no conflicts, and neither has an engine with one writer at a time.
        let alone = case["threads"] == 1 || case["engine"] == "redb" || case["engine"] == "lmdb";
        let max = case["conflicts_per_1000"]["max"].as_f64();
        assert!(!alone || max == Some(0.0), "{case}");
    }
    let about = objects.iter().filter(is("about")).map(|about| &about["engine"]);
    assert!(about.eq(engines), "{objects:?}");
    let conditions = objects.iter().find(is("conditions")).expect("conditions");
    assert_eq!(conditions["pace"].as_array().map(Vec::len), Some(2));
    assert_eq!(std::fs::read_dir(directory).expect("the directory").count(), 0);
}

/// `durable` measures every part on a disk, rejects a memory file system, and removes its files.
pub fn durable_measures_every_part() {
    // Beside the program, since the system's temporary directory may be in memory.
    let here = std::env::current_exe().expect("the path of this test");
    let directory = tempfile::tempdir_in(here.parent().expect("its directory")).expect("a directory");
    let line = "durable --quick --part writes,levels,upkeep,restart --json --dir";
    let objects = objects(line, &[directory.path()]);
    let all = |record: &'static str| objects.iter().filter(move |object| object["record"] == record);
    let peers = if cfg!(feature = "rocksdb") { 5 } else { 4 };
    // For 1, 8 and 64 threads and for 64 pairs per commit; for peers, ours and the raw loop.
    assert_eq!(all("writes").count(), 4 * (peers + 2));
    for object in all("writes") {
        let figure = |name: &str| object[name]["median"].as_f64();
        assert!(figure("krps").is_some_and(|krps| krps > 0.0), "{object}");
        let (ours, raw) = (object["engine"] == "wollemi", object["engine"] == "raw");
        assert_eq!(figure("ratio").is_none(), ours, "{object}");
        assert_eq!(figure("pairs_a_sync").is_some(), ours || raw, "{object}");
    }
    // Upserts and gets at two levels.
    assert_eq!(all("level").count(), 4);
    // Gets beside a writer: of all keys at two levels, with two durabilities at one, and of few keys, written or not.
    assert_eq!(all("beside_writer").count(), 3 + 2 * 2);
    for object in all("beside_writer") {
        let figure = |name: &str| object[name]["median"].as_f64();
        let level = object["level"].as_str().expect("a level");
        assert!(
            figure("kops") > Some(0.0) && figure("writer_kops") > Some(0.0),
            "{object}"
        );
        assert_eq!(figure("to_process").is_some(), level != "process", "{object}");
        for name in ["waited_percent", "sync_us"] {
            assert_eq!(figure(name).is_some(), level == "disk, immediate", "{object}");
        }
    }
    assert_eq!(all("checkpoint").count(), 2);
    assert!(all("checkpoint").all(|object| object["checkpoints"].as_u64() >= Some(2)));
    let amplification = all("amplification").next().expect("amplification");
    // A record has a key, a value and a header.
    assert!(
        amplification["log"]
            .as_f64()
            .is_some_and(|log| (1.0..2.0).contains(&log))
    );
    // Two shapes, after a kill and after power loss.
    let is_redis = |object: &&Value| {
        object["engine"]
            .as_str()
            .is_some_and(|name| name.starts_with("redis"))
    };
    let redis = all("restart").filter(is_redis).count();
    assert_eq!(all("restart").count() - redis, 4 * (peers + 1));
    // With the append-only file and with a snapshot, if it is installed.
    let left_out = all("left_out").filter(|object| object["what"].as_str() != Some("redis"));
    assert_eq!(redis + 2 * left_out.count(), 4 * 2);
    assert!(all("restart").all(|object| object["first_get_ms"]["median"].as_f64() > Some(0.0)));
    assert_eq!(all("conditions").count(), 1);
    assert_eq!(
        std::fs::read_dir(directory.path())
            .expect("the directory")
            .count(),
        0
    );
    if let Ok(memory) = tempfile::tempdir_in("/dev/shm") {
        let refused = program("durable --quick --dir", &[memory.path()]);
        assert!(String::from_utf8_lossy(&refused.stderr).contains("memory file system"));
    }
}
