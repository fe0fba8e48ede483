//! A shared mapping of a file, used for stores only.
//!
//! The first store into a page after each sync costs a page fault, one or two microseconds: the sync write-protects the
//! dirty pages one by one, and each time interrupts every processor that runs the process (a TLB shootdown). For many
//! pages the log therefore makes the next pages writable [in bulk](Mapping::prepare_stores), and
//! [drops](Mapping::prepare_sync) all page-table entries in bulk before the sync.

use super::Mapping;
use super::platform::{populate, unmap_pages};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use std::os::fd::AsFd;
use std::ptr::NonNull;

/// The size of a page. On a kernel with larger pages `madvise` refuses a range that is not aligned to them, which only
/// makes stores slower.
const PAGE: usize = 4096;

/// A shared mapping of the first `len` bytes of a file. It is never read through, so no reference into it exists.
#[derive(Debug)]
pub struct FileMapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the mapping belongs to this value, and any thread with exclusive access to it may store to the memory.
unsafe impl Send for FileMapping {}

impl FileMapping {
    /// Maps the first `len` bytes, which must exist.
    pub(super) fn new(fd: impl AsFd, len: u64) -> Result<FileMapping, Errno> {
        let len = usize::try_from(len).map_err(|_| Errno::NOMEM)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let null = std::ptr::null_mut();
        // SAFETY: a new mapping at an address of the system's choice touches no other memory.
        let start = unsafe { rustix::mm::mmap(null, len, protection, MapFlags::SHARED, fd, 0) }?;
        let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
        let mapping = FileMapping { start, len };
        // No readahead: pages read together may form one large folio, and a store into one of them would make the
        // kernel write back all.
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
        // and `&mut self` excludes other stores; `bytes` does not overlap it, since nothing borrows from a mapping.
        unsafe { place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    fn prepare_stores(&mut self, at: u64, len: u64) {
        let (Ok(at), Ok(len)) = (usize::try_from(at), usize::try_from(len)) else {
            return;
        };
        let start = at.next_multiple_of(PAGE);
        let end = at.saturating_add(len).min(self.len) / PAGE * PAGE;
        if start < end {
            // SAFETY: `start < end <= self.len`.
            let place = unsafe { self.start.as_ptr().add(start) };
            // SAFETY: the range is inside this value's own mapping, and the advice changes no contents.
            unsafe { populate(place, end - start) };
        }
    }

    fn prepare_sync(&mut self) {
        // SAFETY: the range is this value's own. The mapping is shared, so the stored bytes are in the page cache.
        unsafe { unmap_pages(self.start.as_ptr(), self.len) };
    }
}

impl Drop for FileMapping {
    fn drop(&mut self) {
        // SAFETY: the range is this value's own, and nothing borrows from it.
        let unmapped = unsafe { rustix::mm::munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(unmapped.is_ok(), "unmapping the whole range failed");
    }
}
