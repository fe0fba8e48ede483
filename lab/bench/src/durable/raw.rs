//! The bound: records written to a preallocated file, and `fdatasync` by the first waiting thread for all that wait.

use crate::Error;
use crate::peers::kept::{Commits, Pair};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes of the file; records go on at its start when it is full.
const FILE: u64 = 64 << 20;

/// Bytes of each write while it is filled with zeros.
const PIECE: u64 = 1 << 20;

/// What it is.
pub const SETTING: &str =
    "no database: pwrite to a file of written zeros and fdatasync, one for all that wait";

pub struct Raw {
    file: File,
    /// Where the next record goes; it counts on across the file's end.
    end: Mutex<u64>,
    /// Up to where records are durable, and whether a thread syncs.
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
            for at in (0..FILE).step_by(PIECE as usize) {
                file.write_all_at(&[0; PIECE as usize], at)?;
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

    /// Syncs so far.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Relaxed)
    }

    fn append(&self, record: &[u8]) -> std::io::Result<u64> {
        let (len, mut end) = (record.len() as u64, lock(&self.end));
        if *end % FILE + len > FILE {
            *end = end.next_multiple_of(FILE);
        }
        self.file.write_all_at(record, *end % FILE)?;
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
