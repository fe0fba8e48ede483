//! A pool of level `process` that was open when the machine stopped: reading it changes nothing, and it is written
//! again only after its loss was accepted.

mod common;

use common::server::Server;
use common::{Pool, text};
use std::fs;
use std::process::Stdio;

/// Returns a pool that a killed server has left, with the id of another boot in its header: the pool's own UUID, which
/// has the same layout (docs/format.md).
fn suspect() -> Pool {
    let pool = Pool::new();
    let server = Server::start(&pool);
    let stored = server.client().ask("set k 0 0 5\r\nvalue\r\n");
    assert_eq!(stored.as_deref(), Some("STORED"));
    server.kill();
    stop_machine(&pool);
    pool
}

/// Makes a pool look as if it had been open on another boot of the machine.
fn stop_machine(pool: &Pool) {
    let mut file = fs::read(pool.path()).expect("read");
    file.copy_within(24..48, 72);
    fs::write(pool.path(), &file).expect("written");
}

/// Each command that reads needs the flag, and then leaves every byte of the file unchanged, so the next command
/// refuses the pool like the first one.
#[test]
fn looking_changes_nothing() {
    let pool = suspect();
    let before = fs::read(pool.path()).expect("read");
    let unchanged = |after: &[&str]| {
        assert!(fs::read(pool.path()).expect("read") == before, "after {after:?}");
    };
    for command in [
        &["check"][..],
        &["stats"],
        &["stats", "--wait", "--count"],
        &["export", "-", "--map", "memcached"],
        &["scan", "--map", "memcached"],
        &["get", "k", "--map", "memcached"],
        &["backup", "-"],
    ] {
        pool.run(command)
            .fails(3, &["the machine stopped", "--after-power-loss", "accept-loss"]);
        unchanged(command);
        let looked = pool.run(command.iter().chain(&["--after-power-loss"]));
        assert_eq!(looked.code, 0, "{command:?}: {looked:?}");
        assert!(!looked.out.is_empty(), "{command:?}");
        unchanged(command);
    }
    let stats = pool.ok(["--after-power-loss", "stats"]);
    assert!(
        text(&stats).contains("before it: machine crash"),
        "{}",
        text(&stats)
    );
}

/// Whatever its flags, only the command that accepts the loss writes to the pool.
#[test]
fn nothing_is_written_before_the_loss_is_accepted() {
    let pool = suspect();
    let before = fs::read(pool.path()).expect("read");
    for command in [
        &["put", "k", "v"][..],
        &["del", "k"],
        &["import", "-"],
        &["compact"],
        &["compact", "--in-place"],
        &["serve", "--no-redis", "--memcached", "127.0.0.1:0"],
    ] {
        pool.run(command)
            .fails(3, &["the machine stopped", "accept-loss"]);
        pool.run(command.iter().chain(&["--after-power-loss"]))
            .fails(2, &["--after-power-loss", "accept-loss"]);
        assert!(
            fs::read(pool.path()).expect("read") == before,
            "after {command:?}"
        );
    }
    let run = pool.run(["accept-loss"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        text(&run.out).contains("clean") && run.err.contains("accepted"),
        "{run:?}"
    );
    let server = Server::start(&pool);
    assert_eq!(server.client().get("k").as_deref(), Some("value"));
    assert_eq!(server.terminate(), Some(0));
    pool.check();
    // There is nothing left to accept.
    let before = fs::read(pool.path()).expect("read");
    let run = pool.run(["accept-loss"]);
    assert!(run.code == 0 && run.err.contains("no loss to accept"), "{run:?}");
    assert!(fs::read(pool.path()).expect("read") == before);
}

/// A pool in which a check finds damage is accepted only if that is requested too.
#[test]
fn damage_is_accepted_by_its_own_option() {
    let pool = suspect();
    let mut file = fs::read(pool.path()).expect("read");
    // Each leaf with this value then has a value that does not match its checksum.
    let places: Vec<_> = (0..file.len() - 5)
        .filter(|&at| &file[at..at + 5] == b"value")
        .collect();
    assert!(!places.is_empty(), "the value is in the file");
    for at in places {
        file[at] ^= 1;
    }
    fs::write(pool.path(), &file).expect("written");
    let run = pool.run(["accept-loss"]);
    run.fails(4, &["--damaged"]);
    assert!(text(&run.out).contains("DAMAGED"), "{run:?}");
    assert!(fs::read(pool.path()).expect("read") == file, "not accepted");
    pool.run(["put", "k", "v"]).fails(3, &["the machine stopped"]);
    let run = pool.run(["accept-loss", "--damaged"]);
    assert_eq!(run.code, 0, "{run:?}");
    pool.ok(["put", "k", "v"]);
}

/// `stats` names the level of a pool with a log, though it reads no log, and says of a lost one what the next opening
/// does.
#[test]
fn the_level_of_a_pool_with_a_log_is_told() {
    let pool = Pool::new();
    pool.ok(["put", "k", "value", "--level", "disk"]);
    let told = |args: &[&str]| {
        let json = pool.ok(args.iter().chain(&["--json"]));
        let json: serde_json::Value = serde_json::from_slice(&json).expect("one object");
        assert_eq!(json["level"], "disk", "{args:?}");
        let plain = pool.ok(args);
        assert!(text(&plain).contains("level       disk\n"), "{}", text(&plain));
        text(&plain).to_owned()
    };
    told(&["stats"]);
    Server::start(&pool).kill();
    told(&["stats"]);
    stop_machine(&pool);
    let lost = told(&["stats", "--after-power-loss"]);
    assert!(lost.contains("rebuilds the pool"), "{lost}");
    assert!(!lost.contains("accept-loss"), "{lost}");
    pool.ok(["put", "other", "value"]);
    assert!(!told(&["stats"]).contains("SUSPECT"));

    let lost = suspect().ok(["stats", "--after-power-loss"]);
    assert!(text(&lost).contains("accept-loss"), "{}", text(&lost));
}

/// A pool of level `disk` has no loss to accept: it is rebuilt.
#[test]
fn a_pool_with_a_log_is_rebuilt() {
    let pool = Pool::new();
    pool.ok(["put", "k", "value", "--level", "disk"]);
    let server = Server::start(&pool);
    server.kill();
    stop_machine(&pool);
    let file = fs::read(pool.path()).expect("read");
    let run = pool.run(["accept-loss"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.err.contains("rebuilds the pool from its log"), "{run:?}");
    assert!(run.out.is_empty(), "no check: {run:?}");
    assert!(fs::read(pool.path()).expect("read") == file, "nothing is changed");
    pool.ok(["put", "other", "value"]);
    assert_eq!(pool.ok(["get", "k"]), b"value");
}

/// A command that begins a log, but finds one, rebuilds a lost or missing pool like any other that writes.
#[test]
fn a_pool_with_a_log_is_rebuilt_at_its_level() {
    for is_missing in [false, true] {
        let pool = Pool::new();
        pool.ok(["put", "k", "value", "--level", "disk"]);
        Server::start(&pool).kill();
        match is_missing {
            true => fs::remove_file(pool.path()).expect("removed"),
            false => stop_machine(&pool),
        }
        assert_eq!(pool.ok(["level", "--to", "disk"]), b"disk\n");
        assert_eq!(pool.ok(["get", "k"]), b"value");
    }
}

/// A closed output pipe changes neither what a command does nor its exit code.
#[test]
fn a_closed_pipe_hides_no_outcome() {
    let pool = suspect();
    let mut file = fs::read(pool.path()).expect("read");
    let places = (0..file.len() - 5).filter(|&at| &file[at..at + 5] == b"value");
    for at in places.collect::<Vec<_>>() {
        file[at] ^= 1;
    }
    fs::write(pool.path(), &file).expect("written");
    let code = |args: &[&str]| {
        let mut child = pool
            .command(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("it starts");
        drop(child.stdout.take());
        child.wait().expect("it ends").code()
    };
    assert_eq!(code(&["check", "--after-power-loss"]), Some(4));
    assert_eq!(code(&["accept-loss"]), Some(4));
    pool.run(["put", "k", "v"]).fails(3, &["the machine stopped"]);
    assert_eq!(code(&["accept-loss", "--damaged"]), Some(0));
    pool.ok(["put", "k", "v"]);
    assert_eq!(code(&["del", "--json", "missing"]), Some(1));
}
