//! Allocates the same chunks from libpmemobj, if the system has it (Debian's `libpmemobj1`, loaded at run time).
//!
//! The pool is in a memory file system, or beside our file. `PMEM_IS_PMEM_FORCE` makes libpmemobj treat it as
//! persistent memory, so that it issues write-backs and fences instead of system calls.

use super::CHUNK;
use crate::Error;
use libloading::{Library, Symbol};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::null;

/// libpmemobj's `PMEMoid`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Oid {
    pool: u64,
    offset: u64,
}

type Create = unsafe extern "C" fn(*const c_char, *const c_char, usize, u32) -> *mut c_void;
type Close = unsafe extern "C" fn(*mut c_void);
type Alloc = unsafe extern "C" fn(
    *mut c_void,
    *mut Oid,
    usize,
    u64,
    Option<unsafe extern "C" fn()>,
    *const c_void,
) -> c_int;
type Persist = unsafe extern "C" fn(*mut c_void, *const c_void, usize);
type Message = unsafe extern "C" fn() -> *const c_char;

/// The loaded library.
pub struct Pmemobj(Library);

/// A pool in its own file, which is removed when the pool is dropped.
pub struct Pool<'l> {
    pool: *mut c_void,
    path: PathBuf,
    close: Symbol<'l, Close>,
    alloc: Symbol<'l, Alloc>,
    persist: Symbol<'l, Persist>,
}

// SAFETY: libpmemobj's functions may be called on one pool from several threads.
unsafe impl Sync for Pool<'_> {}

fn failed(what: impl ToString) -> Error {
    let (peer, what) = ("libpmemobj", what.to_string());
    Error::Peer { peer, what }
}

impl Pmemobj {
    /// Loads the system's library, if installed. Must be called while the process has one thread.
    pub fn find() -> Option<Pmemobj> {
        // SAFETY: the process has one thread, so no other code reads or writes the environment. The library reads it
        // when loaded.
        unsafe { std::env::set_var("PMEM_IS_PMEM_FORCE", "1") };
        Pmemobj::load()
    }

    /// Returns whether the system has the library.
    pub fn is_installed() -> bool {
        Pmemobj::load().is_some()
    }

    fn load() -> Option<Pmemobj> {
        // SAFETY: the library's initialization makes no demands on the program.
        let library = unsafe { Library::new("libpmemobj.so.1") };
        library.ok().map(Pmemobj)
    }

    /// Creates a pool with room for this many chunks, beside `near` or in a memory file system.
    pub fn pool(&self, near: Option<&Path>, chunks: usize) -> Result<Pool<'_>, Error> {
        let path = match near {
            Some(near) => near.with_extension("pmemobj"),
            None => PathBuf::from(format!("/dev/shm/wollemi-bench-{}.pmemobj", std::process::id())),
        };
        if path.exists() {
            return Err(Error::Exists(path));
        }
        let name = CString::new(path.as_os_str().as_encoded_bytes()).map_err(failed)?;
        // A chunk has a header and is allocated from the next larger size class.
        let size = chunks * CHUNK * 4 + (64 << 20);
        let create: Symbol<'_, Create> = self.symbol(b"pmemobj_create")?;
        let [close, alloc, persist] = [
            b"pmemobj_close\0".as_slice(),
            b"pmemobj_alloc\0",
            b"pmemobj_persist\0",
        ];
        let (close, alloc, persist) = (self.symbol(close)?, self.symbol(alloc)?, self.symbol(persist)?);
        // SAFETY: both strings end with a zero and live through the call.
        let pool = unsafe { create(name.as_ptr(), c"wollemi-bench".as_ptr(), size, 0o600) };
        if pool.is_null() {
            return Err(failed(self.message()));
        }
        Ok(Pool {
            pool,
            path,
            close,
            alloc,
            persist,
        })
    }

    fn symbol<T>(&self, name: &[u8]) -> Result<Symbol<'_, T>, Error> {
        // SAFETY: the types above match the declarations in the library's header of the names with which they are used.
        unsafe { self.0.get(name) }.map_err(failed)
    }

    fn message(&self) -> String {
        let Ok(message) = self.symbol::<Message>(b"pmemobj_errormsg") else {
            return "failed".into();
        };
        // SAFETY: the function takes no arguments.
        let text = unsafe { message() };
        // SAFETY: a zero-terminated string of this thread, valid until the next failed call.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

impl Pool<'_> {
    /// Allocates, writes and persists this many chunks.
    pub fn allocate(&self, chunks: usize) -> Result<(), Error> {
        for i in 0..chunks {
            let mut oid = Oid::default();
            // SAFETY: the pool is open, `oid` lives through the call; no constructor, so no argument for it.
            let result = unsafe { (self.alloc)(self.pool, &raw mut oid, CHUNK, 1, None, null()) };
            if result != 0 {
                return Err(failed("out of memory"));
            }
            let chunk = self.pool.cast::<u8>().wrapping_add(oid.offset as usize);
            // SAFETY: an offset counts from the pool's start; the chunk is ours alone and has this many bytes.
            unsafe { chunk.write_bytes(i as u8, CHUNK) };
            // SAFETY: as above.
            unsafe { (self.persist)(self.pool, chunk.cast(), CHUNK) };
        }
        Ok(())
    }
}

impl Drop for Pool<'_> {
    fn drop(&mut self) {
        // SAFETY: the pool is open, and not used again.
        unsafe { (self.close)(self.pool) };
        // The file may have been removed with its directory.
        let _ = std::fs::remove_file(&self.path);
    }
}
