//! The path of backups, and the progress of the current one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Where backups go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupTo {
    /// The file. A new one takes its place when it is whole and durable.
    pub file: PathBuf,
    /// Maximum number of bytes of memory that a backup may take for what clients change while it is written.
    pub memory: u64,
}

/// A backup under way: how far it is, and whether it shall go on.
#[derive(Debug, Default)]
pub struct Copying {
    /// Entries of the databases at its moment, as far as they are counted.
    pub(crate) total: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) memory: AtomicU64,
    pub(crate) given_up: AtomicBool,
}

impl Copying {
    /// Tells how far it is: entries and bytes written, and bytes of memory that it takes for what was changed since its
    /// moment.
    pub fn reached(&self, entries: u64, bytes: u64, memory: u64) {
        self.entries.store(entries, Relaxed);
        self.bytes.store(bytes, Relaxed);
        self.memory.store(memory, Relaxed);
    }

    /// Whether the server ends: the backup is then to fail, soon, and to leave what there was.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }
}

/// What comes of a backup; or why none was made.
pub type Outcome = Result<(), String>;
