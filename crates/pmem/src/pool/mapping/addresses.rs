//! Addresses of the system, which fault until they are backed.

use super::HUGE;
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};
use std::ffi::c_void;
use std::ptr::NonNull;

/// Reserves `size` bytes of addresses from a multiple of 2 MiB on.
pub(super) fn reserve(size: usize) -> Result<NonNull<u8>, Errno> {
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    let padded = size.checked_add(HUGE).ok_or(Errno::NOMEM)?;
    // SAFETY: a new mapping at an address of the system's choice touches no other memory.
    let whole =
        unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), padded, ProtFlags::empty(), flags) }?;
    let whole = whole.cast::<u8>();
    let before = whole.align_offset(HUGE);
    let after = padded - before - size;
    let start = whole.wrapping_add(before);
    // Unmaps the excess of the alignment, if any.
    for (piece, len) in [(whole, before), (start.wrapping_add(size), after)] {
        if len > 0 {
            // SAFETY: the piece is ours alone and lies outside the part that is kept.
            unsafe { rustix::mm::munmap(piece.cast(), len) }?;
        }
    }
    NonNull::new(start).ok_or(Errno::NOMEM)
}

/// Backs a part with anonymous memory.
///
/// # Safety
///
/// The part is reserved and not backed, and no reference leads into it.
pub(super) unsafe fn back(start: *mut c_void, len: usize) -> Result<(), Errno> {
    // SAFETY: the caller's contract.
    unsafe { rustix::mm::mprotect(start, len, MprotectFlags::READ | MprotectFlags::WRITE) }
}

/// Releases the addresses and what backs them.
///
/// # Safety
///
/// [`reserve`] returned `start` for this size, and no reference leads there.
pub(super) unsafe fn release(start: NonNull<u8>, size: usize) -> Result<(), Errno> {
    // SAFETY: the caller's contract.
    unsafe { rustix::mm::munmap(start.as_ptr().cast(), size) }
}
