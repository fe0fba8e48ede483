//! RocksDB, through the C interface of the system's library (`librocksdb-dev` and the like).

use super::kept::{Commits, Pair, SyncedStore, Syncing};
use super::{Durable, Promise};
use crate::Error;
use crate::engine::{Engine, Scanned};
use std::ffi::{CStr, CString, c_char, c_int, c_uchar, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{NonNull, null_mut};

#[link(name = "rocksdb")]
unsafe extern "C" {
    fn rocksdb_options_create() -> *mut c_void;
    fn rocksdb_options_destroy(options: *mut c_void);
    fn rocksdb_options_set_create_if_missing(options: *mut c_void, yes: c_uchar);
    fn rocksdb_options_increase_parallelism(options: *mut c_void, threads: c_int);
    fn rocksdb_readoptions_create() -> *mut c_void;
    fn rocksdb_readoptions_destroy(options: *mut c_void);
    fn rocksdb_writeoptions_create() -> *mut c_void;
    fn rocksdb_writeoptions_set_sync(options: *mut c_void, yes: c_uchar);
    fn rocksdb_writeoptions_destroy(options: *mut c_void);
    fn rocksdb_open(options: *const c_void, name: *const c_char, error: *mut *mut c_char) -> *mut c_void;
    fn rocksdb_close(db: *mut c_void);
    fn rocksdb_put(
        db: *mut c_void,
        options: *const c_void,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
        error: *mut *mut c_char,
    );
    fn rocksdb_writebatch_create() -> *mut c_void;
    fn rocksdb_writebatch_destroy(batch: *mut c_void);
    fn rocksdb_writebatch_put(
        batch: *mut c_void,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
    );
    fn rocksdb_write(db: *mut c_void, options: *const c_void, batch: *mut c_void, error: *mut *mut c_char);
    fn rocksdb_delete(
        db: *mut c_void,
        options: *const c_void,
        key: *const c_char,
        key_len: usize,
        error: *mut *mut c_char,
    );
    fn rocksdb_get(
        db: *mut c_void,
        options: *const c_void,
        key: *const c_char,
        key_len: usize,
        value_len: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut c_char;
    fn rocksdb_free(memory: *mut c_void);
    fn rocksdb_create_iterator(db: *mut c_void, options: *const c_void) -> *mut c_void;
    fn rocksdb_iter_destroy(iterator: *mut c_void);
    fn rocksdb_iter_seek(iterator: *mut c_void, key: *const c_char, key_len: usize);
    fn rocksdb_iter_valid(iterator: *const c_void) -> c_uchar;
    fn rocksdb_iter_next(iterator: *mut c_void);
    fn rocksdb_iter_value(iterator: *const c_void, value_len: *mut usize) -> *const c_char;
}

/// RocksDB.
pub const ROCKSDB: Durable = Durable {
    name: "rocksdb",
    setting: "log written to the page cache by every operation (sync off): survives a kill; writes are blind and do \
              not return the old value",
    synced: "log synced by every operation (sync on); writes are blind and do not return the old value",
    survives_kill: true,
    open: |directory, promise| Ok(Box::new(RocksDb::open(&directory.join("rocksdb"), promise)?)),
};

/// RocksDB with any pairs, each commit synced.
pub const SYNCING: Syncing = Syncing {
    name: "rocksdb",
    setting: "sync on; several pairs as a WriteBatch",
    open: |directory| {
        Ok(Box::new(RocksDb::open(
            &directory.join("rocksdb"),
            Promise::Power,
        )?))
    },
};

/// An open database and the options of its calls; all are freed on drop.
struct RocksDb {
    db: NonNull<c_void>,
    read: *mut c_void,
    write: *mut c_void,
}

// SAFETY: RocksDB's database may be used by several threads at once, and the options do not change after `open`.
unsafe impl Send for RocksDb {}
// SAFETY: as above.
unsafe impl Sync for RocksDb {}

fn failed(what: impl Into<String>) -> Error {
    Error::Peer {
        peer: "rocksdb",
        what: what.into(),
    }
}

/// Returns the error that a call has set, and frees it.
fn check_error(error: *mut c_char) -> Result<(), Error> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: an error that was set is a C string allocated by RocksDB, which we own until we free it.
    let what = unsafe { CStr::from_ptr(error) }.to_string_lossy().into_owned();
    // SAFETY: RocksDB allocated the error, and it is not used again.
    unsafe { rocksdb_free(error.cast()) };
    Err(failed(what))
}

fn word(value: *const c_char, len: usize) -> u64 {
    if value.is_null() || len != 8 {
        return 0;
    }
    // SAFETY: the caller's value has `len` bytes, which is eight here; they need not be aligned.
    u64::from_le(unsafe { value.cast::<u64>().read_unaligned() })
}

impl RocksDb {
    fn open(path: &Path, promise: Promise) -> Result<RocksDb, Error> {
        let name =
            CString::new(path.as_os_str().as_bytes()).map_err(|_| failed("the path contains a zero byte"))?;
        let mut error = null_mut();
        // SAFETY: creates options, which are freed below.
        let options = unsafe { rocksdb_options_create() };
        // SAFETY: the options were just created.
        unsafe { rocksdb_options_set_create_if_missing(options, 1) };
        // SAFETY: as above.
        unsafe { rocksdb_options_increase_parallelism(options, 2) };
        // SAFETY: valid options, a C string, and a place for an error.
        let db = unsafe { rocksdb_open(options, name.as_ptr(), &raw mut error) };
        // SAFETY: the database has its own copy of the options.
        unsafe { rocksdb_options_destroy(options) };
        check_error(error)?;
        let db = NonNull::new(db).ok_or_else(|| failed("rocksdb_open returned no database"))?;
        // SAFETY: creates options that live as long as the database.
        let read = unsafe { rocksdb_readoptions_create() };
        // SAFETY: as above.
        let write = unsafe { rocksdb_writeoptions_create() };
        // SAFETY: the options were just created.
        unsafe { rocksdb_writeoptions_set_sync(write, (promise == Promise::Power).into()) };
        Ok(RocksDb { db, read, write })
    }
}

impl Drop for RocksDb {
    fn drop(&mut self) {
        // SAFETY: the database is not used again.
        unsafe { rocksdb_close(self.db.as_ptr()) };
        // SAFETY: created by `open`.
        unsafe { rocksdb_readoptions_destroy(self.read) };
        // SAFETY: created by `open`.
        unsafe { rocksdb_writeoptions_destroy(self.write) };
    }
}

impl RocksDb {
    fn put(&self, key: &[u8], value: &[u8]) -> Result<(), Error> {
        let (db, options, mut error) = (self.db.as_ptr(), self.write, null_mut());
        // SAFETY: an open database, its options, and bytes with their lengths, which are copied.
        unsafe {
            rocksdb_put(
                db,
                options,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                &raw mut error,
            );
        }
        check_error(error)
    }

    /// Calls `look` with the key's value, if there is one.
    fn find<T>(&self, key: &[u8], look: impl FnOnce(&[u8]) -> T) -> Result<Option<T>, Error> {
        let (mut len, mut error) = (0, null_mut());
        let (db, options) = (self.db.as_ptr(), self.read);
        // SAFETY: an open database, its options, a key with its length, and places for the results.
        let value = unsafe {
            rocksdb_get(
                db,
                options,
                key.as_ptr().cast(),
                key.len(),
                &raw mut len,
                &raw mut error,
            )
        };
        check_error(error)?;
        if value.is_null() {
            return Ok(None);
        }
        // SAFETY: a found value has `len` bytes, valid until it is freed.
        let found = look(unsafe { std::slice::from_raw_parts(value.cast(), len) });
        // SAFETY: the caller of `rocksdb_get` owns a found value and frees it.
        unsafe { rocksdb_free(value.cast()) };
        Ok(Some(found))
    }
}

impl Commits for RocksDb {
    fn commit(&self, pairs: &[Pair<'_>]) -> Result<(), Error> {
        if let [(key, value)] = pairs {
            return self.put(key, value);
        }
        // SAFETY: creates a batch, which is freed below.
        let batch = unsafe { rocksdb_writebatch_create() };
        for (key, value) in pairs {
            let (key, value, lens) = (key.as_ptr(), value.as_ptr(), (key.len(), value.len()));
            // SAFETY: a batch, and bytes with their lengths, which are copied.
            unsafe { rocksdb_writebatch_put(batch, key.cast(), lens.0, value.cast(), lens.1) };
        }
        let mut error = null_mut();
        // SAFETY: an open database, its options, the batch and a place for an error.
        unsafe { rocksdb_write(self.db.as_ptr(), self.write, batch, &raw mut error) };
        // SAFETY: made above and not used again.
        unsafe { rocksdb_writebatch_destroy(batch) };
        check_error(error)
    }
}

impl SyncedStore for RocksDb {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Error> {
        self.find(key, <[u8]>::to_vec)
    }
}

impl Engine for RocksDb {
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.put(key, &value.to_le_bytes()).map(|()| true)
    }

    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        self.find(key, |value| word(value.as_ptr().cast(), value.len()))
    }

    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.insert(key, value)
    }

    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let mut error = null_mut();
        // SAFETY: an open database, its options, and a key with its length.
        unsafe {
            rocksdb_delete(
                self.db.as_ptr(),
                self.write,
                key.as_ptr().cast(),
                key.len(),
                &raw mut error,
            );
        }
        check_error(error).map(|()| true)
    }

    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        // SAFETY: an open database and its options; the iterator is freed below.
        let iterator = unsafe { rocksdb_create_iterator(self.db.as_ptr(), self.read) };
        // SAFETY: an iterator, and a key with its length.
        unsafe { rocksdb_iter_seek(iterator, from.as_ptr().cast(), from.len()) };
        let mut scanned = Scanned::default();
        // SAFETY: an iterator.
        while scanned.keys < length && unsafe { rocksdb_iter_valid(iterator) } != 0 {
            let mut len = 0;
            // SAFETY: the iterator is at an entry, whose value is valid until the iterator moves.
            let value = unsafe { rocksdb_iter_value(iterator, &raw mut len) };
            scanned.meet(word(value, len));
            // SAFETY: the iterator is at an entry.
            unsafe { rocksdb_iter_next(iterator) };
        }
        // SAFETY: made above and not used again.
        unsafe { rocksdb_iter_destroy(iterator) };
        Ok(scanned)
    }
}
