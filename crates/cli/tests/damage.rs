//! Files that are not intact pools: each gives a clear error, loses nothing, and causes no signal.

mod common;

use common::{Pool, Random, text};
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, PermissionsExt};
use wollemi::{Level, Options};

/// Returns a pool with a few thousand entries.
fn filled() -> Pool {
    let pool = Pool::new();
    let value = "v".repeat(40);
    let lines: String = (0..5000)
        .map(|i| format!("{i}/common/{}\t{i}{value}\n", i % 7))
        .collect();
    pool.run_with(["import"], lines.as_bytes()).ok();
    pool
}

/// The error of a second opener names the process that has the pool, and nothing is changed, whether the pool has a log
/// or not.
#[test]
fn a_second_opener_is_told_who_is_first() {
    for level in [Level::Process, Level::Disk] {
        second_opener(level);
    }
}

fn second_opener(level: Level) {
    let pool = filled();
    let db = Options::new().level(level).open(pool.path()).expect("opens");
    let process = format!("opened by process {}", std::process::id());
    for command in [
        &["get", "k"][..],
        &["put", "k", "v"],
        &["check"],
        &["import"],
        &["stats"],
    ] {
        pool.run(command.iter().chain(&["--lock-wait", "0"]))
            .fails(3, &["wollemi.pool", &process, "--lock-wait"]);
    }
    pool.run(["get", "k", "--lock-wait", "0.02"])
        .fails(3, &[&process, "waited 20ms"]);
    db.map("default")
        .expect("there")
        .upsert("k", "v")
        .expect("still the first opener's");
    drop(db);
    assert_eq!(pool.ok(["get", "k"]), b"v");
    pool.check();
}

/// Files of other kinds are named and left unchanged.
#[test]
fn other_files_are_refused() {
    let pool = Pool::new();
    let refused = |bytes: &[u8], words: &[&str]| {
        fs::write(pool.path(), bytes).expect("written");
        for command in [&["get", "k"][..], &["put", "k", "v"], &["check"]] {
            pool.run(command).fails(3, &[&["wollemi.pool"], words].concat());
        }
        assert!(
            fs::read(pool.path()).expect("still there") == bytes,
            "left as it was"
        );
    };
    refused(
        &b"\x7fELF and so on ".repeat(10_000),
        &["not a Wollemi pool", "7f 45 4c 46"],
    );
    refused(&[0; 1 << 20], &["not a Wollemi pool"]);
    refused(b"x", &["not a Wollemi pool"]);
    refused(b"", &["not a Wollemi pool"]);
    fs::remove_file(pool.path()).expect("removed");
    fs::create_dir(pool.path()).expect("created");
    pool.run(["get", "k"]).fails(3, &["not a regular file"]);
}

/// A truncated pool is reported as such, whatever is left of it, and is complete when its end is restored.
#[test]
fn truncated_pools_are_refused() {
    let pool = filled();
    let whole = fs::read(pool.path()).expect("read");
    for len in [1, 16, 4095, 4096, 65_536, whole.len() / 4] {
        fs::write(pool.path(), &whole[..len]).expect("written");
        pool.run(["get", "k"]).fails(3, &["wollemi.pool"]);
        pool.run(["put", "k", "v"]).fails(3, &["wollemi.pool"]);
        assert_eq!(fs::metadata(pool.path()).expect("there").len(), len as u64);
    }
    fs::write(pool.path(), &whole).expect("written");
    pool.check();
}

/// With one bit of the header flipped, the pool either opens with all of its entries, or is refused and is intact when
/// the bit is flipped back. One random bit is tried in each of the first 128 bytes, and in 32 bytes of page 0's first
/// 4096.
#[test]
fn flipped_header_bits_lose_nothing() {
    let mut random = Random::announced("header");
    let pool = filled();
    let whole = fs::read(pool.path()).expect("read");
    let entries = pool.ok(["export"]);
    let mut refused = 0;
    // All fields but the last two are in the first two lines (docs/format.md).
    let elsewhere: Vec<_> = (0..32).map(|_| random.below(4096)).collect();
    for at in (0..128).chain(elsewhere) {
        let bit = 1 << random.below(8);
        fs::write(pool.path(), &whole).expect("written");
        let file = File::options().write(true).open(pool.path()).expect("opened");
        file.write_all_at(&[whole[at as usize] ^ bit], at)
            .expect("flipped");
        let export = pool.run(["export"]);
        if export.code == 0 {
            assert!(export.out == entries, "byte {at}, bit {bit}: entries changed");
            continue;
        }
        refused += 1;
        export.fails(3, &["wollemi.pool"]);
        file.write_all_at(&[whole[at as usize]], at)
            .expect("flipped back");
        assert!(
            pool.ok(["export"]) == entries,
            "byte {at}, bit {bit}: refusing it has changed it"
        );
    }
    assert!(refused > 0);
    fs::write(pool.path(), &whole).expect("written");
    pool.check();
}

/// With bits flipped anywhere else, every command ends normally: perhaps with wrong entries, since reads compare no
/// checksums, but without a signal and in finite time.
#[test]
fn flipped_bits_do_no_harm() {
    let mut random = Random::announced("flips");
    let pool = filled();
    let whole = fs::read(pool.path()).expect("read");
    let mut found = 0;
    for _ in 0..80 {
        let mut bytes = whole.clone();
        let mut flips = Vec::new();
        for _ in 0..1 << random.below(8) {
            let at = 4096 + random.below(whole.len() as u64 - 4096) as usize;
            flips.push(at);
            bytes[at] ^= 1 << random.below(8);
        }
        println!("flipped: {flips:x?}");
        fs::write(pool.path(), &bytes).expect("written");
        let check = pool.run(["check"]);
        assert!([0, 3, 4].contains(&check.code), "{check:?}");
        found += usize::from(check.code != 0);
        for command in [&["export"][..], &["scan", "--reverse"], &["get", "17/common/3"]] {
            let run = pool.run(command);
            assert!([0, 1, 3].contains(&run.code), "{command:?}: {}", run.err);
        }
        for command in [
            &["put", "17/common/3", "new"][..],
            &["del", "18/common/4"],
            &["put", "a", "b"],
        ] {
            let run = pool.run(command);
            assert!([0, 1, 3].contains(&run.code), "{command:?}: {}", run.err);
        }
    }
    assert!(found > 0, "no check has found anything");
}

/// A pool that may not grow reports that; its entries can be read and removed, and then written again.
#[test]
fn a_full_pool_is_an_error() {
    let pool = Pool::new();
    let limit = ["--max-size", "8M"];
    let lines: String = (0..50_000)
        .map(|i| format!("{i:06}\t{}\n", "x".repeat(200)))
        .collect();
    // An import into a new map builds the map as a whole: one that fails leaves nothing.
    pool.run_with(
        ["import", "--map", "whole"].iter().chain(&limit),
        lines.as_bytes(),
    )
    .fails(3, &["full", "size limit"]);
    assert_eq!(pool.run(["get", "--map", "whole", "000000"]).code, 1);
    pool.check();
    pool.ok(["put", "000000", "first"].iter().chain(&limit));
    pool.run_with(["import"].iter().chain(&limit), lines.as_bytes())
        .fails(3, &["full", "size limit"]);
    let keys = pool.ok(["scan", "--keys"]);
    let keys: Vec<_> = text(&keys).lines().collect();
    assert!(keys.len() > 1000, "{} keys", keys.len());
    for (i, key) in keys.iter().enumerate() {
        assert_eq!(*key, format!("{i:06}"), "what came before the error is there");
    }
    pool.check();
    pool.ok(["del"].iter().chain(&limit).chain(&keys[..500]));
    pool.ok(["put", "small", "value"].iter().chain(&limit));
    pool.check();
}

/// The same holds if the device is full (here: the process may write no larger files): an error, no signal.
#[test]
fn a_full_device_is_an_error() {
    let pool = Pool::new();
    let lines: String = (0..500_000).map(|i| format!("{i:06}\t{i}\n")).collect();
    fs::write(pool.file("lines.tsv"), lines).expect("written");
    pool.ok(["put", "000000", "first"]);
    // In blocks of 512 or 1024 bytes, depending on the shell.
    let script = "ulimit -f 8192; exec \"$0\" import lines.tsv";
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", script, env!("CARGO_BIN_EXE_wollemi")]);
    let directory = pool.path();
    shell.current_dir(directory.parent().expect("a directory"));
    let run = common::Run::from(shell.output().expect("runs"));
    run.fails(3, &["'lines.tsv', line ", "no space left"]);
    let line = run
        .err
        .split("line ")
        .nth(1)
        .and_then(|rest| rest.split(':').next());
    let line: usize = line.and_then(|line| line.parse().ok()).expect("a line's number");
    let keys = pool.ok(["scan", "--keys"]);
    assert_eq!(
        text(&keys).lines().count(),
        line - 1,
        "what came before the error is there"
    );
    pool.check();
    pool.ok(["import", "lines.tsv"]);
    pool.check();
}

/// A level that the file does not support is refused, with what to do.
#[test]
fn a_level_that_cannot_be_had_is_refused() {
    let pool = Pool::new();
    let run = pool.run(["put", "--level", "power", "k", "v"]);
    if run.code != 0 {
        run.fails(3, &["MAP_SYNC", "--level process"]);
        assert!(!pool.path().exists(), "nothing is left behind");
    }
}

/// A pool without read permission is refused with the reason.
#[test]
fn permissions_are_told() {
    let pool = filled();
    fs::set_permissions(pool.path(), fs::Permissions::from_mode(0o000)).expect("changed");
    if File::open(pool.path()).is_ok() {
        return; // root may read everything
    }
    pool.run(["get", "k"]).fails(3, &["permission denied"]);
}
