//! A directory whose syncs a test holds back.

use super::*;

/// Whether syncs are held back.
#[derive(Clone, Default)]
pub(super) struct Held(Arc<(Mutex<bool>, Condvar)>);

impl Held {
    pub(super) fn hold(&self, held: bool) {
        *self.0.0.lock().expect("no panic") = held;
        self.0.1.notify_all();
    }

    pub(super) fn wait(&self) {
        let held = self.0.0.lock().expect("no panic");
        drop(self.0.1.wait_while(held, |held| *held).expect("no panic"));
    }
}

/// Holds syncs back. Dropping it releases them, after a panic too: dropping a database waits for its threads.
pub(super) struct Hold<'h>(&'h Held);

impl Hold<'_> {
    pub(super) fn new(held: &Held) -> Hold<'_> {
        held.hold(true);
        Hold(held)
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.hold(false);
    }
}

/// A directory that holds back syncs of the files whose names begin with a prefix.
pub(super) struct Slow(pub(super) Directory, pub(super) Held, pub(super) &'static str);

impl Slow {
    pub(super) fn file(&self, name: &str, file: OpenFile) -> SlowFile {
        let held = match name.starts_with(self.2) {
            true => self.1.clone(),
            false => Held::default(),
        };
        SlowFile(file, held)
    }
}

pub(super) struct SlowFile(OpenFile, Held);

impl Disk for Slow {
    type File = SlowFile;

    fn create(&self, name: &str) -> Result<SlowFile, DiskError> {
        Ok(self.file(name, self.0.create(name)?))
    }

    fn open(&self, name: &str) -> Result<SlowFile, DiskError> {
        Ok(self.file(name, self.0.open(name)?))
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.0.list()
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.0.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.0.remove(name)
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        self.0.sync_dir()
    }
}

impl DiskFile for SlowFile {
    type Mapping = FileMapping;

    fn len(&self) -> Result<u64, DiskError> {
        self.0.len()
    }

    fn read_at(&self, at: u64, bytes: &mut [u8]) -> Result<(), DiskError> {
        self.0.read_at(at, bytes)
    }

    fn write_at(&self, at: u64, bytes: &[u8]) -> Result<(), DiskError> {
        self.0.write_at(at, bytes)
    }

    fn preallocate(&self, len: u64) -> Result<(), DiskError> {
        self.0.preallocate(len)
    }

    fn map(&self, len: u64) -> Result<FileMapping, DiskError> {
        self.0.map(len)
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.1.wait();
        self.0.sync()
    }
}
