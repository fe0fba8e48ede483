//! An index in a file of its own that can be closed, or abandoned as by a crash, and reopened; with a model beside
//! it.

use super::{Reopen, TestedIndex};
use crate::{Index, OnHeap, Value};
use heap::{Heap, RecoveryStage};
use pmem::{Hardware, Pool, PoolOptions};
use rustix::fs::StatVfs;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use tempfile::TempDir;

/// The expected contents of an index.
pub type Entries = BTreeMap<Vec<u8>, Vec<u8>>;

/// An index in a file of its own.
#[derive(Debug)]
pub struct IndexInFile<I> {
    // First: dropped before the folder.
    index: I,
    folder: TempDir,
}

/// The name of the root.
pub(super) const ROOT: &[u8] = b"test";

/// The options of a store's pool.
pub fn options() -> PoolOptions {
    PoolOptions {
        max_size: 1 << 32,
        page_size: 64 << 10,
        ..PoolOptions::default()
    }
}

/// A folder for a pool, in `/dev/shm` if there is enough room: containers often have little there.
pub fn folder() -> TempDir {
    let memory = "/dev/shm";
    let has_room = |at: StatVfs| at.f_bavail.saturating_mul(at.f_frsize) >= 1 << 30;
    if rustix::fs::statvfs(memory).is_ok_and(has_room)
        && let Ok(folder) = tempfile::tempdir_in(memory)
    {
        return folder;
    }
    tempfile::tempdir().expect("a folder")
}

/// With every write-back, fence and non-temporal store, as on persistent memory.
impl<I: OnHeap<Media = Hardware>> IndexInFile<I> {
    /// Creates an empty index.
    pub fn create() -> Self {
        IndexInFile::create_on(Hardware::as_persistent())
    }

    /// Closes and reopens the index.
    #[must_use]
    pub fn reopen(self) -> Self {
        IndexInFile::open_in(self.close(), Hardware::as_persistent())
    }

    /// Opens a copy of the file as it is now: the state that a killed process leaves.
    #[must_use]
    pub fn crashed(&self) -> Self {
        IndexInFile::open_in(self.image(), Hardware::as_persistent())
    }
}

impl<I: OnHeap> IndexInFile<I> {
    /// Creates an empty index.
    pub fn create_on(media: I::Media) -> Self {
        IndexInFile::make_on(media, |heap| I::create(heap, ROOT).expect("an index"))
    }

    /// The index that `make` makes, under the name of [`ROOT`].
    pub(super) fn make_on(media: I::Media, make: impl FnOnce(&Heap<I::Media>) -> I) -> Self {
        let folder = folder();
        let pool = Pool::create(folder.path().join("pool"), &options(), media).expect("a pool");
        let heap = Heap::new(pool).expect("a heap");
        let index = make(&heap);
        IndexInFile { index, folder }
    }

    /// Opens the index in the folder.
    pub fn open_in(folder: TempDir, media: I::Media) -> Self {
        let pool = Pool::open(folder.path().join("pool"), &options(), media).expect("the pool");
        let heap = Heap::new(pool).expect("the heap");
        let index = I::open(&heap, ROOT).expect("the index").expect("the root");
        heap.recover(vec![I::tracer()], 2).expect("recovery");
        IndexInFile { index, folder }
    }

    /// Closes the index, and returns its folder.
    pub fn close(self) -> TempDir {
        let IndexInFile { index, folder } = self;
        drop(index);
        folder
    }

    /// A folder with a copy of the file as it is now.
    pub fn image(&self) -> TempDir {
        let folder = folder();
        std::fs::copy(self.path(), folder.path().join("pool")).expect("a copy");
        folder
    }

    /// The index.
    pub fn index(&self) -> &I {
        &self.index
    }

    /// The path of the pool's file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("pool")
    }

    /// Puts into the index and the model.
    pub fn put(&self, model: &mut Entries, key: &[u8], value: &[u8]) {
        self.index.upsert(key, value).expect("no error");
        model.insert(key.to_vec(), value.to_vec());
    }

    /// Removes from both.
    pub fn remove(&self, model: &mut Entries, key: &[u8]) {
        let was = model.remove(key).is_some();
        assert_eq!(
            self.index.remove(key).expect("no error"),
            was,
            "{}",
            key.escape_ascii()
        );
    }

    /// Index and model have the same contents, by gets and by scans both ways, and every check is clean.
    pub fn compare(&self, model: &Entries) {
        {
            let guard = heap::pin();
            for (key, value) in model {
                let found = self.index.get(key, &guard).expect("no error");
                assert_eq!(found.as_deref(), Some(&value[..]), "get {}", key.escape_ascii());
            }
            let mut entries: Vec<_> = model.iter().collect();
            I::ORDER.sort(&mut entries, |(key, _)| key);
            let entries = || entries.iter().copied();
            let all = || self.index.range(Bound::Unbounded, Bound::Unbounded, &guard);
            assert_same(all(), entries(), "a walk");
            assert_same(all().rev(), entries().rev(), "a walk backward");
        }
        let faults = self.index.check().expect("no error");
        assert_eq!(faults.found, [""; 0]);
        assert_eq!(faults.keys, model.len() as u64);
        let heap = self.index.heap();
        let state = heap.wait_recovered();
        if state != RecoveryStage::Idle {
            assert_eq!(state, RecoveryStage::Done);
            let _quiesced = self.index.quiesce();
            let audit = heap.audit(&vec![I::tracer()], 1).expect("an audit");
            assert!(audit.is_clean(), "{audit:?}");
        }
    }
}

fn assert_same<'a>(
    mut found: impl Iterator<Item = Result<(&'a [u8], Value<'a>), crate::Error>>,
    mut model: impl Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)>,
    how: &str,
) {
    loop {
        let next = found.next().map(|entry| entry.expect("no error"));
        let next = next.as_ref().map(|(key, value)| (*key, &**value));
        let expected = model.next().map(|(key, value)| (&key[..], &value[..]));
        assert_eq!(next, expected, "{how} differs from the model");
        if next.is_none() {
            return;
        }
    }
}

/// The conformance suite over a pool in a file, which is closed or abandoned as by a crash, reopened and recovered
/// while the suite goes on; with the heap's accounts.
impl<I: OnHeap<Media = Hardware>> TestedIndex for IndexInFile<I> {
    const IS_LOCK_FREE: bool = I::IS_LOCK_FREE;

    fn create() -> Self {
        IndexInFile::create()
    }

    fn index(&self) -> &dyn Index {
        &self.index
    }

    fn reopen(self, how: Reopen) -> Self {
        match how {
            Reopen::Clean => IndexInFile::reopen(self),
            Reopen::Crash => self.crashed(),
        }
    }

    fn used(&self) -> Option<u64> {
        let heap = self.index.heap();
        let state = heap.wait_recovered();
        assert!(
            matches!(state, RecoveryStage::Done | RecoveryStage::Idle),
            "{state:?}"
        );
        // Objects rather than bytes: the bytes include page ends, which depend on the pages that threads hold.
        Some(heap.stats().objects)
    }
}
