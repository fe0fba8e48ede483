//! Properties of maps of every index: each is created, read, written, reopened after a kill, checked and listed by its
//! name.

mod common;

use common::{Pool, text};
use std::io::Write;
use std::process::Stdio;
use wollemi::IndexKind;

/// Returns the kinds that maps can be created with.
fn kinds() -> impl Iterator<Item = IndexKind> {
    IndexKind::ALL.iter().copied().filter(|kind| !kind.is_ablation())
}

/// Sorts lines by key: an index without order returns them in its own order.
fn sorted(lines: &[u8]) -> String {
    let mut lines: Vec<&str> = text(lines).split_inclusive('\n').collect();
    lines.sort_unstable();
    lines.concat()
}

#[test]
fn each_index_is_made_written_read_and_checked() {
    for kind in kinds() {
        let pool = Pool::new();
        let entries = "a\t1\nab\t2\nabc\t\nb\tlonger than a word\n";
        pool.run_with(["import", "--index", kind.name()], entries.as_bytes())
            .ok();
        assert_eq!(sorted(&pool.ok(["scan"])), entries, "{kind}");
        assert_eq!(sorted(&pool.ok(["export"])), entries, "{kind}");
        assert_eq!(pool.ok(["get", "ab"]), b"2", "{kind}");
        pool.ok(["put", "ab", "3"]);
        assert_eq!(pool.ok(["get", "ab"]), b"3", "{kind}");
        pool.ok(["del", "a"]);
        assert_eq!(pool.run(["get", "a"]).code, 1, "{kind}");
        if kind.is_ordered() {
            assert_eq!(
                text(&pool.ok(["scan", "--keys", "--reverse", "--to", "b"])),
                "abc\nab\n",
                "{kind}"
            );
        } else {
            for range in [["--to", "b"], ["--prefix", "a"]] {
                pool.run([&["scan"][..], &range].concat())
                    .fails(2, &["no order of keys"]);
            }
        }
        pool.check();
    }
}

/// `stats` and `check` show a map's index, and it is never mistaken for another.
#[test]
fn each_index_is_told_and_never_taken_for_another() {
    for kind in kinds() {
        let pool = Pool::new();
        pool.ok(["put", "--index", kind.name(), "k", "v"]);
        for command in ["stats", "check"] {
            let json: serde_json::Value =
                serde_json::from_slice(&pool.ok([command, "--json"])).expect("JSON");
            assert_eq!(json["maps"][0]["index"], kind.name(), "{command}");
        }
        for other in kinds().filter(|&other| other != kind) {
            let words = [format!("'{kind}'"), format!("'{other}'")];
            pool.run(["put", "--index", other.name(), "k", "w"])
                .fails(2, &words.each_ref().map(String::as_str));
        }
        assert_eq!(pool.ok(["get", "k"]), b"v", "{kind}");
    }
}

/// A killed process leaves what it had written so far, and nothing of the rest.
#[test]
fn each_index_survives_kill_9() {
    for kind in kinds() {
        let pool = Pool::new();
        let key = |i: usize| format!("{i:07}");
        // An import into a new map builds the map as a whole, so the map is made first.
        pool.ok(["put", "--index", kind.name(), &key(0), "0"]);
        let mut import = pool
            .command(["import", "--index", kind.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the import starts");
        let entries: String = (0..20_000).map(|i| format!("{}\t{i}\n", key(i))).collect();
        // More than pipes and buffers hold: once it is written, much of it has been read.
        let mut input = import.stdin.take().expect("piped");
        input.write_all(entries.as_bytes()).expect("the import reads");
        import.kill().expect("the import runs");
        assert!(!import.wait().expect("the import ends").success(), "{kind}");
        let found = sorted(&pool.ok(["scan"]));
        let count = found.lines().count();
        assert!(count > 0, "{kind}");
        assert!(
            entries.starts_with(&found),
            "{kind}: {count} entries, and not the first"
        );
        pool.check();
        pool.ok(["put", &key(0), "again"]);
        assert_eq!(pool.ok(["get", &key(0)]), b"again", "{kind}");
    }
}

/// An import of unsorted lines into a new map has every line, and ends at the first that is none.
#[test]
fn an_import_into_a_new_map_takes_lines_in_any_order() {
    for kind in kinds() {
        for lines in [
            "b\t1\na\t2\n0\t3\n",
            "a\t1\nc\t2\nb\t3\nd\t4\n",
            "a\t1\nc\t2\nb\t3\nbb\t4\n",
        ] {
            let pool = Pool::new();
            pool.run_with(["import", "--index", kind.name()], lines.as_bytes())
                .ok();
            assert_eq!(
                sorted(&pool.ok(["scan"])),
                sorted(lines.as_bytes()),
                "{kind}: {lines:?}"
            );
        }
        let pool = Pool::new();
        pool.run_with(
            ["import", "--index", kind.name()],
            b"a\t1\nb\t2\nnonsense\nd\t4\n",
        )
        .fails(5, &["line 3"]);
        assert_eq!(sorted(&pool.ok(["scan"])), "a\t1\nb\t2\n", "{kind}");
    }
}
