//! `backup`, `restore` and `compact`: a round trip preserves the pool; damaged input is refused and leaves nothing.

mod common;

use common::{Pool, fail_write_out, hear_interrupts, text, to_end};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::{Child, Stdio};
use std::time::Duration;

/// Returns a pool with two maps, held by different indexes, with enough keys for several pages.
fn filled() -> Pool {
    let pool = Pool::new();
    let lines: String = (0..20_000).map(|i| format!("key {i:06}\tvalue {i}\n")).collect();
    pool.run_with(["import", "-"], lines.as_bytes()).ok();
    pool.run_with(
        ["import", "-", "--map", "other", "--index", "part"],
        lines.as_bytes(),
    )
    .ok();
    pool
}

fn contents(pool: &Pool, name: &str) -> [Vec<u8>; 2] {
    ["default", "other"].map(|map| pool.ok(["export", "-", "--pool", name, "--map", map]))
}

/// By file and by pipe, a backup restores a pool with the same maps; an existing pool is not overwritten.
#[test]
fn a_backup_makes_the_same_pool() {
    let pool = filled();
    let run = pool.run(["backup", "all.backup", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let json = text(&run.out);
    assert!(json.contains("\"maps\":2,\"entries\":40000,"), "{json}");
    assert!(pool.part_of("all.backup").is_none());
    let piped = pool.ok(["backup", "-"]);
    assert!(piped == fs::read(pool.file("all.backup")).expect("written"));

    pool.ok(["restore", "all.backup", "--pool", "new.pool"]);
    pool.run_with(["restore", "-", "--pool", "piped.pool"], &piped)
        .ok();
    let expected = contents(&pool, "wollemi.pool");
    for new in ["new.pool", "piped.pool"] {
        assert!(contents(&pool, new) == expected);
        pool.ok(["check", "--pool", new]);
    }
    pool.run(["restore", "all.backup"]).fails(2, &["wollemi.pool"]);
    pool.run(["restore", "none.backup", "--pool", "x.pool"])
        .fails(5, &["none.backup"]);
}

/// A truncated or changed backup creates no pool.
#[test]
fn a_damaged_backup_makes_none() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 4;
    for damaged in [&whole[..whole.len() - 1], &whole[..1000], &flipped, b"nonsense"] {
        pool.run_with(["restore", "-", "--pool", "new.pool"], damaged)
            .fails(5, &["not a backup"]);
        assert!(!pool.file("new.pool").exists());
    }
}

/// A killed restore leaves no pool, and does not affect the next one.
#[test]
fn a_restore_that_is_killed_leaves_no_pool() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    let mut restore = pool
        .command(["restore", "-", "--pool", "new.pool"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = restore.stdin.take().expect("piped");
    input
        .write_all(&whole[..whole.len() / 2])
        .expect("the program reads");
    input.flush().expect("the program reads");
    while pool.part_of("new.pool").is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    restore.kill().expect("the program runs");
    restore.wait().expect("the program ends");
    assert!(pool.part_of("new.pool").is_some() && !pool.file("new.pool").exists());
    pool.run_with(["restore", "-", "--pool", "new.pool"], &whole).ok();
    assert!(contents(&pool, "new.pool") == contents(&pool, "wollemi.pool"));
    assert!(pool.part_of("new.pool").is_none());
}

/// A pool that has lost most of its entries is small after compaction, and keeps the rest.
#[test]
fn compaction_shrinks_the_file() {
    let pool = filled();
    let lines: String = (0..3000)
        .map(|i| format!("big {i}\t{}\n", "x".repeat(5000)))
        .collect();
    pool.run_with(["import", "-"], lines.as_bytes()).ok();
    for chunk in (0..3000)
        .map(|i| format!("big {i}"))
        .collect::<Vec<_>>()
        .chunks(500)
    {
        pool.ok(["del".to_owned()].iter().chain(chunk));
    }
    let before = fs::metadata(pool.path()).expect("there").len();
    let expected = contents(&pool, "wollemi.pool");
    // In place, blocks are freed and the length stays.
    let blocks = || fs::metadata(pool.path()).expect("there").blocks() * 512;
    let all_blocks = blocks();
    let run = pool.run(["compact", "--in-place", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let given = text(&run.out)
        .trim()
        .strip_prefix("{\"given_back\":")
        .and_then(|rest| rest.strip_suffix('}'));
    let given: u64 = given.expect("a number").parse().expect("a number");
    assert!(
        given == 0 || (given > 4 << 20 && blocks() < all_blocks - given / 2),
        "{given} of {all_blocks}"
    );
    assert_eq!(fs::metadata(pool.path()).expect("there").len(), before);
    assert!(contents(&pool, "wollemi.pool") == expected);
    // Leftovers of an interrupted compaction do not matter.
    let left = pool.file(".wollemi.pool.wollemi-0123456789abcdef");
    fs::write(left, "left over").expect("written");
    let run = pool.run(["compact", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let after = fs::metadata(pool.path()).expect("there").len();
    assert!(after < before / 2, "{before} to {after}");
    let json = text(&run.out);
    assert!(
        json.contains(&format!("\"before\":{before},\"after\":{after}")),
        "{json}"
    );
    assert!(contents(&pool, "wollemi.pool") == expected);
    assert!(pool.part_of("wollemi.pool").is_none());
    pool.check();
}

/// Compaction does not separate a pool from its log, and a restore does not overwrite one; a pool can be restored to
/// level `disk`.
#[test]
fn a_log_keeps_its_pool() {
    let pool = filled();
    let expected = contents(&pool, "wollemi.pool");
    pool.ok(["level", "--to", "disk"]);
    let refused = pool.run(["compact"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("has a log"), "{refused:?}");
    pool.ok(["compact", "--in-place"]);
    pool.ok(["backup", "all.backup"]);

    fs::rename(pool.path(), pool.file("elsewhere")).expect("renamed");
    let refused = pool.run(["restore", "all.backup"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("wollemi.pool.disk"), "{refused:?}");
    fs::rename(pool.file("elsewhere"), pool.path()).expect("renamed");
    assert!(contents(&pool, "wollemi.pool") == expected);
    assert_eq!(text(&pool.ok(["level"])), "disk\n");

    pool.ok(["restore", "all.backup", "--pool", "other.pool", "--level", "disk"]);
    assert_eq!(text(&pool.ok(["level", "--pool", "other.pool"])), "disk\n");
    assert!(pool.file("other.pool.disk").exists());
    assert!(contents(&pool, "other.pool") == expected);
    pool.check();
}

/// A restore does not replace a pool that was created meanwhile.
#[test]
fn a_restore_replaces_no_pool() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    let mut restore = pool
        .command(["restore", "-", "--pool", "new.pool"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = restore.stdin.take().expect("piped");
    input
        .write_all(&whole[..whole.len() / 2])
        .expect("the program reads");
    while pool.part_of("new.pool").is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    pool.ok(["put", "k", "precious", "--pool", "new.pool"]);
    input
        .write_all(&whole[whole.len() / 2..])
        .expect("the program reads");
    drop(input);
    let run = common::Run::from(restore.wait_with_output().expect("the program ends"));
    assert!(pool.ok(["get", "k", "--pool", "new.pool"]) == b"precious");
    run.fails(5, &["new.pool", "exists"]);
    assert!(pool.part_of("new.pool").is_none());
}

/// A second concurrent restore to the same place is refused and harms neither.
#[test]
fn one_restore_at_a_time() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    let mut restore = pool
        .command(["restore", "-", "--pool", "new.pool"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = restore.stdin.take().expect("piped");
    input
        .write_all(&whole[..whole.len() / 2])
        .expect("the program reads");
    while pool.part_of("new.pool").is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    pool.run_with(["restore", "-", "--pool", "new.pool"], &whole)
        .fails(5, &["new.pool", "another process"]);
    input
        .write_all(&whole[whole.len() / 2..])
        .expect("the program reads");
    drop(input);
    assert!(restore.wait().expect("the program ends").success());
    assert!(contents(&pool, "new.pool") == contents(&pool, "wollemi.pool"));
}

const ACL: &str = "system.posix_acl_access";

/// Returns an access control list by which one more user may read, in Linux's format: a version, then for each entry
/// its tag, its permissions and its user.
fn acl() -> Vec<u8> {
    const NONE: u32 = u32::MAX;
    let entries = [
        (0x01u16, 6u16, NONE), // the owner
        (0x02, 4, 12345),
        (0x04, 0, NONE), // the group
        (0x10, 4, NONE), // the mask: limits all but the owner and others
        (0x20, 0, NONE), // all others
    ];
    let mut bytes = 2u32.to_le_bytes().to_vec();
    for (of, permitted, user) in entries {
        bytes.extend(of.to_le_bytes());
        bytes.extend(permitted.to_le_bytes());
        bytes.extend(user.to_le_bytes());
    }
    bytes
}

/// Compaction through a symbolic link replaces the link's target, and keeps its owner, mode and access control list.
#[test]
fn compaction_keeps_what_the_file_was() {
    let pool = filled();
    let real = pool.file("real.pool");
    fs::rename(pool.path(), &real).expect("renamed");
    std::os::unix::fs::symlink("real.pool", pool.path()).expect("linked");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o660)).expect("changed");
    // Only root may change a file's owner; otherwise the user that runs the test stays the owner.
    let _ = std::os::unix::fs::chown(&real, Some(65534), Some(65533));
    let kept = |file: &fs::Metadata| (file.mode(), file.uid(), file.gid());
    let has_acl = rustix::fs::setxattr(&real, ACL, &acl(), rustix::fs::XattrFlags::empty()).is_ok();
    let before = fs::metadata(&real).expect("there");
    let expected = contents(&pool, "wollemi.pool");
    pool.ok(["compact"]);
    if has_acl {
        let mut kept = [0; 256];
        let len = rustix::fs::getxattr(&real, ACL, &mut kept).expect("the file had a list");
        assert_eq!(kept[..len], *acl());
    } else {
        eprintln!("no access control lists here: not tested");
    }
    let link = fs::symlink_metadata(pool.path()).expect("there");
    assert!(link.is_symlink(), "the link is still a link");
    let after = fs::metadata(&real).expect("there");
    assert_ne!(after.ino(), before.ino(), "the file is a new one");
    assert_eq!(kept(&after), kept(&before));
    assert!(contents(&pool, "real.pool") == expected);
}

/// A new pool that is not on the medium replaces none, and its failure is reported, as for any command that writes.
#[test]
fn a_failed_write_out_is_told() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    let before = fs::metadata(pool.path()).expect("there").ino();
    let fails = |args: &[&str], input: &[u8]| {
        let run = to_end(fail_write_out(&mut pool.command(args)), input);
        run.fails(3, &["writing to the medium", "os error 5"]);
    };
    fails(&["compact"], b"");
    assert_eq!(fs::metadata(pool.path()).expect("there").ino(), before);
    fails(&["restore", "-", "--pool", "new.pool"], &whole);
    assert!(!pool.file("new.pool").exists());
    fails(&["import", "-"], b"a\tb\n");
    fails(&["put", "c", "d"], b"");
    fails(&["del", "c"], b"");
    assert!(pool.ok(["get", "a"]) == b"b");
    pool.check();
}

/// Changes each copy of `value` in a pool's file, so that its checksum does not match.
fn damage(pool: &Pool, value: &[u8]) -> Vec<u8> {
    let mut file = fs::read(pool.path()).expect("read");
    let places: Vec<_> = (0..file.len() - value.len())
        .filter(|&at| file[at..].starts_with(value))
        .collect();
    assert!(!places.is_empty(), "the value is in the file");
    for at in places {
        file[at] ^= 1;
    }
    fs::write(pool.path(), &file).expect("written");
    file
}

/// Damage found by a check is not copied, unless requested.
#[test]
fn damage_is_not_copied() {
    let pool = filled();
    pool.ok(["put", "key", "a precious value"]);
    pool.ok(["backup", "all.backup"]);
    let older = fs::read(pool.file("all.backup")).expect("read");
    let file = damage(&pool, b"a precious value");
    for command in [
        &["compact"][..],
        &["level", "--to", "disk"],
        &["backup", "all.backup"],
        &["backup", "-"],
    ] {
        pool.run(command).fails(4, &["damage"]);
        assert!(fs::read(pool.path()).expect("read") == file, "after {command:?}");
    }
    assert!(!pool.file("wollemi.pool.disk").exists());
    assert!(fs::read(pool.file("all.backup")).expect("read") == older);
    pool.ok(["backup", "--damaged", "rescued.backup"]);
    pool.ok(["compact", "--damaged"]);
    pool.check();
    assert_eq!(pool.ok(["get", "key"]), b"` precious value");
}

/// Foreign files beside a pool with similar names are neither used nor removed.
#[test]
fn files_of_others_stay() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    let names = [
        "wollemi.pool.compact",
        "new.pool.restore",
        "all.backup.part",
        "wollemi.pool.rebuild",
    ];
    for name in names {
        fs::write(pool.file(name), name).expect("written");
    }
    pool.ok(["compact"]);
    pool.ok(["backup", "all.backup"]);
    pool.run_with(["restore", "-", "--pool", "new.pool"], &whole).ok();
    for name in names {
        assert_eq!(text(&fs::read(pool.file(name)).expect("there")), name);
    }
}

/// A backup, like an export, can be written to a pipe, and through a link to its target.
#[test]
fn pipes_and_links_stay() {
    let pool = filled();
    for (command, name) in [("backup", "a"), ("export", "b")] {
        let expected = pool.ok([command, "-"]);
        let (pipe, link, real) = (
            pool.file(&format!("{name}.pipe")),
            pool.file(&format!("{name}.link")),
            pool.file(&format!("{name}.real")),
        );
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, mode).expect("a pipe");
        let reader = {
            let pipe = pipe.clone();
            std::thread::spawn(move || fs::read(pipe).expect("read"))
        };
        pool.ok([command.as_ref(), pipe.as_os_str()]);
        assert!(reader.join().expect("the reader reads") == expected);
        assert!(!fs::symlink_metadata(&pipe).expect("there").is_file());
        pool.ok([command, "/dev/null"]);
        assert!(!fs::symlink_metadata("/dev/null").expect("there").is_file());
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        for _ in 0..2 {
            pool.ok([command.as_ref(), link.as_os_str()]);
            assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
            assert!(fs::read(&real).expect("there") == expected);
            fs::write(&real, "older").expect("written");
        }
    }
}

/// A user who may not read a pool may not read its copies either.
#[test]
fn what_is_made_of_a_pool_is_as_private() {
    let pool = filled();
    let chosen = |mode| fs::Permissions::from_mode(mode);
    let mode = |name: &str| fs::metadata(pool.file(name)).expect("there").mode() & 0o7777;
    fs::set_permissions(pool.path(), chosen(0o640)).expect("changed");
    pool.ok(["backup", "all.backup"]);
    pool.ok(["export", "all.tsv"]);
    assert_eq!((mode("all.backup"), mode("all.tsv")), (0o640, 0o640));
    fs::set_permissions(pool.file("all.backup"), chosen(0o600)).expect("changed");
    fs::set_permissions(pool.file("all.tsv"), chosen(0o604)).expect("changed");
    pool.ok(["backup", "all.backup"]);
    pool.ok(["export", "all.tsv"]);
    assert_eq!((mode("all.backup"), mode("all.tsv")), (0o600, 0o604));

    fs::set_permissions(pool.path(), chosen(0o600)).expect("changed");
    pool.ok(["level", "--to", "disk"]);
    pool.ok(["put", "key", "value"]);
    let is_private = || {
        assert_eq!(mode("wollemi.pool.disk"), 0o700);
        for file in fs::read_dir(pool.file("wollemi.pool.disk")).expect("a directory") {
            let file = file.expect("a file");
            let mode = file.metadata().expect("there").mode() & 0o7777;
            assert_eq!(mode, 0o600, "{file:?}");
        }
    };
    is_private();
    fs::remove_file(pool.path()).expect("removed");
    assert_eq!(pool.ok(["del", "key"]), b"");
    assert_eq!(mode("wollemi.pool"), 0o600);
    is_private();
}

/// A command that refuses, or that ends a log, leaves no directory that a restore would mistake for a log.
#[test]
fn no_empty_directory_is_left() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    pool.run(["level", "--to", "disk", "--pool", "none.pool"])
        .fails(3, &["none.pool"]);
    pool.run(["compact", "--level", "disk"]).fails(2, &["log"]);
    pool.run(["del", "k", "--level", "disk", "--pool", "none.pool"])
        .fails(3, &["none.pool"]);
    assert_eq!(text(&pool.ok(["level"])), "process\n");
    pool.ok(["level", "--to", "disk"]);
    assert!(pool.file("wollemi.pool.disk").exists());
    pool.ok(["level", "--to", "process"]);
    for name in ["none.pool.disk", "wollemi.pool.disk"] {
        assert!(!pool.file(name).exists(), "{name}");
    }
    // A directory left by an older program does not matter.
    fs::create_dir(pool.file("none.pool.disk")).expect("made");
    pool.run_with(["restore", "-", "--pool", "none.pool"], &whole)
        .ok();
}

/// Two concatenated backups are not a backup.
#[test]
fn nothing_follows_a_backup() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    let twice = [&whole[..], &whole[..]].concat();
    pool.run_with(["restore", "-", "--pool", "new.pool"], &twice)
        .fails(5, &["standard input", "follow"]);
    assert!(!pool.file("new.pool").exists() && pool.part_of("new.pool").is_none());
}

/// Through a link, a pool's log is created, and the pool is rebuilt, beside the link's target.
#[test]
fn a_log_is_beside_the_file_itself() {
    let pool = filled();
    let real = pool.file("real");
    fs::create_dir(&real).expect("made");
    fs::rename(pool.path(), real.join("a.pool")).expect("renamed");
    std::os::unix::fs::symlink("real/a.pool", pool.path()).expect("linked");
    pool.ok(["level", "--to", "disk"]);
    pool.ok(["put", "key", "value"]);
    assert!(real.join("a.pool.disk").exists() && !pool.file("wollemi.pool.disk").exists());
    let expected = contents(&pool, "wollemi.pool");
    fs::remove_file(real.join("a.pool")).expect("removed");
    pool.ok(["put", "key", "value"]);
    assert!(fs::symlink_metadata(pool.path()).expect("there").is_symlink());
    assert!(contents(&pool, "real/a.pool") == expected);
}

/// A signal stops a command in an orderly way: incomplete files are removed, and pools are closed.
#[test]
fn signals_end_commands_in_order() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let stopped = |args: &[&str], input: &[u8], begun: &dyn Fn() -> bool| {
            let mut child = hear_interrupts(&mut pool.command(args))
                .stdin(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .expect("the program starts");
            let mut to = child.stdin.take().expect("piped");
            to.write_all(input).expect("the program reads");
            to.flush().expect("the program reads");
            while !begun() {
                std::thread::sleep(Duration::from_millis(1));
            }
            // The program may be about to read its input.
            std::thread::sleep(Duration::from_millis(200));
            kill_process(Pid::from_child(&child), signal).expect("the program runs");
            assert_eq!(
                child.wait().expect("the program ends").code(),
                Some(code),
                "{args:?}"
            );
        };
        stopped(
            &["restore", "-", "--pool", "new.pool"],
            &whole[..whole.len() / 2],
            &|| pool.part_of("new.pool").is_some(),
        );
        assert!(pool.part_of("new.pool").is_none() && !pool.file("new.pool").exists());
        // More than a pipe and the reader hold: once it is written, the first lines are in the pool.
        let more = (0..100_000).flat_map(|i| format!("more {i}\t{i}\n").into_bytes());
        let input: Vec<u8> = b"one\t1\n".iter().copied().chain(more).collect();
        stopped(&["import", "-"], &input, &|| true);
        assert_eq!(pool.ok(["get", "one"]), b"1");
        let stats = pool.ok(["stats"]);
        assert!(text(&stats).contains("before it: clean"), "{}", text(&stats));
    }
    pool.check();
}

/// Compaction removes what a crash has left of a log that was ended, or not yet begun: the new file can be written, and
/// get a log.
#[test]
fn compaction_leaves_nothing_of_a_log() {
    for with_manifest in [true, false] {
        let pool = Pool::new();
        pool.ok(["put", "k", "v", "--level", "disk"]);
        pool.ok(["checkpoint", "--full"]);
        let (files, left) = (pool.file("wollemi.pool.disk"), pool.file("left"));
        fs::create_dir(&left).expect("made");
        for file in fs::read_dir(&files).expect("a directory") {
            let file = file.expect("a file");
            if with_manifest || file.file_name() != "manifest" {
                fs::copy(file.path(), left.join(file.file_name())).expect("copied");
            }
        }
        pool.ok(["level", "--to", "process"]);
        fs::rename(&left, &files).expect("renamed");
        pool.ok(["compact"]);
        assert!(!files.exists());
        pool.ok(["put", "other", "v"]);
        assert_eq!(pool.ok(["level", "--to", "disk"]), b"disk\n");
        assert_eq!(pool.ok(["get", "k"]), b"v");
        pool.check();
    }
}

/// Returns whether the program handles the signal. It does so once.
fn handles(child: &Child, signal: Signal) -> bool {
    let status =
        fs::read_to_string(format!("/proc/{}/status", child.id())).expect("it has not been waited for");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let caught = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask >> (signal.as_raw() - 1) & 1 == 1)
}

/// A signal also ends the checkpoint with which a log begins. The pool then has no log.
#[test]
fn signals_end_the_first_checkpoint() {
    let pool = filled();
    pool.ok(["backup", "all.backup"]);
    let expected = contents(&pool, "wollemi.pool");
    for (signal, code) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let stopped = |args: &[&str], name: &str| {
            // Until the lock is free, the program waits before the checkpoint.
            let files = pool.file(&format!("{name}.disk"));
            fs::create_dir_all(&files).expect("made");
            let lock = File::open(&files).expect("a directory");
            lock.lock().expect("locked");
            let mut command = pool.command(args);
            command.args(["--pool", name, "--lock-wait", "120"]);
            let mut child = hear_interrupts(&mut command)
                .stderr(Stdio::null())
                .spawn()
                .expect("the program starts");
            while !(handles(&child, signal) && pool.file(name).exists()) {
                assert!(child.try_wait().expect("a child").is_none(), "{args:?}");
                std::thread::sleep(Duration::from_millis(1));
            }
            kill_process(Pid::from_child(&child), signal).expect("the program runs");
            while handles(&child, signal) {
                std::thread::sleep(Duration::from_millis(1));
            }
            drop(lock);
            let status = child.wait().expect("the program ends");
            assert_eq!(status.code(), Some(code), "{args:?}");
            assert_eq!(text(&pool.ok(["level", "--pool", name])), "process\n");
            assert!(contents(&pool, name) == expected);
            assert_eq!(fs::read_dir(&files).map_or(0, Iterator::count), 0, "{args:?}");
        };
        stopped(&["level", "--to", "disk"], "wollemi.pool");
        stopped(&["restore", "all.backup", "--level", "disk"], "new.pool");
        fs::remove_file(pool.file("new.pool")).expect("removed");
    }
    pool.ok(["level", "--to", "disk"]);
    pool.check();
}
