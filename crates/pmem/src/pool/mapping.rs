//! A reserved range of addresses, of which a growing prefix is backed by memory.
//!
//! I1 The base does not move and is a multiple of 2 MiB, so that huge pages of a DAX file or of anonymous memory fit.
//! I2 Addresses past the backed prefix fault; nothing else of the process is ever mapped there.

#[cfg_attr(miri, path = "mapping/interpreted.rs")]
mod addresses;

use super::{ErrorKind, PoolLevel};
use crate::{Media, platform};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MsyncFlags, ProtFlags};
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;

const HUGE: usize = 2 << 20;

/// Bytes mapped to try `MAP_SYNC`: a page.
const PROBE: usize = 4096;

/// Bytes that offsets can address.
const MAX: u64 = 1 << 48;

/// How a part of the range is backed with a file.
#[derive(Clone, Copy, Debug)]
pub(super) enum Backing {
    /// Stores reach the file, at this level.
    Shared(PoolLevel),
    /// Stores stay in this process's memory, and vanish with the mapping.
    Private,
}

/// The reserved range. Dropping it unmaps everything.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    reserved: usize,
}

// SAFETY: an address range; `Pool` and the words govern reads and writes of it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves up to `wanted` bytes, halving until the system agrees, but not less than `needed`.
    pub(super) fn reserve(wanted: u64, needed: u64) -> Result<Mapping, ErrorKind> {
        let too_large = |_| ErrorKind::io("reserving addresses", Errno::NOMEM);
        let needed = usize::try_from(needed).map_err(too_large)?.next_multiple_of(HUGE);
        let wanted = usize::try_from(wanted.min(MAX)).map_err(too_large)?;
        // Miri has a value for each byte of a reservation.
        let wanted = if cfg!(miri) { needed } else { wanted };
        let mut size = wanted.max(needed).next_multiple_of(HUGE);
        loop {
            match Self::reserve_exactly(size) {
                Err(_) if size > needed => size = (size / 2).next_multiple_of(HUGE).max(needed),
                other => return other.map_err(|e| ErrorKind::io("reserving addresses", e)),
            }
        }
    }

    fn reserve_exactly(size: usize) -> Result<Mapping, Errno> {
        Ok(Mapping {
            start: addresses::reserve(size)?,
            reserved: size,
        })
    }

    #[inline]
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn reserved(&self) -> u64 {
        self.reserved as u64
    }

    /// The address of `from` and the length, for a system call on `from..to`.
    fn part(&self, from: u64, to: u64) -> (*mut std::ffi::c_void, usize) {
        assert!(
            from <= to && to <= self.reserved(),
            "a part of the reserved range"
        );
        let start = self.start.as_ptr().wrapping_add(from as usize);
        (start.cast(), (to - from) as usize)
    }

    /// Backs `from..to` with anonymous memory. The range must not be backed yet.
    pub(super) fn back_with_memory(&self, from: u64, to: u64) -> Result<(), Errno> {
        let (start, len) = self.part(from, to);
        // SAFETY: the part is of our own reservation, and no thread can have a reference into it yet.
        unsafe { addresses::back(start, len) }
    }

    /// Backs `from..to` with the same part of the file. The range must not be backed yet.
    pub(super) fn back_with_file(
        &self,
        file: BorrowedFd<'_>,
        backing: Backing,
        from: u64,
        to: u64,
    ) -> Result<(), Errno> {
        let (start, len) = self.part(from, to);
        let how = match backing {
            Backing::Shared(PoolLevel::Process) => MapFlags::SHARED,
            Backing::Shared(PoolLevel::Power) => platform::SYNC.ok_or(Errno::OPNOTSUPP)?,
            // Few pages are stored to, so the system need not reserve memory for all of them.
            Backing::Private => MapFlags::PRIVATE | MapFlags::NORESERVE,
        };
        let (prot, flags) = (ProtFlags::READ | ProtFlags::WRITE, how | MapFlags::FIXED);
        // SAFETY: the part is of our own reservation, and no thread can have a reference into it yet.
        unsafe { rustix::mm::mmap(start, len, prot, flags, file, from) }.map(drop)
    }

    /// Checks that the file can be mapped so that its stores are durable without its file system (`MAP_SYNC`); the
    /// error says why not.
    pub(super) fn takes_sync(file: BorrowedFd<'_>) -> Result<(), Errno> {
        let flags = platform::SYNC.ok_or(Errno::OPNOTSUPP)?;
        // For reading alone, which a file opened read-only allows too.
        let prot = ProtFlags::READ;
        // SAFETY: a new mapping at an address of the system's choice touches no other memory.
        let probe = unsafe { rustix::mm::mmap(std::ptr::null_mut(), PROBE, prot, flags, file, 0) }?;
        // SAFETY: the mapping is ours alone, and nothing refers to it.
        unsafe { rustix::mm::munmap(probe, PROBE) }
    }

    /// Requests huge pages for the whole range; returns whether the system will try to provide them.
    pub(super) fn advise_huge_pages(&self) -> bool {
        let Some(advice) = platform::HUGE_PAGES.filter(|_| !cfg!(miri)) else {
            return false;
        };
        // SAFETY: the range is our own, and this advice changes no byte of it.
        unsafe { rustix::mm::madvise(self.start.as_ptr().cast(), self.reserved, advice) }.is_ok()
            && platform::gives_huge_pages()
    }

    /// Waits until the first `len` bytes are on the file's medium, and reports that to the media.
    #[track_caller]
    pub(super) fn sync<M: Media>(&self, len: u64, media: &M) -> Result<(), ErrorKind> {
        let (start, len) = self.part(0, len);
        // SAFETY: the range is mapped by us, and writing it out changes no byte of it.
        let written = unsafe { rustix::mm::msync(start, len, MsyncFlags::SYNC) };
        written.map_err(|e| ErrorKind::io("writing to the medium", e))?;
        media.synced(start.cast_const().cast(), len);
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range is ours, and each borrow from it borrows from a pool or a memory that shares this mapping.
        let unmapped = unsafe { addresses::release(self.start, self.reserved) };
        debug_assert!(unmapped.is_ok(), "unmapping the whole range failed");
    }
}
