//! An index in a file that can be closed, or left as by a crash, and opened again.

#![allow(dead_code, reason = "each test file uses its part")]

use heap::{Heap, State};
use index::Index;
use pmem::{Hardware, Media, Pool, PoolOptions};
use std::collections::BTreeMap;
use std::ops::Bound;
use std::path::PathBuf;
use tempfile::TempDir;
use wollemi_roart::{KIND, Roart, Variant, tracer};

/// What an index should hold.
pub type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// An index in a file of its own.
pub struct Store<V: Variant, M: Media = Hardware> {
    // First: dropped before the folder.
    pub index: Roart<M, V>,
    folder: TempDir,
}

pub fn options() -> PoolOptions {
    PoolOptions {
        max_size: 1 << 32,
        page_size: 64 << 10,
        ..PoolOptions::default()
    }
}

/// A folder in memory where there is one.
pub fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .expect("a folder")
}

impl<V: Variant> Store<V> {
    /// An empty index.
    pub fn create() -> Self {
        Store::create_on(Hardware::detect())
    }

    /// Closes and opens again.
    pub fn reopen(self) -> Self {
        self.reopen_on(Hardware::detect())
    }

    /// What opens from a copy of the file as it is now: what a killed process leaves.
    pub fn crashed(&self) -> Self {
        let folder = folder();
        std::fs::copy(self.path(), folder.path().join("pool")).expect("a copy");
        Store::open_in(folder, Hardware::detect())
    }
}

impl<V: Variant, M: Media> Store<V, M> {
    /// An empty index.
    pub fn create_on(media: M) -> Self {
        let folder = folder();
        let pool = Pool::create(folder.path().join("pool"), &options(), media).expect("a pool");
        let heap = Heap::new(pool).expect("a heap");
        let index = Roart::create(&heap, b"test").expect("an index");
        Store { index, folder }
    }

    /// Closes and opens again.
    pub fn reopen_on(self, media: M) -> Self {
        let Store { index, folder } = self;
        drop(index);
        Store::open_in(folder, media)
    }

    /// Opens what is in the folder.
    pub fn open_in(folder: TempDir, media: M) -> Self {
        let pool = Pool::open(folder.path().join("pool"), &options(), media).expect("the pool");
        let heap = Heap::new(pool).expect("the heap");
        let index = Roart::open(&heap, b"test").expect("the index").expect("the root");
        heap.recover(vec![(KIND, tracer())], 1).expect("recovery");
        Store { index, folder }
    }

    /// Closes, and leaves the folder.
    pub fn close(self) -> TempDir {
        let Store { index, folder } = self;
        drop(index);
        folder
    }

    /// The pool's file.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("pool")
    }

    /// Puts into the index and the model.
    pub fn put(&self, model: &mut Model, key: &[u8], value: &[u8]) {
        self.index.upsert(key, value).expect("no error");
        model.insert(key.to_vec(), value.to_vec());
    }

    /// Removes from both.
    pub fn remove(&self, model: &mut Model, key: &[u8]) {
        let was = model.remove(key).is_some();
        assert_eq!(
            self.index.remove(key).expect("no error"),
            was,
            "{}",
            key.escape_ascii()
        );
    }

    /// Index and model hold the same, by gets and by scans both ways, and every check is clean.
    pub fn compare(&self, model: &Model) {
        {
            let guard = heap::pin();
            for (key, value) in model {
                let found = self.index.get(key, &guard).expect("no error");
                assert_eq!(found.as_deref(), Some(&value[..]), "get {}", key.escape_ascii());
            }
            let all = || self.index.range(Bound::Unbounded, Bound::Unbounded, &guard);
            let entries = all().map(|entry| entry.expect("no error"));
            assert!(
                entries.eq_by_bytes(model.iter()),
                "a forward scan differs from the model"
            );
            let entries = all().rev().map(|entry| entry.expect("no error"));
            assert!(
                entries.eq_by_bytes(model.iter().rev()),
                "a reverse scan differs from the model"
            );
        }
        let faults = self.index.check().expect("no error");
        assert_eq!(faults.found, [""; 0]);
        assert_eq!(faults.keys, model.len() as u64);
        let heap = self.index.heap();
        let state = heap.wait_recovered();
        assert!(matches!(state, State::Done), "{state:?}");
        let audit = heap.audit(&vec![(KIND, tracer())], 1).expect("an audit");
        assert!(audit.is_clean(), "{audit:?}");
    }
}

/// Comparing what a scan gives with what it should.
trait EqByBytes {
    fn eq_by_bytes<'m>(self, model: impl Iterator<Item = (&'m Vec<u8>, &'m Vec<u8>)>) -> bool;
}

impl<'g, I: Iterator<Item = (&'g [u8], index::Value<'g>)>> EqByBytes for I {
    fn eq_by_bytes<'m>(self, model: impl Iterator<Item = (&'m Vec<u8>, &'m Vec<u8>)>) -> bool {
        self.map(|(key, value)| (key.to_vec(), value.to_vec()))
            .eq(model.map(|(key, value)| (key.clone(), value.clone())))
    }
}
