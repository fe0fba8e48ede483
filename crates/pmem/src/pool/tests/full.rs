//! No space: growing fails with an error, never with a signal, and the pool remains usable.

use super::*;
use std::ops::Range;
use std::process::Command;
use tempfile::TempDir;

const PAGE: u64 = 64 << 10;

/// Stores its own position into a word of each block of the range.
fn write_all(pool: &Pool<Hardware>, range: Range<u64>) {
    for at in range.step_by(4096) {
        persist_scope(pool.media(), Purpose::Node, |batch| {
            word(pool, at).store(at, &batch);
        });
    }
}

/// Grows a new pool at `path` until that fails; returns the error. Every byte below its length can be written.
fn grow_until_refused(path: &Path) -> Error {
    let pool = Pool::create(path, &small(), Hardware::detect()).expect("room for one page");
    let refused = loop {
        match pool.grow(pool.len() + 1) {
            Ok(()) => assert!(
                pool.len() < small().max_size,
                "the limit is the device's, not the pool's"
            ),
            Err(error) => break error,
        }
    };
    let len = pool.len();
    assert!(len > PAGE, "it could grow at first");
    assert_eq!(
        std::fs::metadata(path).expect("a file").len(),
        len,
        "what was half allocated is given back"
    );
    write_all(&pool, 4096..len);
    assert!(pool.grow(len + 1).is_err());
    assert_eq!(pool.len(), len);
    pool.close().expect("closed");
    let pool = Pool::open(path, &small(), Hardware::detect()).expect("a full pool can be opened");
    assert_eq!(word(&pool, len - 4096).load(pool.media()), len - 4096);
    refused
}

/// Truncates a file, which gives its blocks back at once. If it were removed instead, they would stay as long as a
/// child process that another test forked meanwhile has the file open.
fn empty(path: &Path) {
    std::fs::File::create(path).expect("an empty file");
}

/// A file system mounted for one test, on a folder of its own.
struct Mount(TempDir);

impl Mount {
    /// `None`, with a message, if this process may not mount.
    fn tmpfs(size: &str) -> Option<Mount> {
        let folder = tempfile::tempdir().expect("a folder");
        let size = format!("size={size}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "tmpfs"])
            .arg(folder.path())
            .output();
        if !mounted.is_ok_and(|output| output.status.success()) {
            eprintln!("mounting is not permitted: not tried");
            return None;
        }
        Some(Mount(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).output();
    }
}

/// A full disk. Where the test may not mount, `file_size_limit` has to do.
#[test]
fn full_disk() {
    let Some(mount) = Mount::tmpfs("1m") else { return };
    let error = grow_until_refused(&mount.path().join("a.pool"));
    assert!(matches!(error.kind, ErrorKind::NoSpace { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains("there is no space left for the file (No space left on device"),
        "{error}"
    );

    // No room even for the first page: nothing is left.
    let error = Pool::create(
        mount.path().join("b.pool"),
        &PoolOptions {
            page_size: 1 << 20,
            ..small()
        },
        Hardware::detect(),
    );
    assert!(matches!(
        error.expect_err("no room").kind,
        ErrorKind::NoSpace { .. }
    ));
    assert_eq!(std::fs::read_dir(mount.path()).expect("a directory").count(), 1);
}

/// Pages that were given back, and for which other files have left no blocks: backing them fails with an error, and
/// works later.
#[test]
fn pages_given_back_to_a_disk_that_is_full() {
    let Some(mount) = Mount::tmpfs("4m") else { return };
    let path = mount.path().join("a.pool");
    let pool = Pool::create(&path, &small(), Hardware::detect()).expect("room");
    pool.grow(2 << 20).expect("room");
    let given = 1 << 20..2 << 20;
    // SAFETY: the test holds no reference into the pool.
    let done = unsafe { pool.give_back(given.clone()) };
    if done.expect("no failure") == 0 {
        eprintln!("holes cannot be punched here: not tried");
        return;
    }
    let other = mount.path().join("other");
    let filled = std::fs::write(&other, vec![1; 4 << 20]);
    assert!(filled.is_err(), "more than there is room for");
    for _ in 0..2 {
        let error = pool.back_again(given.clone()).expect_err("no room");
        assert!(matches!(error.kind, ErrorKind::NoSpace { .. }), "{error}");
        assert!(!pool.is_backed(&given));
    }
    drop(pool);
    // The pool can be opened all the same.
    let pool = Pool::open(&path, &small(), Hardware::detect()).expect("a pool with holes");
    assert!(pool.back_again(given.clone()).is_err());
    empty(&other);
    pool.back_again(given.clone()).expect("room");
    write_all(&pool, given);
}

/// A sparse copy that does not fit the disk is refused, and opened when there is room.
#[test]
fn a_sparse_copy_on_a_full_disk() {
    let Some(mount) = Mount::tmpfs("4m") else { return };
    let original = mount.path().join("original");
    let pool = Pool::create(&original, &small(), Hardware::detect()).expect("room");
    pool.close().expect("closed");
    let path = mount.path().join("a.pool");
    std::fs::copy(&original, &path).expect("room");
    let file = std::fs::File::options().write(true).open(&path).expect("a file");
    // Like a copy with zeros at its end.
    file.set_len(3 << 20).expect("longer");
    let other = mount.path().join("other");
    std::fs::write(&other, vec![1; 2 << 20]).expect("room");
    for _ in 0..2 {
        let error = Pool::open(&path, &small(), Hardware::detect()).map(|pool| pool.len());
        let error = error.expect_err("no room");
        assert!(matches!(error.kind, ErrorKind::NoSpace { .. }), "{error}");
    }
    empty(&other);
    let pool = Pool::open(&path, &small(), Hardware::detect()).expect("room");
    std::fs::write(&other, vec![1; 4 << 20]).expect_err("more than there is room for");
    write_all(&pool, PAGE..pool.len());
}

/// A limit on the size of a process's files, whose signal would end a process that does not ignore it.
#[test]
fn file_size_limit() {
    const CHILD: &str = "POOL_OF_LIMITED_CHILD";
    if let Some(path) = std::env::var_os(CHILD) {
        let limit = rustix::process::Rlimit {
            current: Some(20 * PAGE + 1),
            maximum: Some(20 * PAGE + 1),
        };
        rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).expect("a lower limit");
        let error = grow_until_refused(Path::new(&path));
        assert!(matches!(error.kind, ErrorKind::NoSpace { .. }), "{error}");
        assert!(
            error
                .to_string()
                .contains("there is no space left for the file (File too large"),
            "{error}"
        );
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let ended = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "pool::tests::full::file_size_limit"])
        .env(CHILD, directory.path().join("a.pool"))
        .output()
        .expect("a child");
    assert!(ended.status.success(), "{ended:?}");
}
