//! Each command with the real binary: its output and its exit code.

mod common;

use common::{Pool, text};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

/// A value is read back exactly, whichever way it was put.
#[test]
fn put_and_get_are_exact() {
    let pool = Pool::new();
    pool.ok(["put", "k", "value\n"]);
    assert_eq!(pool.ok(["get", "k"]), b"value\n");
    let bytes: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    pool.run_with(["put", "bytes"], &bytes).ok();
    assert_eq!(pool.ok(["get", "bytes"]), bytes);
    pool.run_with(["put", "empty"], b"").ok();
    assert_eq!(pool.ok(["get", "empty"]), b"");
    let raw = OsStr::from_bytes(b"\xff\xfe");
    pool.ok([OsStr::new("put"), raw, raw]);
    assert_eq!(pool.ok([OsStr::new("get"), raw]), b"\xff\xfe");
    pool.ok(["put", "--escaped", r"a\x00b", r"c\td"]);
    assert_eq!(pool.ok(["get", "-e", r"a\x00b"]), b"c\\td\n");
    assert_eq!(
        pool.ok(["get", "--json", "-e", r"a\x00b"]),
        b"{\"key\":\"a\\u0000b\",\"value\":\"c\\td\"}\n"
    );
    pool.check();
}

/// On a terminal a value's line is ended, so that the prompt starts a new one; only once if the value ends with a
/// newline.
#[cfg(target_os = "linux")]
#[test]
fn a_terminal_gets_whole_lines() -> std::io::Result<()> {
    use rustix::pty::OpenptFlags;
    let pool = Pool::new();
    pool.ok(["put", "word", "hello"]);
    pool.ok(["put", "line", "hello\n"]);
    for key in ["word", "line"] {
        let ours = rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        rustix::pty::unlockpt(&ours)?;
        let theirs = rustix::pty::ioctl_tiocgptpeer(&ours, OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        let status = pool.command(["get", key]).stdout(theirs).status()?;
        assert!(status.success());
        let mut shown = [0; 100];
        let len = std::fs::File::from(ours).read(&mut shown)?;
        // The terminal turns each newline into two characters.
        assert_eq!(shown[..len], *b"hello\r\n", "{key}");
    }
    Ok(())
}

/// Exit codes alone tell scripts what happened.
#[test]
fn exit_codes_tell_what_happened() {
    let pool = Pool::new();
    pool.run(["get", "k"]).fails(3, &["wollemi.pool"]);
    assert!(!pool.path().exists(), "reading creates no pool");
    pool.run(["del", "k"]).fails(3, &["wollemi.pool"]);
    assert!(!pool.path().exists(), "removing creates no pool");

    pool.ok(["put", "k", "v"]);
    let absent = pool.run(["get", "absent"]);
    assert_eq!(
        (absent.code, absent.out, absent.err.as_str()),
        (1, Vec::new(), "")
    );
    pool.run(["get", "--map", "none", "k"])
        .fails(1, &["no map 'none'"]);
    assert_eq!(pool.run(["del", "k", "absent"]).code, 1);
    assert_eq!(
        pool.run(["get", "k"]).code,
        1,
        "the key that was there is removed"
    );
    assert_eq!(pool.run(["put", "--if-present", "k", "v"]).code, 1);
    assert_eq!(pool.run(["put", "--if-absent", "k", "v"]).code, 0);
    assert_eq!(pool.run(["put", "--if-absent", "k", "w"]).code, 1);
    assert_eq!(pool.run(["put", "--if-present", "k", "x"]).code, 0);
    assert_eq!(pool.ok(["get", "k"]), b"x");

    pool.run(["put", "-e", r"\q", "v"])
        .fails(2, &["is not an escape"]);
    pool.run(["get"]).fails(2, &["<KEY>"]);
    pool.run(["no-such-command"]).fails(2, &["no-such-command"]);
    pool.run(["put", "--map", "", "k", "v"])
        .fails(2, &["map name of 0 bytes"]);
    let long = "k".repeat(65_536);
    pool.run(["put", &long, "v"])
        .fails(5, &["key of 65536 bytes: the longest key is 65535 bytes"]);
    pool.run(["import", "absent.tsv"]).fails(5, &["absent.tsv"]);
    pool.run(["export", "no/such/directory"])
        .fails(5, &["no/such/directory"]);
    let help = pool.ok(["--help"]);
    assert!(text(&help).contains("Exit codes:"));
    pool.check();
}

/// Maps are separate, and the pool can be named by option and by environment.
#[test]
fn pools_and_maps_are_chosen() {
    let pool = Pool::new();
    let other = pool.file("other.pool");
    pool.ok(["put", "k", "default"]);
    pool.ok(["put", "--map", "second", "k", "second"]);
    let other_pool = [OsStr::new("--pool"), other.as_os_str()];
    pool.ok(["put", "k", "other"].map(OsStr::new).iter().chain(&other_pool));
    assert_eq!(pool.ok(["get", "k"]), b"default");
    assert_eq!(pool.ok(["get", "k", "--map", "second"]), b"second");
    let run = pool
        .command(["get", "k"])
        .env("WOLLEMI_POOL", &other)
        .output()
        .expect("runs");
    assert_eq!(run.stdout, b"other");
}

/// A command's options on the pool may come before its name; those after it take precedence.
#[test]
fn options_stand_on_either_side() {
    let pool = Pool::new();
    pool.ok(["--pool", "a.pool", "--map", "m", "put", "k", "v"]);
    assert!(!pool.path().exists());
    assert_eq!(pool.ok(["--map", "m", "get", "--pool", "a.pool", "k"]), b"v");
    assert_eq!(
        pool.ok(["--pool", "b.pool", "get", "--map", "m", "--pool", "a.pool", "k"]),
        b"v"
    );
    let json = pool.ok(["--json", "--pool", "a.pool", "get", "--map", "m", "k"]);
    assert_eq!(text(&json).trim_end(), r#"{"key":"k","value":"v"}"#);
    let run = pool
        .command(["--pool", "a.pool", "get", "--map", "m", "k"])
        .env("WOLLEMI_POOL", "b.pool")
        .output()
        .expect("runs");
    assert_eq!(run.stdout, b"v");
    pool.run(["--pool", "a.pool", "completions", "bash"])
        .fails(2, &["commands on a pool"]);
    pool.run(["--pool", "a.pool"]).fails(2, &["subcommand"]);
}

/// The index of a new map is chosen by name, shown by `stats` and `check`, and never changes.
#[test]
fn indexes_are_chosen_by_name() {
    let pool = Pool::new();
    pool.ok(["put", "--map", "plain", "k", "v"]);
    pool.ok(["put", "--map", "other", "--index", "part", "k", "v"]);
    pool.run_with(["import", "--map", "imported", "--index", "roart"], b"k\tv\n")
        .ok();
    for map in ["plain", "other", "imported"] {
        assert_eq!(pool.ok(["get", "--map", map, "k"]), b"v");
        pool.ok(["put", "--map", map, "l", "w"]);
    }
    pool.ok(["put", "--map", "plain", "--index", "roart", "k", "v"]);
    for command in ["put", "serve", "import"] {
        let key = if command == "put" { &["k"][..] } else { &[] };
        pool.run([&[command, "--map", "plain", "--index", "part"], key].concat())
            .fails(2, &["map 'plain'", "'roart'", "'part'"]);
    }
    for unknown in ["tree", "roart-raw"] {
        pool.run(["put", "--index", unknown, "k", "v"])
            .fails(2, &[unknown, "--index", "possible values: roart"]);
    }
    let help = pool.ok(["put", "--help"]);
    assert!(text(&help).contains("- roart:") && !text(&help).contains("roart-raw"));
    for command in ["stats", "check"] {
        let report = pool.ok([command]);
        let found = ["imported (roart)", "plain (roart)", "other (part)"];
        let quoted = text(&report).replace('\'', "");
        assert!(found.iter().all(|map| quoted.contains(map)), "{}", text(&report));
        let json: serde_json::Value = serde_json::from_slice(&pool.ok([command, "--json"])).expect("JSON");
        assert_eq!(json["maps"][1]["index"], "part", "{json}");
    }
}

/// Scans have bounds, a direction, a prefix and a limit.
#[test]
fn scans_are_bounded() {
    let pool = Pool::new();
    let keys = ["a", "b", "ba", "bb", "c", "d"];
    for key in keys {
        pool.ok(["put", key, &key.to_uppercase()]);
    }
    let scan = |args: &[&str]| {
        let out = pool.ok(["scan", "--keys"].iter().chain(args));
        text(&out)
            .lines()
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(scan(&[]), "a b ba bb c d");
    assert_eq!(scan(&["--reverse"]), "d c bb ba b a");
    assert_eq!(scan(&["--from", "b", "--to", "c"]), "b ba bb");
    assert_eq!(scan(&["--from", "b", "--through", "c"]), "b ba bb c");
    assert_eq!(scan(&["--from", "c", "--to", "b"]), "");
    assert_eq!(scan(&["--prefix", "b"]), "b ba bb");
    assert_eq!(scan(&["--prefix", "b", "--reverse", "--limit", "2"]), "bb ba");
    assert_eq!(scan(&["--limit", "0"]), "");
    assert_eq!(scan(&["-e", "--from", r"\x63"]), "c d");
    assert_eq!(pool.ok(["scan", "--limit", "2"]), b"a\tA\nb\tB\n");
    assert_eq!(
        pool.ok(["scan", "--json", "--limit", "1"]),
        b"{\"key\":\"a\",\"value\":\"A\"}\n"
    );
    assert_eq!(
        pool.ok(["scan", "--json", "--keys", "--limit", "1"]),
        b"{\"key\":\"a\"}\n"
    );
}

/// A JSON report is one object with the expected fields.
#[test]
fn reports_are_json() {
    let pool = Pool::new();
    pool.run_with(["import", "--json"], b"a\t1\nb\t2\n").ok();
    let json = |args: &[&str]| -> serde_json::Value {
        serde_json::from_slice(&pool.ok(args)).expect("one JSON value")
    };
    let stats = json(&["stats", "--json", "--count", "--wait"]);
    assert_eq!(stats["level"], "process");
    assert_eq!(stats["entries"]["default"], 2);
    assert_eq!(stats["maps"][0]["name"], "default");
    assert_eq!(stats["recovery"]["state"], "done");
    let space = |part: &str| stats["space"][part].as_u64().expect(part);
    assert_eq!(
        space("used") + space("free") + space("unswept"),
        space("reserved")
    );
    let check = json(&["check", "--json"]);
    assert_eq!(check["clean"], true);
    assert_eq!(check["maps"][0]["keys"], 2);
    assert_eq!(check["heap"]["unreachable"], 0);
    let removed = json(&["del", "--json", "a"]);
    assert_eq!(removed["removed"], 1);
    let plain = pool.ok(["stats", "--count"]);
    assert!(text(&plain).contains("1 entry"), "{}", text(&plain));
}

/// `checkpoint` reports what the checkpoint holds, and the pool is rebuilt from it. Other levels have none.
#[test]
fn a_checkpoint_is_told() {
    let pool = Pool::new();
    pool.ok(["put", "a", "1"]);
    pool.run(["checkpoint"])
        .fails(2, &["level process", "`wollemi level --to disk`"]);
    pool.ok(["level", "--to", "disk"]);
    let told = pool.ok(["checkpoint", "--full"]);
    assert!(
        text(&told).starts_with("full checkpoint: 1 entry, "),
        "{}",
        text(&told)
    );
    pool.ok(["put", "b", "2"]);
    let told = pool.ok(["checkpoint", "--full", "--json"]);
    let told: serde_json::Value = serde_json::from_slice(&told).expect("one object");
    assert_eq!((&told["full"], &told["entries"]), (&true.into(), &2.into()));
    assert!(told["bytes"].as_u64() > Some(0), "{told}");
    let stats: serde_json::Value = serde_json::from_slice(&pool.ok(["stats", "--json"])).expect("one object");
    assert_eq!(stats["level"], "disk");

    std::fs::remove_file(pool.path()).expect("removed");
    assert_eq!(pool.run(["get", "b"]).code, 3, "reading rebuilds nothing");
    pool.ok(["put", "c", "3"]);
    assert_eq!(pool.ok(["scan"]), b"a\t1\nb\t2\nc\t3\n");
}

/// A path that is not UTF-8 is reported as well as possible, in one JSON object, and is not an error.
#[test]
fn any_path_is_told() {
    use std::os::unix::ffi::OsStrExt;
    let pool = Pool::new();
    let name = std::ffi::OsStr::from_bytes(b"strange\xff.pool");
    let run = |args: &[&str]| {
        let args = args.iter().map(std::ffi::OsStr::new);
        pool.ok(args.chain(["--json".as_ref(), "--pool".as_ref(), name]))
    };
    run(&["put", "k", "v"]);
    for (args, field) in [
        (&["level", "--to", "disk"][..], "pool"),
        (&["level"], "pool"),
        (&["stats"], "path"),
    ] {
        let report: serde_json::Value = serde_json::from_slice(&run(args)).expect("one object");
        let path = report[field].as_str().expect("text");
        assert!(path.ends_with("strange\u{fffd}.pool"), "{report}");
    }
}

/// The name of a map is escaped on a terminal.
#[test]
fn names_are_escaped() {
    let pool = Pool::new();
    pool.ok(["put", "k", "v", "--map", "red \u{1b}[31m\nmap"]);
    for command in ["stats", "check"] {
        let said = pool.ok([command]);
        assert!(text(&said).contains(r"red \x1b[31m\nmap"), "{}", text(&said));
        assert!(!text(&said).contains('\u{1b}'));
    }
}

/// A reader that closes the pipe ends a scan without an error; an export is then incomplete.
#[test]
fn a_closed_pipe_is_no_error() {
    let pool = Pool::new();
    let lines: String = (0..100_000)
        .map(|i| format!("key {i:06}\tsome value\n"))
        .collect();
    pool.run_with(["import"], lines.as_bytes()).ok();
    for command in ["scan", "export"] {
        let mut child = pool
            .command([command])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut first = String::new();
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        out.read_line(&mut first).expect("a line");
        assert_eq!(first, "key 000000\tsome value\n");
        drop(out);
        let mut said = String::new();
        child
            .stderr
            .take()
            .expect("piped")
            .read_to_string(&mut said)
            .expect("text");
        let code = child.wait().expect("ends").code();
        match command {
            "scan" => assert_eq!((code, &*said), (Some(0), "")),
            _ => {
                assert_eq!(code, Some(5));
                assert!(said.contains("standard output"), "{said}");
            }
        }
    }
    pool.check();
}

/// A command whose output cannot be written reports that.
#[test]
fn a_full_output_is_an_error() {
    let pool = Pool::new();
    pool.ok(["put", "k", "v"]);
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("a full device");
    let run = pool.command(["scan"]).stdout(full).output().expect("runs");
    assert_eq!(run.status.code(), Some(5));
    assert!(text(&run.stderr).contains("standard output"));
}

/// There is a completion script for each of the usual shells.
#[test]
fn shells_complete() {
    let pool = Pool::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(text(&pool.ok(["completions", shell])).contains("wollemi"));
    }
    assert!(!pool.path().exists());
}
