//! The bound: records written to a preallocated file, and `fdatasync` by the first waiting thread on behalf of all.

use crate::Error;
use crate::peers::kept::{Commits, Pair};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of the file; when it is full, records continue at its start.
const FILE_BYTES: u64 = 64 << 20;

/// Bytes per write while the file is filled with zeros.
const CHUNK_BYTES: u64 = 1 << 20;

/// The description of the bound.
pub const SETTING: &str =
    "no database: pwrite to a zero-filled file, and one fdatasync for all waiting threads";

/// An append-only file with group commit.
pub struct Raw {
    file: File,
    /// The position of the next record; it keeps growing when records wrap around.
    end: Mutex<u64>,
    /// The position up to which records are durable, and whether a thread is syncing.
    durable: Mutex<(u64, bool)>,
    woken: Condvar,
    syncs: AtomicU64,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Raw {
    pub fn create(directory: &Path) -> Result<Raw, Error> {
        let make = || {
            let file = File::create_new(directory.join("raw"))?;
            for at in (0..FILE_BYTES).step_by(CHUNK_BYTES as usize) {
                file.write_all_at(&[0; CHUNK_BYTES as usize], at)?;
            }
            file.sync_all()?;
            Ok(file)
        };
        Ok(Raw {
            file: make().map_err(Error::Directory)?,
            end: Mutex::new(0),
            durable: Mutex::new((0, false)),
            woken: Condvar::new(),
            syncs: AtomicU64::new(0),
        })
    }

    /// Returns the number of syncs so far.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Relaxed)
    }

    fn append(&self, record: &[u8]) -> std::io::Result<u64> {
        let (len, mut end) = (record.len() as u64, lock(&self.end));
        if *end % FILE_BYTES + len > FILE_BYTES {
            *end = end.next_multiple_of(FILE_BYTES);
        }
        self.file.write_all_at(record, *end % FILE_BYTES)?;
        *end += len;
        Ok(*end)
    }

    fn wait(&self, record: u64) -> std::io::Result<()> {
        let mut durable = lock(&self.durable);
        while durable.0 < record {
            if durable.1 {
                durable = self.woken.wait(durable).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            durable.1 = true;
            drop(durable);
            let to = *lock(&self.end);
            let synced = self.file.sync_data();
            self.syncs.fetch_add(1, Relaxed);
            durable = lock(&self.durable);
            durable.1 = false;
            self.woken.notify_all();
            synced?;
            durable.0 = to;
        }
        Ok(())
    }
}

impl Commits for Raw {
    fn commit(&self, pairs: &[Pair<'_>]) -> Result<(), Error> {
        let mut record = Vec::with_capacity(pairs.len() * 128);
        for (key, value) in pairs {
            record.extend_from_slice(key);
            record.extend_from_slice(value);
        }
        let end = self.append(&record).map_err(Error::Directory)?;
        self.wait(end).map_err(Error::Directory)
    }
}
