//! The interface of the program around a server.

use crate::ops::config::Config;
use crate::ops::copying::{BackupTo, Copying};
use wollemi::Snapshot;

/// Services of the program around a server. The server calls them from its own threads.
pub trait Host: Send + Sync {
    /// Reads the settings again. Returns the configuration, or why the settings are wrong. The server calls this on
    /// SIGHUP, and takes over the limits (connections, sizes of requests, idle time, the slow log) and where backups
    /// go.
    fn reload(&self) -> Result<Config, String> {
        Err("this program has no settings to read again".into())
    }

    /// Writes a snapshot to the file while clients are served, and reports its progress to `copying`.
    ///
    /// # Errors
    ///
    /// The reason for the failure. The existing file is then unchanged.
    fn back_up(&self, snapshot: &Snapshot, to: &BackupTo, copying: &Copying) -> Result<(), String>;

    /// Returns freed memory that the program's allocator has kept to the operating system. The server calls this at
    /// most once a second.
    fn give_back(&self) {}
}
