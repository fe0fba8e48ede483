//! Level `disk`: what was acknowledged is there after a kill and after a loss of power.
//!
//! The power is not cut here: the pool is taken away, as if none of it had reached the medium, and what the log's files
//! hold is all that is left. The crash kit explores what of these a power cut may lose.

mod checkpoints;
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

/// A database's place, which goes with the value.
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

    /// The same, and no thread syncs in the time of a test.
    fn open_unhurried(&self) -> Result<Db, Error> {
        options()
            .sync_within(Duration::from_secs(1 << 20))
            .open(&self.path)
    }

    /// The directory of log and checkpoint.
    fn files(&self) -> PathBuf {
        self.path.with_extension("pool.disk")
    }

    /// A place that has what is left of this one when the machine stops now: the files, and no pool.
    fn cut(&self) -> Place {
        let left = Place::new();
        let files = || {
            (
                names(&self.files()),
                std::fs::read(self.files().join("manifest")).ok(),
            )
        };
        // A checkpoint may end meanwhile, and the log's files get other names: then what was copied is of no one
        // moment.
        loop {
            let before = files();
            let copied = try_copy(&self.files(), &left.files());
            if copied.is_ok() && files() == before {
                return left;
            }
            std::fs::remove_dir_all(left.files()).expect("removed");
        }
    }

    /// A place that has what is left of this one when the process is killed now: the pool as well.
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

/// The names of a directory's files.
fn names(directory: &Path) -> BTreeSet<OsString> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    entries
        .map(|entry| entry.expect("an entry").file_name())
        .collect()
}

/// Whether all that the log has is durable.
fn is_durable(db: &Db) -> bool {
    let log = db.log_stats().expect("a log");
    log.durable == log.appended
}

/// All entries of a map.
fn entries(db: &Db, map: &str) -> Vec<(Vec<u8>, Vec<u8>)> {
    let map = db.find_map(map).expect("sound").expect("there");
    map.iter().collect::<Result<_, _>>().expect("sound")
}
