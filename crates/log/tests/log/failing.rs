//! A disk whose operations fail.

use super::*;
use rustix::io::Errno;
use std::sync::Mutex;
use wollemi_log::disk::OpenFile;
use wollemi_log::{Disk, DiskError};

/// Operations that fail, and their error.
pub(super) type Fails = Option<(&'static [&'static str], Errno)>;

/// A directory in which calls of some operations fail on request.
pub(super) struct Failing {
    directory: Directory,
    fails: Mutex<Fails>,
}

impl Failing {
    pub(super) fn new(path: &Path) -> Arc<Failing> {
        Arc::new(Failing {
            directory: Directory::open(path).expect("a directory"),
            fails: Mutex::new(None),
        })
    }

    pub(super) fn fail(&self, fails: Fails) {
        *self.fails.lock().expect("no panic") = fails;
    }

    fn call(&self, operation: &'static str) -> Result<(), DiskError> {
        match *self.fails.lock().expect("no panic") {
            Some((failing, errno)) if failing.contains(&operation) => Err(DiskError {
                file: "a file".into(),
                operation,
                source: errno.into(),
            }),
            _ => Ok(()),
        }
    }
}

impl Disk for Failing {
    type File = OpenFile;

    fn create(&self, name: &str) -> Result<OpenFile, DiskError> {
        self.call("create")?;
        self.directory.create(name)
    }

    fn open(&self, name: &str) -> Result<OpenFile, DiskError> {
        self.directory.open(name)
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.directory.list()
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.call("rename")?;
        self.directory.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.call("remove")?;
        self.directory.remove(name)
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        self.call("fsync of the directory")?;
        self.directory.sync_dir()
    }
}

/// A failed sync of the directory has failed for all threads that had changed names before it.
#[test]
fn a_failed_sync_fails_all_earlier_changes_of_names() {
    let folder = tempfile::tempdir().expect("a directory");
    let disk = Failing::new(folder.path());
    let log = Log::create(disk.clone(), ID, small()).expect("a log");
    let (before, latest) = (log.change_names(), log.change_names());
    disk.fail(Some((&["fsync of the directory"], Errno::NOMEM)));
    log.sync_names(latest).expect_err("the sync fails");
    disk.fail(None);
    let after = log.change_names();
    let error = log.sync_names(before).expect_err("the change may not be durable");
    assert!(error.is_shortage(), "{error}");
    log.sync_names(after).expect("the change came after the failure");
}

/// If the disk is full when segments are dropped, the log goes on in its space, refuses records that need more, and
/// goes on when there is space again: nothing was lost. An I/O error fails the log.
#[test]
fn a_full_disk_takes_no_log_with_it() {
    let operations: [(&'static [&'static str], usize); 3] = [
        (&["rename"], 3),
        (&["remove"], 0),
        (&["fsync of the directory"], 3),
    ];
    for (failing, spares) in operations {
        for errno in [Errno::NOSPC, Errno::DQUOT, Errno::IO] {
            let directory = tempfile::tempdir().expect("a directory");
            let disk = Failing::new(directory.path());
            let options = LogOptions {
                spares,
                limit: 256 << 10,
                ..small()
            };
            let log = Log::create(disk.clone(), ID, options.clone()).expect("a log");
            let fill = || -> Result<Lsn, Error> {
                let mut end = log.appended();
                for n in 0..15u32 {
                    end = log.append(&[put(&n.to_le_bytes(), &[7; 1000])])?;
                }
                log.wait_durable(end).map(|()| end)
            };
            let end = fill().expect("room");
            disk.fail(Some((failing, errno)));
            let dropped = log.drop_below(end);
            if errno == Errno::IO {
                // To drop segments takes no sync; to make them does.
                let failed = dropped.and_then(|()| fill().map(drop));
                assert!(matches!(failed, Err(Error::Failed(_))), "{failing:?}: {failed:?}");
                assert!(log.failure().is_some());
                continue;
            }
            dropped.unwrap_or_else(|error| panic!("{failing:?}, {errno}: {error}"));
            assert_eq!(log.begin(), end);
            // There is room below the limit, but perhaps none for a new segment.
            match fill() {
                Ok(_) => assert_eq!(failing, ["remove"]),
                Err(error) => assert!(matches!(error, Error::DiskFull(_)), "{error}"),
            }
            assert_eq!(log.failure(), None);
            disk.fail(None);
            let end = fill().expect("room again");
            log.drop_below(end).expect("room again");
            let end = fill().expect("more room");
            // Segments that could not be recycled were recycled later.
            let logs = names(directory.path());
            let logs = logs.iter().filter(|name| name.starts_with("log-"));
            assert!(logs.count() <= 8, "{:?}", names(directory.path()));
            let begin = log.begin();
            drop(log);
            let log = Log::open(disk, ID, from(begin), options).expect("the log again");
            let mut scan = log.scan(begin..end).expect("a scan");
            let mut found = 0;
            while scan.next().expect("a record").is_some() {
                found += 1;
            }
            assert_eq!(found, 15, "{failing:?}");
        }
    }
}

/// If the disk becomes full while a segment is made, and its file cannot be removed either, the log makes the segment
/// once there is space.
#[test]
fn a_segment_that_was_not_made_is_made_later() {
    let directory = tempfile::tempdir().expect("a directory");
    let disk = Failing::new(directory.path());
    let options = LogOptions {
        limit: 256 << 10,
        ..small()
    };
    let log = Log::create(disk.clone(), ID, options).expect("a log");
    disk.fail(Some((&["rename", "remove"], Errno::NOSPC)));
    let append = || log.append(&[put(b"key", &[7; 1000])]);
    let full = (0..10).find_map(|_| append().err()).expect("a segment's bytes");
    assert!(matches!(full, Error::DiskFull(_)), "{full}");
    let left = names(directory.path());
    assert!(left.iter().any(|name| name.starts_with("spare-")), "{left:?}");
    disk.fail(None);
    for _ in 0..10 {
        append().expect("room again");
    }
    log.sync().expect("a sync");
}
