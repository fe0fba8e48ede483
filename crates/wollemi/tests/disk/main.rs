//! Level `disk`: acknowledged writes survive a kill and a loss of power.
//!
//! These tests do not cut the power: they remove the pool, as if none of it had reached the medium, so that only the
//! log's files remain. The crash kit explores which writes to these files a power cut may lose.

mod checkpoints;
mod denied;
mod levels;
mod lost;
mod making;
mod turns;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wollemi::{Db, Error, Level, Options};

/// A database's directory, removed when the value is dropped.
#[derive(Debug)]
struct Place {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Place {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("a.pool");
        Place {
            _directory: directory,
            path,
        }
    }

    fn open(&self) -> Result<Db, Error> {
        options().open(&self.path)
    }

    /// Opens it so that no thread syncs during a test.
    fn open_unhurried(&self) -> Result<Db, Error> {
        options()
            .sync_within(Duration::from_secs(1 << 20))
            .open(&self.path)
    }

    /// Returns the directory of log and checkpoint.
    fn files(&self) -> PathBuf {
        self.path.with_extension("pool.disk")
    }

    /// Returns a copy as a stop of the machine at this moment leaves it: the files, and no pool.
    fn cut(&self) -> Place {
        let left = Place::new();
        let files = || {
            (
                names(&self.files()),
                std::fs::read(self.files().join("manifest")).ok(),
            )
        };
        // A checkpoint may end during the copy, and the log's files may be renamed; then the copy is not of one moment.
        loop {
            let before = files();
            let copied = try_copy(&self.files(), &left.files());
            if copied.is_ok() && files() == before {
                return left;
            }
            std::fs::remove_dir_all(left.files()).expect("removed");
        }
    }

    /// Returns a copy as a kill of the process at this moment leaves it: with the pool.
    fn kill(&self) -> Place {
        let left = self.cut();
        std::fs::copy(&self.path, &left.path).expect("copied");
        left
    }
}

fn options() -> Options {
    Options::new().level(Level::Disk).max_size(1 << 30)
}

fn copy(from: &Path, to: &Path) {
    try_copy(from, to).expect("copied");
}

fn try_copy(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::create_dir_all(to)?;
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        std::fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Returns the names of a directory's files.
fn names(directory: &Path) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    entries
        .map(|entry| entry.expect("an entry").file_name())
        .collect()
}

/// Returns whether the whole log is durable.
fn is_durable(db: &Db) -> bool {
    let log = db.log_stats().expect("a log");
    log.durable == log.appended
}

/// Returns all entries of a map.
fn entries(db: &Db, map: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let map = db.find_map(map).expect("sound").expect("there");
    map.iter().collect::<Result<_, _>>().expect("sound")
}
