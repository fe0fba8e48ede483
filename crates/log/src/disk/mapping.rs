//! A shared mapping of a file, for stores alone.

use super::Mapping;
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// The beginning of a file in memory. It is never read through, so no reference into it exists.
#[derive(Debug)]
pub struct FileMapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value, and the memory may be stored to by any thread that has it exclusively.
unsafe impl Send for FileMapping {}

impl FileMapping {
    /// Maps the first `len` bytes, which the file has.
    pub(super) fn new(fd: impl AsFd, len: u64) -> Result<FileMapping, Errno> {
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let null = std::ptr::null_mut();
        // SAFETY: a new mapping at an address of the system's choice touches no other memory.
        let start = unsafe { rustix::mm::mmap(null, len, protection, MapFlags::SHARED, fd, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        let mapping = FileMapping { start, len };
        // Pages that are not in memory are read one by one, since those that are read together become dirty together.
        // SAFETY: the range is this value's own; the advice changes no contents.
        unsafe { rustix::mm::madvise(mapping.start.as_ptr().cast(), len, Advice::Random) }?;
        Ok(mapping)
    }
}

impl Mapping for FileMapping {
    #[inline]
    fn store(&mut self, at: u64, bytes: &[u8]) {
        let at = usize::try_from(at).unwrap_or(usize::MAX);
        let end = at.checked_add(bytes.len());
        assert!(
            end.is_some_and(|end| end <= self.len),
            "a store inside the mapping"
        );
        // SAFETY: `at <= len`, asserted above.
        let place = unsafe { self.start.as_ptr().add(at) };
        // SAFETY: `at + bytes.len() <= len`, asserted above; the memory is mapped for writing while this value lives,
        // and `&mut self` keeps other stores out; `bytes` is no part of it, since nothing borrows from a mapping.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own, and nothing borrows from it.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "a mapping can be unmapped");
    }
}
