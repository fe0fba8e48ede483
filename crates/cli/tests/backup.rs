//! `backup`, `restore` and `compact`: whole pools survive the way, and what is damaged is refused and leaves nothing.

mod common;

use common::{Pool, text};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Stdio;
use std::time::Duration;

/// Two maps, held by different indexes, with keys enough for several pages.
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

/// By file and by pipe, a backup makes a pool with the same maps; an existing pool is not overwritten.
#[test]
fn a_backup_makes_the_same_pool() {
    let pool = filled();
    let run = pool.run(["backup", "all.backup", "--json"]);
    assert_eq!(run.code, 0, "{run:?}");
    let json = text(&run.out);
    assert!(json.contains("\"maps\":2,\"entries\":40000,"), "{json}");
    assert!(!pool.file("all.backup.part").exists());
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

/// A backup that is cut short or changed makes no pool.
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

/// A restore that is killed leaves no pool, and the next one is as if it had not been.
#[test]
fn a_restore_that_is_killed_leaves_no_pool() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    let mut restore = pool
        .command(["restore", "-", "--pool", "new.pool"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = restore.stdin.take().expect("piped");
    input.write_all(&whole[..whole.len() / 2]).expect("it reads");
    input.flush().expect("it reads");
    let part = pool.file("new.pool.restore");
    while !part.exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    restore.kill().expect("it runs");
    restore.wait().expect("it ends");
    assert!(part.exists() && !pool.file("new.pool").exists());
    pool.run_with(["restore", "-", "--pool", "new.pool"], &whole).ok();
    assert!(contents(&pool, "new.pool") == contents(&pool, "wollemi.pool"));
    assert!(!part.exists());
}

/// A pool that has lost most of what it held is small after compaction, and holds what it held.
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
    // In place, blocks go and the length stays.
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
    // The leftovers of an interrupted one do not matter.
    fs::write(pool.file("wollemi.pool.compact"), "left over").expect("written");
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
    assert!(!pool.file("wollemi.pool.compact").exists());
    pool.check();
}

/// The log beside a pool is neither left to a compacted file nor restored over; a pool can be restored to level `disk`.
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

/// A pool that was made while a restore was under way is left alone.
#[test]
fn a_restore_replaces_no_pool() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    let mut restore = pool
        .command(["restore", "-", "--pool", "new.pool"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = restore.stdin.take().expect("piped");
    input.write_all(&whole[..whole.len() / 2]).expect("it reads");
    while !pool.file("new.pool.restore").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    pool.ok(["put", "k", "precious", "--pool", "new.pool"]);
    input.write_all(&whole[whole.len() / 2..]).expect("it reads");
    drop(input);
    let run = common::Run::from(restore.wait_with_output().expect("it ends"));
    assert!(pool.ok(["get", "k", "--pool", "new.pool"]) == b"precious");
    run.fails(5, &["new.pool", "exists"]);
    assert!(!pool.file("new.pool.restore").exists());
}

/// A second restore to the same place, while one is under way, is refused and harms neither.
#[test]
fn one_restore_at_a_time() {
    let pool = filled();
    let whole = pool.ok(["backup", "-"]);
    let mut restore = pool
        .command(["restore", "-", "--pool", "new.pool"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut input = restore.stdin.take().expect("piped");
    input.write_all(&whole[..whole.len() / 2]).expect("it reads");
    while !pool.file("new.pool.restore").exists() {
        std::thread::sleep(Duration::from_millis(1));
    }
    pool.run_with(["restore", "-", "--pool", "new.pool"], &whole)
        .fails(5, &["new.pool.restore", "another process"]);
    input.write_all(&whole[whole.len() / 2..]).expect("it reads");
    drop(input);
    assert!(restore.wait().expect("it ends").success());
    assert!(contents(&pool, "new.pool") == contents(&pool, "wollemi.pool"));
}

const ACL: &str = "system.posix_acl_access";

/// An access control list by which one more user may read, as Linux keeps it: a version, and then for each entry what
/// it is of, what is permitted, and which user.
fn acl() -> Vec<u8> {
    const NONE: u32 = u32::MAX;
    let entries = [
        (0x01u16, 6u16, NONE), // the owner
        (0x02, 4, 12345),
        (0x04, 0, NONE), // the group
        (0x10, 4, NONE), // the most that any but the owner and all others may
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

/// Compaction through a symbolic link replaces the file that the link leads to, and keeps its owner, mode and access
/// control list.
#[test]
fn compaction_keeps_what_the_file_was() {
    let pool = filled();
    let real = pool.file("real.pool");
    fs::rename(pool.path(), &real).expect("renamed");
    std::os::unix::fs::symlink("real.pool", pool.path()).expect("linked");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o660)).expect("changed");
    // Only root may change a file's owner; otherwise the user that runs the test keeps it.
    let _ = std::os::unix::fs::chown(&real, Some(65534), Some(65533));
    let kept = |file: &fs::Metadata| (file.mode(), file.uid(), file.gid());
    let has_acl = rustix::fs::setxattr(&real, ACL, &acl(), rustix::fs::XattrFlags::empty()).is_ok();
    let before = fs::metadata(&real).expect("there");
    let expected = contents(&pool, "wollemi.pool");
    pool.ok(["compact"]);
    if has_acl {
        let mut kept = [0; 256];
        let len = rustix::fs::getxattr(&real, ACL, &mut kept).expect("it had a list");
        assert_eq!(kept[..len], *acl());
    } else {
        eprintln!("access control lists cannot be had here: not tried");
    }
    let link = fs::symlink_metadata(pool.path()).expect("there");
    assert!(link.is_symlink(), "the link is one still");
    let after = fs::metadata(&real).expect("there");
    assert_ne!(after.ino(), before.ino(), "the file is a new one");
    assert_eq!(kept(&after), kept(&before));
    assert!(contents(&pool, "real.pool") == expected);
}
