//! The file below a pool: making, locking, extending it, and what the system knows about it.

use super::ErrorKind;
use super::mapping::Mapping;
use super::options::Level;
use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use std::fs::File;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// An open, locked file.
#[derive(Debug)]
pub(super) struct PoolFile {
    file: File,
    path: PathBuf,
}

impl PoolFile {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Lengthens the file from `from` to `to` bytes, blocks and all, and maps them. On an error it is as long as it
    /// was.
    pub(super) fn extend(
        &self,
        mapping: &Mapping,
        level: Level,
        from: u64,
        to: u64,
    ) -> Result<(), ErrorKind> {
        let extended = self.allocate(from, to).and_then(|()| {
            mapping
                .back_with_file(self.file.as_fd(), level, from, to)
                .map_err(|e| ErrorKind::io("mapping the file", e))
        });
        if extended.is_err() {
            // Part of it may have been allocated. If it cannot be given back, it is merely unused.
            let _ = self.file.set_len(from);
        }
        extended
    }

    fn allocate(&self, from: u64, to: u64) -> Result<(), ErrorKind> {
        let no_space = |why: Errno| ErrorKind::NoSpace {
            needed: to,
            why: why.into(),
        };
        // Asking the system for more than the process may have would raise SIGXFSZ.
        let limit = rustix::process::getrlimit(rustix::process::Resource::Fsize).current;
        if limit.is_some_and(|limit| to > limit) {
            return Err(no_space(Errno::FBIG));
        }
        loop {
            match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), from, to - from) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::OPNOTSUPP) => return self.write_zeros(from, to),
                Err(e @ (Errno::NOSPC | Errno::DQUOT | Errno::FBIG)) => return Err(no_space(e)),
                Err(e) => return Err(ErrorKind::io("allocating blocks", e)),
            }
        }
    }

    /// What `fallocate` does, on file systems that lack it.
    fn write_zeros(&self, from: u64, to: u64) -> Result<(), ErrorKind> {
        use std::os::unix::fs::FileExt;
        let zeros = [0; 64 << 10];
        let mut at = from;
        while at < to {
            let len = zeros.len().min((to - at) as usize);
            self.file
                .write_all_at(&zeros[..len], at)
                .map_err(|e| match Errno::from_io_error(&e) {
                    Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => {
                        ErrorKind::NoSpace { needed: to, why: e }
                    }
                    _ => ErrorKind::io("allocating blocks", e),
                })?;
            at += len as u64;
        }
        Ok(())
    }
}

/// The id of the machine's present boot; 0 where it cannot be known.
pub(super) fn boot_id() -> u128 {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    u128::from_str_radix(&id.trim().replace('-', ""), 16).unwrap_or(0)
}
