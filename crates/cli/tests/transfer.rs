//! `import` and `export`: arbitrary bytes are preserved, and malformed input is refused with its line.

mod common;

use common::{Pool, hostile_keys, text};
use std::collections::BTreeMap;
use std::fs;

/// Returns a pool with every hostile key, put through JSON with only base64.
fn hostile() -> (Pool, BTreeMap<Vec<u8>, Vec<u8>>) {
    use base64::prelude::{BASE64_STANDARD, Engine};
    let pool = Pool::new();
    let mut entries = BTreeMap::new();
    let mut input = String::new();
    for (i, key) in hostile_keys().into_iter().enumerate() {
        let value: Vec<u8> = key
            .iter()
            .rev()
            .copied()
            .chain(std::iter::repeat_n(i as u8, i % 20))
            .collect();
        let (key_base64, value_base64) = (BASE64_STANDARD.encode(&key), BASE64_STANDARD.encode(&value));
        input += &format!("{{\"key_base64\":\"{key_base64}\",\"value_base64\":\"{value_base64}\"}}\n");
        entries.insert(key, value);
    }
    pool.run_with(["import", "--format", "jsonl"], input.as_bytes())
        .ok();
    (pool, entries)
}

/// Export and import into another pool, by file and by pipe, in either format, yields the same entries.
#[test]
fn any_bytes_survive_a_round_trip() {
    let (pool, entries) = hostile();
    let keys = pool.ok(["scan", "--keys"]);
    assert_eq!(text(&keys).lines().count(), entries.len());
    for format in ["tsv", "jsonl"] {
        let name = format!("all.{format}");
        let run = pool.run(["export", &name]);
        assert_eq!((run.code, run.out.as_slice()), (0, b"".as_slice()));
        let file = fs::read(pool.file(&name)).expect("exported");
        assert!(std::str::from_utf8(&file).is_ok(), "text of any format is UTF-8");
        let piped = pool.ok(["export", "-", "--format", format]);
        assert!(file == piped, "file and pipe agree");

        let map = ["--map", format];
        pool.ok(["import", &name].iter().chain(&map));
        assert!(pool.ok(["export", "-"].iter().chain(&map)) == pool.ok(["export"]));
        let map = ["--map", &format!("{format} piped")];
        pool.run_with(["import", "-", "--format", format].iter().chain(&map), &piped)
            .ok();
        assert!(pool.ok(["export", "-"].iter().chain(&map)) == pool.ok(["export"]));
    }
    for (key, value) in entries
        .iter()
        .filter(|(key, _)| !key.contains(&0) && key.len() < 1000)
    {
        use std::os::unix::ffi::OsStrExt;
        let key = std::ffi::OsStr::from_bytes(key);
        assert_eq!(
            &pool.ok([
                "get".as_ref(),
                "--map".as_ref(),
                "tsv".as_ref(),
                "--".as_ref(),
                key
            ]),
            value
        );
    }
    pool.check();
}

/// An export onto the pool itself, by whatever name, is refused before anything is written.
#[test]
fn the_pool_is_not_exported_onto_itself() {
    let pool = Pool::new();
    pool.ok(["put", "k", "v"]);
    std::os::unix::fs::symlink(pool.path(), pool.file("symbolic")).expect("linked");
    fs::hard_link(pool.path(), pool.file("hard")).expect("linked");
    for name in ["wollemi.pool", "symbolic", "hard"] {
        pool.run(["export", name]).fails(2, &[name, "is the pool"]);
    }
    assert_eq!(pool.ok(["get", "k"]), b"v");
    pool.check();
}

/// A malformed line is named by its number; earlier entries are kept, later lines are not read.
#[test]
fn malformed_lines_are_named() {
    let pool = Pool::new();
    pool.run_with(["import"], b"a\t1\nb\t2\nc 3\nd\t4\n")
        .fails(5, &["standard input, line 3", "no tab"]);
    assert_eq!(pool.ok(["scan"]), b"a\t1\nb\t2\n");
    fs::write(
        pool.file("bad.jsonl"),
        "{\"key\":\"x\",\"value\":\"1\"}\n{\"key\":\n",
    )
    .expect("written");
    pool.run(["import", "bad.jsonl"])
        .fails(5, &["'bad.jsonl', line 2"]);
    assert_eq!(pool.ok(["get", "x"]), b"1");
    pool.run_with(["import", "--no-escapes", "--format", "jsonl"], b"")
        .fails(2, &["--no-escapes"]);
    let long = [&b"k".repeat(65_536)[..], b"\tv\n"].concat();
    pool.run_with(["import"], &long)
        .fails(5, &["standard input, line 1: key of 65536 bytes"]);
    pool.check();
}

/// The last line may lack a newline, the later of two equal keys wins, and `--no-escapes` keeps backslashes.
#[test]
fn lenient_where_nothing_is_lost() {
    let pool = Pool::new();
    let cut = pool.run_with(["import"], b"k\t1\n\t\nk\t2");
    assert_eq!(cut.code, 0, "{cut:?}");
    assert!(cut.err.contains("line 3: no end of line"), "{cut:?}");
    assert!(cut.err.contains("key 'k'"), "{cut:?}");
    assert_eq!(pool.ok(["scan"]), b"\t\nk\t2\n");
    pool.run_with(["import", "--no-escapes"], b"a\\x2db\tc\\\n").ok();
    assert_eq!(pool.ok(["get", r"a\x2db"]), b"c\\");
    let summary = pool.run_with(["import"], b"");
    assert!(summary.err.contains("imported 0 entries"), "{}", summary.err);
}

/// An export that fails leaves the previous file unchanged, and nothing else.
#[test]
fn an_export_is_whole_or_not_there() {
    let pool = Pool::new();
    pool.ok(["put", "k", "v"]);
    pool.ok(["export", "all.tsv"]);
    let lines: String = (0..20_000).map(|i| format!("key {i:06}\tvalue {i}\n")).collect();
    pool.run_with(["import", "-"], lines.as_bytes()).ok();
    // In blocks of 512 or 1024 bytes, depending on the shell.
    let script = "ulimit -f 16; trap '' XFSZ; exec \"$0\" export all.tsv";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_wollemi")]);
    shell.current_dir(pool.path().parent().expect("a directory"));
    let run = common::Run::from(shell.output().expect("runs"));
    run.fails(5, &["all.tsv", "too large"]);
    assert_eq!(fs::read(pool.file("all.tsv")).expect("there"), b"k\tv\n");
    assert!(pool.part_of("all.tsv").is_none());
    pool.ok(["export", "all.tsv"]);
    assert!(fs::read(pool.file("all.tsv")).expect("there").len() > lines.len());
}

/// A line without an end is refused before it fills the memory.
#[test]
fn a_line_has_a_longest_length() {
    let pool = Pool::new();
    pool.run(["import", "--no-escapes", "/dev/zero"])
        .fails(5, &["'/dev/zero', line 1: line too long"]);
}

/// Options without effect are refused.
#[test]
fn options_in_vain_are_refused() {
    let pool = Pool::new();
    pool.ok(["put", "k", "v"]);
    pool.run(["export", "--json"])
        .fails(2, &["--json", "--format jsonl"]);
    pool.run(["backup", "-", "--json"]).fails(2, &["--json"]);
    for command in [
        &["backup", "all.backup"][..],
        &["check"],
        &["stats"],
        &["compact"],
        &["level"],
        &["checkpoint"],
        &["accept-loss"],
    ] {
        pool.run(command.iter().chain(&["--map", "none"]))
            .fails(2, &["--map"]);
    }
    assert!(!pool.file("all.backup").exists());
}
