//! macOS. None of it has been run; it is only compiled (docs/platforms.md).

use rustix::fs;
use rustix::io::Errno;
use std::os::fd::AsFd;

/// Makes a file, or a directory, and what describes it durable. `fsync` does not flush the drive's cache.
pub fn sync(fd: impl AsFd) -> Result<(), Errno> {
    fs::fcntl_fullfsync(fd)
}

/// Makes a file's data durable, as [`sync`] does.
pub fn sync_data(fd: impl AsFd) -> Result<(), Errno> {
    fs::fcntl_fullfsync(fd)
}

/// Does nothing: writing allocates the blocks.
pub fn allocate(_: impl AsFd, _: u64) -> Result<(), Errno> {
    Ok(())
}

/// Does nothing: the system may read several pages at once.
pub fn read_singly(_: impl AsFd) {}

/// Does nothing: the first stores make the pages writable.
///
/// # Safety
///
/// None is needed.
pub unsafe fn populate(_: *mut u8, _: usize) {}

/// Does nothing: a sync makes the pages read-only.
///
/// # Safety
///
/// None is needed.
pub unsafe fn unmap_pages(_: *mut u8, _: usize) {}
