//! The `Host` that the program provides to the server it runs.

use super::super::backup::to_file;
use super::super::place::is_replaced;
use super::{allocator, gather};
use server::{BackupTo, Config, Copying, Host};
use std::io;
use std::path::PathBuf;
use wollemi::Snapshot;

/// The `Host` of `wollemi serve`.
pub struct Program {
    pub pool: PathBuf,
}

impl Host for Program {
    /// Rereads the command line, the environment and the `--config` file; returns the settings that a reload can
    /// change.
    fn reload(&self) -> Result<Config, String> {
        match gather() {
            Ok(settings) => Ok(settings.args.limits(Config::default())),
            Err(failure) => Err(failure.to_string()),
        }
    }

    /// Writes the snapshot to a backup file, like `wollemi backup` of a closed pool. Refuses pipes and devices: if no
    /// process reads a pipe, opening it and writing to it wait, and the server, which waits for the backup, could not
    /// stop.
    fn back_up(&self, snapshot: &Snapshot, to: &BackupTo, copying: &Copying) -> Result<(), String> {
        if !is_replaced(&to.file) {
            return Err(format!(
                "'{}': a running server backs up to a file only",
                to.file.display()
            ));
        }
        let ended = || match copying.is_given_up() {
            true => Err(io::Error::other("aborted: the server is shutting down")),
            false => Ok(()),
        };
        let written = to_file(snapshot, &self.pool, &to.file, &ended, |copied| {
            copying.reached(copied.entries, copied.bytes, snapshot.memory());
        });
        written.map(drop).map_err(|failure| failure.to_string())
    }

    fn give_back(&self) {
        allocator::give_back();
    }
}
