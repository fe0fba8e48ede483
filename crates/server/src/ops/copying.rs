//! The path of backups, and the progress of the running one.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Where backups go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BackupTo {
    /// The file. A new backup replaces it once the new one is complete and durable.
    pub file: PathBuf,
    /// Maximum memory, in bytes, for the before-images of what clients change while the backup is written.
    pub memory: u64,
}

/// A running backup: its progress, and whether it is given up.
#[derive(Debug, Default)]
pub struct Copying {
    /// The number of entries of the databases at its moment, as far as they are counted.
    pub(crate) total: AtomicU64,
    pub(crate) entries: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) memory: AtomicU64,
    pub(crate) given_up: AtomicBool,
}

impl Copying {
    /// Reports its progress: entries and bytes written, and bytes of memory held for changes since its moment.
    pub fn reached(&self, entries: u64, bytes: u64, memory: u64) {
        self.entries.store(entries, Relaxed);
        self.bytes.store(bytes, Relaxed);
        self.memory.store(memory, Relaxed);
    }

    /// Returns whether the server ends. The backup must then fail soon, and leave the existing file unchanged.
    pub fn is_given_up(&self) -> bool {
        self.given_up.load(Relaxed)
    }
}

/// The result of a backup; the error says why none was made.
pub type Outcome = Result<(), String>;
