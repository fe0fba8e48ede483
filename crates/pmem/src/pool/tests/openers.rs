//! Openings beside a dying process, beside a forked one, through a path that leads elsewhere by now; and names and
//! folders at the limits of a file system.

use super::files::Place;
use super::*;
use rustix::fs::{FlockOperation, flock};
use rustix::process::{Pid, WaitOptions};
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// An opening while the kernel tears down a killed process waits until the lock is released.
#[test]
fn an_opening_waits_for_a_dying_process() {
    let (place, _) = Place::with_pool();
    let dying = std::fs::File::open(&place.path).expect("a file");
    flock(&dying, FlockOperation::LockExclusive).expect("no process has it");
    let options = PoolOptions {
        lock_wait: Duration::from_secs(120),
        ..PoolOptions::default()
    };
    let opened = std::thread::scope(|scope| {
        let opener = scope.spawn(|| Pool::open(&place.path, &options, Hardware::detect()));
        std::thread::sleep(Duration::from_millis(50));
        drop(dying);
        opener.join().expect("no panic")
    });
    opened.expect("the pool, once the lock is free");
}

/// The longest name that the file system accepts works as a pool's name.
#[test]
fn a_pool_has_the_longest_name() {
    let place = Place::new();
    for len in [215, 255] {
        let path = place.path.with_file_name("n".repeat(len));
        Pool::create(&path, &small(), Hardware::detect())
            .expect("a new pool")
            .close()
            .expect("closed");
        Pool::open(&path, &small(), Hardware::detect()).expect("the pool");
    }
    let files = std::fs::read_dir(place.path.parent().expect("a folder")).expect("a folder");
    assert_eq!(files.count(), 2, "no other file is left");
}

/// A creation that cannot make its file's name durable fails and leaves nothing.
#[test]
fn a_creation_that_fails_leaves_nothing() {
    let place = Place::new();
    let folder = place.path.parent().expect("a folder");
    // Files can be created there, but the folder cannot be opened, and so cannot be synced.
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o333)).expect("permissions");
    let created = unprivileged(|| place.create().map(drop));
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755)).expect("permissions");
    let Some(created) = created else { return };
    created.expect_err("the folder cannot be read");
    let left: Vec<OsString> = std::fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, [""; 0], "nothing is left");
}

// SAFETY: the C library, which the standard library links, has both functions with these types; neither takes a
// pointer. A child of `fork` has only the calling thread, and this test's child calls nothing that could wait for
// another.
unsafe extern "C" {
    safe fn fork() -> i32;
    safe fn _exit(code: i32) -> !;
}

/// A forked child that drops the pool leaves the parent's alone: it stays locked, and is not marked clean.
#[test]
fn a_forked_child_leaves_the_pool_alone() {
    let (place, _) = Place::with_pool();
    let pool = place.open().expect("the pool");
    let open = std::fs::read(&place.path).expect("a file");
    // Between `fork` and `_exit` the child does nothing but the drop, which allocates nothing.
    let mut pool = Some(pool);
    let child = fork();
    if child == 0 {
        drop(pool.take());
        _exit(0);
    }
    let child = Pid::from_raw(child).expect("a child");
    let (_, status) = rustix::process::waitpid(Some(child), WaitOptions::empty())
        .expect("our child")
        .expect("it has ended");
    assert_eq!(status.exit_status(), Some(0), "{status:?}");
    assert_eq!(
        std::fs::read(&place.path).expect("a file"),
        open,
        "not marked clean"
    );
    let refused = place.refusal();
    assert!(refused.starts_with("opened by"), "{refused}");
    drop(pool);
    let pool = place.open().expect("the pool");
    assert_eq!(pool.last_shutdown(), LastShutdown::Clean);
}

/// A file is locked by its name once, and not under a name that another file has by now.
#[test]
fn a_file_is_locked_by_its_name() {
    let place = Place::new();
    let path = place.path.with_file_name("part");
    let first = std::fs::File::create_new(&path).expect("a file");
    crate::pool::lock_named(&first, &path).expect("no other has it");
    let same = std::fs::File::open(&path).expect("the file");
    crate::pool::lock_named(&same, &path).expect_err("it is locked");
    std::fs::remove_file(&path).expect("the file");
    let second = std::fs::File::create_new(&path).expect("a file");
    drop(first);
    crate::pool::lock_named(&same, &path).expect_err("another file has its name");
    crate::pool::lock_named(&second, &path).expect("no other has it");
}
