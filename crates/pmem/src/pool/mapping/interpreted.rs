//! Addresses under Miri, which maps no file and changes no protection: memory of the allocator, backed from the start.

use super::HUGE;
use rustix::io::Errno;
use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::ptr::NonNull;

fn layout(size: usize) -> Result<Layout, Errno> {
    Layout::from_size_align(size, HUGE).map_err(|_| Errno::NOMEM)
}

/// Reserves `size` bytes, more than zero, from a multiple of 2 MiB on.
pub(super) fn reserve(size: usize) -> Result<NonNull<u8>, Errno> {
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { alloc_zeroed(layout(size)?) }).ok_or(Errno::NOMEM)
}

/// Does nothing: the memory is there.
///
/// # Safety
///
/// None; the system's function has some.
pub(super) unsafe fn back(_start: *mut c_void, _len: usize) -> Result<(), Errno> {
    Ok(())
}

/// Frees the memory.
///
/// # Safety
///
/// [`reserve`] returned `start` for this size, and no reference leads there.
pub(super) unsafe fn release(start: NonNull<u8>, size: usize) -> Result<(), Errno> {
    // SAFETY: the caller's contract.
    unsafe { dealloc(start.as_ptr(), layout(size)?) };
    Ok(())
}
