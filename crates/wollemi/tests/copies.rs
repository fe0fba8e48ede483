//! How often a large value is copied on its way into log and pool at level `disk`, as `docs/disk.md` states. A program
//! of its own, so that no other test allocates.
//!
//! A copy is counted where it arrives: bytes stored into the mapping of a log's segment, bytes stored into the pool,
//! and bytes that the program's allocator has given out.

use cap::Cap;
use log::disk::{FileMapping, OpenFile};
use log::{Directory, Disk, DiskError, DiskFile, LogOptions, Mapping};
use pmem::{Counting, Hardware, Pool, PoolOptions};
use std::alloc::System;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use wollemi::{Db, Map, Media, OnDisk, Options};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The length of the values.
const VALUE: u64 = 1 << 20;

/// What the test's disk has seen of the mappings of segments.
#[derive(Default)]
struct Stores {
    /// All bytes that were stored.
    bytes: AtomicU64,
    /// Those of them that were read from the caller's values.
    from_values: AtomicU64,
    /// Where the caller's values begin and end.
    values: [AtomicUsize; 2],
}

/// A directory that counts what is stored into its files' mappings.
struct Counted {
    directory: Directory,
    stores: Arc<Stores>,
}

struct CountedFile(OpenFile, Arc<Stores>);

struct CountedMapping(FileMapping, Arc<Stores>);

impl Disk for Counted {
    type File = CountedFile;

    fn create(&self, name: &str) -> Result<CountedFile, DiskError> {
        Ok(CountedFile(self.directory.create(name)?, self.stores.clone()))
    }

    fn open(&self, name: &str) -> Result<CountedFile, DiskError> {
        Ok(CountedFile(self.directory.open(name)?, self.stores.clone()))
    }

    fn list(&self) -> Result<Vec<String>, DiskError> {
        self.directory.list()
    }

    fn rename(&self, from: &str, to: &str) -> Result<(), DiskError> {
        self.directory.rename(from, to)
    }

    fn remove(&self, name: &str) -> Result<(), DiskError> {
        self.directory.remove(name)
    }

    fn sync_dir(&self) -> Result<(), DiskError> {
        self.directory.sync_dir()
    }
}

impl DiskFile for CountedFile {
    type Mapping = CountedMapping;

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

    fn map(&self, len: u64) -> Result<CountedMapping, DiskError> {
        Ok(CountedMapping(self.0.map(len)?, self.1.clone()))
    }

    fn sync(&self) -> Result<(), DiskError> {
        self.0.sync()
    }
}

impl Mapping for CountedMapping {
    fn store(&mut self, at: u64, bytes: &[u8]) {
        let Stores {
            bytes: all,
            from_values,
            values: [start, end],
        } = &*self.1;
        let len = bytes.len() as u64;
        all.fetch_add(len, Relaxed);
        let place = bytes.as_ptr().addr();
        if start.load(Relaxed) <= place && place + bytes.len() <= end.load(Relaxed) {
            from_values.fetch_add(len, Relaxed);
        }
        self.0.store(at, bytes);
    }
}

/// The copies of values that a write has made: the bytes that arrived somewhere, in units of a value's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Copies {
    /// Into the log.
    log: u64,
    /// Those into the log that were read from the caller's memory.
    from_caller: u64,
    /// Into the pool.
    pool: u64,
    /// Into other memory.
    memory: u64,
}

/// A database at level `disk`, on a disk that counts.
struct Rig<M: Media> {
    db: Db<M>,
    map: Map,
    stores: Arc<Stores>,
    /// Two values, one behind the other.
    values: Vec<u8>,
    _folder: tempfile::TempDir,
}

impl<M: Media> Rig<M> {
    fn new(media: M) -> Result<Rig<M>, Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let stores = Arc::new(Stores::default());
        let disk = Arc::new(Counted {
            directory: Directory::open(folder.path().join("log"))?,
            stores: stores.clone(),
        });
        let pool = PoolOptions {
            max_size: 128 << 20,
            ..PoolOptions::default()
        };
        let pool = Pool::anonymous(&pool, media)?;
        let on_disk = OnDisk {
            // So long that no write makes another segment.
            log: LogOptions {
                segment_size: 32 << 20,
                ..LogOptions::default()
            },
            ..OnDisk::new(Options::new().recovery_threads(0))
        };
        let db = on_disk.open(pool, disk)?;
        let map = db.map("map")?;
        let values = vec![7; 2 * VALUE as usize];
        let Range { start, end } = values.as_ptr_range();
        stores.values[0].store(start.addr(), Relaxed);
        stores.values[1].store(end.addr(), Relaxed);
        Ok(Rig {
            db,
            map,
            stores,
            values,
            _folder: folder,
        })
    }

    /// One of the values.
    fn value(&self, number: usize) -> &[u8] {
        let start = number * VALUE as usize;
        &self.values[start..start + VALUE as usize]
    }

    /// Counts the copies that each kind of write makes: of a new key and of a present one, in a batch and in a
    /// transaction of one key, and in those of two keys. `in_pool` returns how many bytes were stored into the pool.
    fn copies(&self, in_pool: impl Fn() -> u64) -> Result<[Copies; 6], wollemi::Error> {
        let (db, map) = (&self.db, &self.map);
        let count = |write: &dyn Fn() -> Result<(), wollemi::Error>| -> Result<Copies, wollemi::Error> {
            let bytes = || {
                let [log, from_caller] =
                    [&self.stores.bytes, &self.stores.from_values].map(|bytes| bytes.load(Relaxed));
                [log, from_caller, in_pool(), ALLOCATOR.total_allocated() as u64]
            };
            let before = bytes();
            write()?;
            let after = bytes();
            let [log, from_caller, pool, memory] = std::array::from_fn(|i| (after[i] - before[i]) / VALUE);
            Ok(Copies {
                log,
                from_caller,
                pool,
                memory,
            })
        };
        let batch = |keys: &[&str]| {
            let mut batch = db.batch();
            for (i, key) in keys.iter().enumerate() {
                batch.upsert(map, key, self.value(i));
            }
            batch.commit().map(drop)
        };
        let transact = |keys: &[&str]| {
            db.transact(|tx| {
                let mut keys = keys.iter().enumerate();
                keys.try_for_each(|(i, key)| tx.upsert(map, key, self.value(i)))
            })
        };
        Ok([
            count(&|| map.upsert("key", self.value(0)))?,
            count(&|| map.upsert("key", self.value(1)))?,
            count(&|| batch(&["one"]))?,
            count(&|| transact(&["one"]))?,
            count(&|| batch(&["one", "two"]))?,
            count(&|| transact(&["one", "two"]))?,
        ])
    }
}

/// A single write copies a large value twice: from the caller's memory into the log, and into the pool. A batch or a
/// transaction first copies it into its own buffer, and, if it changes several keys, into an intent in the pool.
#[test]
fn a_large_value_is_copied_as_often_as_documented() -> Result<(), Box<dyn std::error::Error>> {
    let single = Copies {
        log: 1,
        from_caller: 1,
        pool: 1,
        memory: 0,
    };
    let of_one_key = Copies {
        from_caller: 0,
        memory: 1,
        ..single
    };
    let of_two_keys = Copies {
        log: 2,
        from_caller: 0,
        pool: 2 * 2,
        memory: 2,
    };
    let expected = [single, single, of_one_key, of_one_key, of_two_keys, of_two_keys];
    // The media that counts stores takes memory for that, so memory is counted on another.
    let on_machine = Rig::new(Hardware::detect())?.copies(|| 0)?;
    let media = Counting::new(Hardware::detect());
    let on_counting = Rig::new(media.clone())?.copies(|| media.counts().bytes)?;
    for (i, expected) in expected.into_iter().enumerate() {
        let found = Copies {
            memory: on_machine[i].memory,
            ..on_counting[i]
        };
        assert_eq!(found, expected, "write {i}");
    }
    Ok(())
}
