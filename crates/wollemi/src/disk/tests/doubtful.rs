//! A directory whose manifest's name a failed sync leaves in doubt.

use super::*;
use std::thread::ThreadId;

/// A directory whose sync can fail after the renaming of a manifest, and that records renamings, removals and syncs.
#[derive(Clone)]
pub(super) struct Doubtful(pub(super) Arc<Directory>, pub(super) Arc<Mutex<Doubts>>);

#[derive(Default)]
pub(super) struct Doubts {
    /// Whether the next sync of a thread after its renaming of a manifest fails.
    pub(super) is_armed: bool,
    /// The thread that has renamed a manifest and not synced it yet. The log's own thread, too, renames and syncs.
    renamed_by: Option<ThreadId>,
    pub(super) done: Vec<String>,
}

impl Doubtful {
    pub(super) fn new(path: &Path) -> Doubtful {
        let directory = Directory::open(path).expect("a directory");
        Doubtful(Arc::new(directory), Arc::default())
    }

    pub(super) fn doubts(&self) -> std::sync::MutexGuard<'_, Doubts> {
        self.1.lock().expect("no panic")
    }
}

impl Disk for Doubtful {
    type File = OpenFile;

    fn create(&self, name: &str) -> Result<OpenFile, DiskError> {
        self.0.create(name)
    }

    fn open(&self, name: &str) -> Result<OpenFile, DiskError> {
        self.0.open(name)
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.0.list()
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let mut doubts = self.doubts();
        doubts.done.push(format!("rename {from} {to}"));
        if to == "manifest" {
            doubts.renamed_by = Some(std::thread::current().id());
        }
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.0.remove(name)?;
        self.doubts().done.push(format!("remove {name}"));
        Ok(())
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        let mut doubts = self.doubts();
        let this = std::thread::current().id();
        let is_behind = doubts.renamed_by.take_if(|by| *by == this).is_some();
        if doubts.is_armed && is_behind {
            doubts.is_armed = false;
            return Err(DiskError {
                file: "the directory".into(),
                operation: "fsync of the directory",
                source: std::io::Error::from_raw_os_error(5),
            });
        }
        doubts.done.push("sync".into());
        self.0.sync_dir()
    }
}
