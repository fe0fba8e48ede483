//! Syncs of the log's directory by several threads. Checkpoints have their files there too.
//!
//! A failed sync leaves the state of all earlier name changes unknown, and no later sync proves that they are durable.
//! The system reports the failure to only one caller. So a thread that has changed names must learn of every sync that
//! has failed since it began to change them.

use crate::lock::lock;
use crate::{Disk, DiskError, Log};
use std::io;

/// Changes of names in the log's directory that have begun: creations, renames and removals.
#[derive(Debug)]
#[must_use = "they are durable after `Log::sync_names`"]
pub struct NameChanges {
    /// Number of failed syncs when they began.
    failed: u64,
}

impl<D: Disk> Log<D> {
    /// Begins to change names in the log's directory.
    pub fn change_names(&self) -> NameChanges {
        NameChanges {
            failed: lock(&self.failed_name_syncs).count,
        }
    }

    /// Makes changes of names durable.
    ///
    /// # Errors
    ///
    /// The disk's error, reported to this caller or, since the changes began, to another. The state of the changes is
    /// unknown then, and another sync proves nothing about them.
    #[track_caller]
    pub fn sync_names(&self, changes: NameChanges) -> Result<(), DiskError> {
        let mut failed = lock(&self.failed_name_syncs);
        if let Err(error) = self.disk.sync_dir() {
            failed.count += 1;
            failed.errno = error.source.raw_os_error();
            return Err(error);
        }
        if failed.count == changes.failed {
            return Ok(());
        }
        let source = match failed.errno {
            Some(errno) => io::Error::from_raw_os_error(errno),
            None => io::Error::other("the sync failed in another thread"),
        };
        Err(DiskError {
            file: "the directory".into(),
            operation: "fsync of the directory",
            source,
        })
    }
}
