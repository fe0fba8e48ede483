//! Linux.

use rustix::fs::{self, FallocateFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
use std::os::fd::AsFd;

/// Makes a file, or a directory, and what describes it durable.
pub fn sync(fd: impl AsFd) -> Result<(), Errno> {
    fs::fsync(fd)
}

/// Makes a file's data durable.
pub fn sync_data(fd: impl AsFd) -> Result<(), Errno> {
    fs::fdatasync(fd)
}

/// Makes the file system allocate blocks, if it can; otherwise writing allocates them.
pub fn allocate(fd: impl AsFd, len: u64) -> Result<(), Errno> {
    match fs::fallocate(fd, FallocateFlags::empty(), 0, len) {
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(()),
        done => done,
    }
}

/// Advises the kernel to cache a file page by page; it may still read several pages at once. A file system that does
/// not support the advice returns an error, which is ignored.
pub fn read_singly(fd: impl AsFd) {
    let _ = fs::fadvise(fd, 0, None, fs::Advice::Random);
}

/// Makes pages writable. Where this is unsupported or fails, the first store into each page faults instead.
///
/// # Safety
///
/// The range lies in one mapping.
pub unsafe fn populate(start: *mut u8, len: usize) {
    // SAFETY: by the caller; the advice changes no contents.
    let _ = unsafe { madvise(start.cast(), len, Advice::LinuxPopulateWrite) };
}

/// Removes pages from the page table. On failure the entries stay, and the sync is slower.
///
/// # Safety
///
/// The range is a shared mapping of a file.
pub unsafe fn unmap_pages(start: *mut u8, len: usize) {
    // SAFETY: by the caller; the page cache keeps the stored bytes.
    let _ = unsafe { madvise(start.cast(), len, Advice::LinuxDontNeed) };
}
