//! Memory that outlives the pools in it: a pool can be opened again and again without a file.
//!
//! I1 One pool at a time is open in a memory.
//! I2 All of it may be accessed from the start, so that opening a pool costs no system call. The system provides a
//!    page's memory when the page is first touched.

use super::ErrorKind;
use super::mapping::Mapping;
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The name in errors.
pub(super) const NAME: &str = "memory";

/// An anonymous mapping, zeros at first. [`Pool::create_in`](super::Pool::create_in) makes a pool in it, and
/// [`Pool::open_in`](super::Pool::open_in) finds it again, as a process finds a file that another has left. Clones
/// are handles of the same memory.
#[derive(Clone, Debug)]
pub struct Memory {
    place: Arc<Place>,
    len: u64,
}

#[derive(Debug)]
struct Place {
    mapping: Arc<Mapping>,
    in_use: AtomicBool,
}

impl Memory {
    /// Allocates `len` bytes, rounded up to 2 MiB. Pages that are never touched cost addresses only.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the system refuses the memory.
    pub fn new(len: u64) -> Result<Memory, super::Error> {
        Self::map(len).map_err(|kind| kind.of(Path::new(NAME)))
    }

    fn map(len: u64) -> Result<Memory, ErrorKind> {
        let mapping = Mapping::reserve(len, len)?;
        let len = mapping.reserved();
        mapping
            .back_with_memory(0, len)
            .map_err(|e| ErrorKind::io("mapping memory", e))?;
        Ok(Memory {
            place: Arc::new(Place {
                mapping: Arc::new(mapping),
                in_use: AtomicBool::new(false),
            }),
            len,
        })
    }

    /// The same memory, limited to its first `len` bytes. A pool that was created in it must be opened with the same
    /// `len`.
    #[must_use]
    pub fn first(&self, len: u64) -> Memory {
        Memory {
            place: Arc::clone(&self.place),
            len: self.len.min(len),
        }
    }

    /// The start address: a multiple of 2 MiB.
    pub fn base(&self) -> NonNull<u8> {
        self.place.mapping.start()
    }

    /// Its length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "no caller asks if it is empty")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// All of the memory as words, for a crash kit, which copies a pool or puts a crash's image there
    /// behind the pool's back.
    ///
    /// # Safety
    ///
    /// No thread changes a word while a plain reference covers it, such as one to the parts of an object that are not
    /// words, or while a draft is being written there.
    pub unsafe fn words(&self) -> &[AtomicU64] {
        let start = self.place.mapping.start().cast::<AtomicU64>();
        // SAFETY: all of the mapping is backed and lives as long as `self`; any bytes are a valid word; code that
        // changes them keeps to the contract above.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), (self.len / 8) as usize) }
    }

    pub(super) fn mapping(&self) -> Arc<Mapping> {
        Arc::clone(&self.place.mapping)
    }

    /// Claims the memory for one pool.
    pub(super) fn take(&self) -> Result<Taken, ErrorKind> {
        if self.place.in_use.swap(true, Ordering::Acquire) {
            return Err(ErrorKind::Busy {
                pid: Some(std::process::id()),
                waited: Duration::ZERO,
            });
        }
        Ok(Taken(self.clone()))
    }
}

/// The right to have a pool open in a memory; dropping it releases the memory.
#[derive(Debug)]
pub(super) struct Taken(Memory);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.place.in_use.store(false, Ordering::Release);
    }
}
