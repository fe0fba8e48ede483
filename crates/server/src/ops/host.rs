//! The interface of the program around a server.

use crate::ops::config::Config;
use crate::ops::copying::{BackupTo, Copying};
use wollemi::Snapshot;

/// What the program around a server does for it. The server calls it from threads of its own.
pub trait Host: Send + Sync {
    /// Tells how the server would be set up now, or why that is wrong. The server asks at SIGHUP, and takes the limits
    /// (connections, sizes of requests, idle time, the slow log) and where backups go.
    fn reload(&self) -> Result<Config, String> {
        Err("this program has no settings to read again".into())
    }

    /// Writes a snapshot to the file while clients are served, and tells `copying` how far it is; or says why it could
    /// not, and then has left the file that there was.
    fn back_up(&self, snapshot: &Snapshot, to: &BackupTo, copying: &Copying) -> Result<(), String>;

    /// Gives memory that was freed back to the operating system, as far as the program's allocator has kept it. It is
    /// called once a second at most.
    fn give_back(&self) {}
}
