//! A disk that remembers what a loss of power would leave: for each file its content at its last sync. A test can hold
//! up its syncs or make them fail.

use crate::support::PATIENCE;
use log::disk::{FileMapping, OpenFile};
use log::{Directory, Disk, DiskError, DiskFile};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

/// State shared by a disk's files.
struct DiskState {
    /// The directory with what a loss of power leaves.
    left: PathBuf,
    /// Held while that is changed or copied.
    copying: Mutex<()>,
    fails: AtomicBool,
    gate: Mutex<Gate>,
    changed: Condvar,
}

#[derive(Default)]
struct Gate {
    is_closed: bool,
    /// Number of syncs that wait there.
    waiting: usize,
}

/// The disk.
#[derive(Clone)]
pub struct Kept(Arc<Inner>);

struct Inner {
    directory: Directory,
    shared: Arc<DiskState>,
}

pub struct KeptFile {
    name: String,
    file: OpenFile,
    directory: PathBuf,
    shared: Arc<DiskState>,
}

impl DiskState {
    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().expect("no panic")
    }
}

impl Kept {
    /// Creates an empty disk in this directory, with what a loss of power leaves beside it.
    pub fn new(directory: &Path) -> Kept {
        let left = directory.join("left");
        std::fs::create_dir(&left).expect("a directory");
        let shared = DiskState {
            left,
            copying: Mutex::default(),
            fails: AtomicBool::new(false),
            gate: Mutex::default(),
            changed: Condvar::new(),
        };
        Kept(Arc::new(Inner {
            directory: Directory::open(directory.join("files")).expect("a directory"),
            shared: Arc::new(shared),
        }))
    }

    pub fn disk(&self) -> Arc<impl Disk> {
        Arc::new(self.clone())
    }

    /// Makes syncs fail from now on.
    pub fn fail(&self) {
        self.0.shared.fails.store(true, SeqCst);
    }

    /// Makes syncs wait from now on until they are released.
    pub fn hold(&self) {
        self.0.shared.gate().is_closed = true;
    }

    pub fn release(&self) {
        self.0.shared.gate().is_closed = false;
        self.0.shared.changed.notify_all();
    }

    /// Waits until a sync waits.
    pub fn until_one_waits(&self) {
        let shared = &self.0.shared;
        let waited = shared
            .changed
            .wait_timeout_while(shared.gate(), PATIENCE, |gate| gate.waiting == 0);
        assert!(!waited.expect("no panic").1.timed_out(), "nothing is synced");
    }

    /// Copies what a loss of power would leave now.
    pub fn cut(&self, to: &Path) {
        let _still = self.0.shared.copying.lock().expect("no panic");
        std::fs::create_dir_all(to).expect("a directory");
        for entry in std::fs::read_dir(&self.0.shared.left).expect("a directory") {
            let entry = entry.expect("an entry");
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
        }
    }

    fn file(&self, name: &str, file: OpenFile) -> KeptFile {
        KeptFile {
            name: name.to_owned(),
            file,
            directory: self.0.directory.path().to_owned(),
            shared: self.0.shared.clone(),
        }
    }

    fn left(&self, name: &str) -> PathBuf {
        self.0.shared.left.join(name)
    }
}

impl Disk for Kept {
    type File = KeptFile;

    fn create(&self, name: &str) -> Result<KeptFile, DiskError> {
        Ok(self.file(name, self.0.directory.create(name)?))
    }

    fn open(&self, name: &str) -> Result<KeptFile, DiskError> {
        Ok(self.file(name, self.0.directory.open(name)?))
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.0.directory.list()
    }

    /// The durability of names is not under test: a synced file gets its new name at once.
    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        let _copying = self.0.shared.copying.lock().expect("no panic");
        let _ = std::fs::rename(self.left(from), self.left(to));
        self.0.directory.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        let _copying = self.0.shared.copying.lock().expect("no panic");
        let _ = std::fs::remove_file(self.left(name));
        self.0.directory.remove(name)
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        self.0.directory.sync_dir()
    }
}

impl DiskFile for KeptFile {
    type Mapping = FileMapping;

    fn len(&self) -> Result<u64, DiskError> {
        self.file.len()
    }

    fn read_at(&self, at: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        self.file.read_at(at, bytes)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.file.write_at(at, bytes)
    }

    fn preallocate(&self, len: u64) -> Result<(), DiskError> {
        self.file.preallocate(len)
    }

    fn map(&self, len: u64) -> Result<FileMapping, DiskError> {
        self.file.map(len)
    }

    fn sync(&self) -> Result<(), DiskError> {
        let shared = &self.shared;
        let mut gate = shared.gate();
        if gate.is_closed {
            gate.waiting += 1;
            shared.changed.notify_all();
            let waited = shared
                .changed
                .wait_timeout_while(gate, PATIENCE, |gate| gate.is_closed);
            gate = waited.expect("no panic").0;
            gate.waiting -= 1;
        }
        drop(gate);
        if shared.fails.load(SeqCst) {
            return Err(DiskError {
                file: self.name.clone(),
                operation: "fdatasync",
                source: io::Error::other("the medium is gone"),
            });
        }
        let _copying = shared.copying.lock().expect("no panic");
        let to = shared.left.join(&self.name);
        std::fs::copy(self.directory.join(&self.name), to).expect("copied");
        Ok(())
    }
}
