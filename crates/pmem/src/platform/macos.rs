//! macOS: what level `process` needs. None of it has been run; it is only compiled (docs/platforms.md).

use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// macOS cannot map files so that their stores are durable without the file system.
pub(crate) const SYNC: Option<MapFlags> = None;

/// There are no huge pages for files, and for other memory only at addresses of the system's choice.
pub(crate) const HUGE_PAGES: Option<Advice> = None;

/// See [`HUGE_PAGES`].
pub(crate) fn gives_huge_pages() -> bool {
    false
}

/// The id of the current boot; 0 if unknown.
pub(crate) fn boot_id() -> u128 {
    // A UUID as text, and a zero.
    let mut id = [0u8; 64];
    let mut len = id.len();
    // SAFETY: the name ends with a zero; `id` has `len` writable bytes; the call sets nothing, so there is no new
    // value.
    let failed = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            id.as_mut_ptr().cast(),
            &mut len,
            std::ptr::null_mut(),
            0,
        )
    };
    let hexadecimal: String = id[..len.min(id.len())]
        .iter()
        .filter(|byte| byte.is_ascii_hexdigit())
        .map(|&byte| char::from(byte))
        .collect();
    match failed {
        0 => u128::from_str_radix(&hexadecimal, 16).unwrap_or(0),
        _ => 0,
    }
}

/// Random bytes.
pub(crate) fn random() -> Result<[u8; 16], Errno> {
    let mut bytes = [0; 16];
    let source = std::fs::File::open("/dev/urandom");
    let read = source.and_then(|mut source| source.read_exact(&mut bytes));
    read.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(bytes)
}

/// macOS preallocates blocks only behind the file's end (`F_PREALLOCATE`), and not for holes: the caller writes
/// zeros.
pub(crate) fn allocate(_: impl AsFd, _: u64, _: u64) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// Free pages keep their blocks.
pub(crate) fn punch(_: impl AsFd, _: u64, _: u64) -> Result<(), Errno> {
    Err(Errno::OPNOTSUPP)
}

/// The system does not report which process holds a `flock`.
pub(crate) fn lock_holder(_: u64, _: u64) -> Option<u32> {
    None
}

/// Matters to level `power` only.
pub(crate) fn caches_persist(_: u64) -> bool {
    false
}

/// Access control lists are not copied.
pub(crate) fn acl_of(_: &Path) -> io::Result<Option<Vec<u8>>> {
    Ok(None)
}

/// See [`acl_of`].
pub(crate) fn give_acl(_: Option<&[u8]>, _: &Path) -> io::Result<()> {
    Ok(())
}
