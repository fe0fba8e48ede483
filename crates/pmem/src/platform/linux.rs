//! Linux.

use rustix::fs::{FallocateFlags, XattrFlags};
use rustix::io::Errno;
use rustix::mm::{Advice, MapFlags};
use std::io;
use std::os::fd::AsFd;
use std::path::Path;

/// Flags that map a file so that its stores are durable without its file system, where supported.
pub(crate) const SYNC: Option<MapFlags> = Some(MapFlags::SHARED_VALIDATE.union(MapFlags::SYNC));

/// The advice that requests huge pages.
pub(crate) const HUGE_PAGES: Option<Advice> = Some(Advice::LinuxHugepage);

/// Whether the system provides huge pages on request.
pub(crate) fn gives_huge_pages() -> bool {
    std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")
        .is_ok_and(|setting| !setting.contains("[never]"))
}

/// The id of the current boot; 0 if unknown.
pub(crate) fn boot_id() -> u128 {
    let id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    u128::from_str_radix(&id.trim().replace('-', ""), 16).unwrap_or(0)
}

/// Random bytes.
pub(crate) fn random() -> Result<[u8; 16], Errno> {
    let mut bytes = [0; 16];
    // Requests of up to 256 bytes are never cut short.
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(bytes)
}

/// Allocates the blocks of `from..to`, lengthening the file if need be; existing data stays.
pub(crate) fn allocate(file: impl AsFd, from: u64, to: u64) -> Result<(), Errno> {
    rustix::fs::fallocate(file, FallocateFlags::empty(), from, to - from)
}

/// Gives the blocks of `from..to` back to the file system; the range then reads as zeros.
pub(crate) fn punch(file: impl AsFd, from: u64, to: u64) -> Result<(), Errno> {
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, flags, from, to - from)
}

/// The process that holds a `flock` on the inode, if the system reports it.
pub(crate) fn lock_holder(device: u64, inode: u64) -> Option<u32> {
    let locks = std::fs::read_to_string("/proc/locks").unwrap_or_default();
    find_holder(&locks, device, inode)
}

/// Looks the holder up in the lines of `/proc/locks`: `1: FLOCK  ADVISORY  WRITE 4121 fd:01:131 0 EOF`.
fn find_holder(locks: &str, device: u64, inode: u64) -> Option<u32> {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let file = format!("{major:02x}:{minor:02x}:{inode}");
    locks.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        match fields[..] {
            [_, "FLOCK", _, "READ" | "WRITE", pid, at, ..] if at == file => {
                pid.parse().ok().filter(|&pid| pid > 0)
            }
            _ => None,
        }
    })
}

/// Whether the processor's caches survive a power loss on this device.
pub(crate) fn caches_persist(device: u64) -> bool {
    find_domain(Path::new("/sys"), device)
}

/// Whether the device's region of persistent memory, in the `sysfs` at `sys`, says that caches survive.
fn find_domain(sys: &Path, device: u64) -> bool {
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let Ok(device) = sys.join(format!("dev/block/{major}:{minor}")).canonicalize() else {
        return false;
    };
    // …/ndbus0/region0/namespace0.0/block/pmem0: the region above the device has the answer. A device composed of
    // others (LVM, RAID) has no region above it.
    device
        .ancestors()
        .find_map(|directory| std::fs::read_to_string(directory.join("persistence_domain")).ok())
        .is_some_and(|domain| domain.trim() == "cpu_cache")
}

/// The extended attribute that holds a file's access control list.
const ACL: &str = "system.posix_acl_access";

/// The access control list of a file, as the attribute holds it; `None` without one.
pub(crate) fn acl_of(path: &Path) -> io::Result<Option<Vec<u8>>> {
    // The longest that Linux accepts.
    let mut acl = vec![0; 64 << 10];
    match rustix::fs::getxattr(path, ACL, &mut acl) {
        Ok(len) => {
            acl.truncate(len);
            Ok(Some(acl))
        }
        // The file has none, or the file system supports none.
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sets the access control list of a file. `None` removes the one that the file may have inherited from its directory.
pub(crate) fn give_acl(acl: Option<&[u8]>, path: &Path) -> io::Result<()> {
    let given = match acl {
        Some(acl) => rustix::fs::setxattr(path, ACL, acl, XattrFlags::empty()),
        None => rustix::fs::removexattr(path, ACL),
    };
    match given {
        Err(Errno::NODATA | Errno::OPNOTSUPP) if acl.is_none() => Ok(()),
        given => Ok(given?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The holder of the lock is the one on this device and inode, and only if the system names it.
    #[test]
    fn lock_holder_is_found() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 fd:01:131 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 8 fd:01:132 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 4121 fd:01:131 0 EOF\n\
                     3: -> FLOCK  ADVISORY  WRITE 9 fd:01:131 0 EOF\n\
                     4: FLOCK  ADVISORY  WRITE 0 fd:01:133 0 EOF\n\
                     5: FLOCK  ADVISORY  READ 12 fd:01:134 0 EOF\n";
        let device = rustix::fs::makedev(0xfd, 1);
        assert_eq!(find_holder(locks, device, 131), Some(4121));
        assert_eq!(find_holder(locks, device, 133), None);
        assert_eq!(find_holder(locks, device, 134), Some(12));
        assert_eq!(find_holder(locks, device, 135), None);
        assert_eq!(find_holder("", device, 131), None);
    }

    /// Write-backs may be left out only where the region above the device says that caches survive.
    #[test]
    fn persistence_domain_is_found() {
        let sys = tempfile::tempdir().expect("a directory");
        let region = sys.path().join("devices/ndbus0/region0");
        let block = region.join("namespace0.0/block/pmem0/pmem0p1");
        std::fs::create_dir_all(&block).expect("a tree");
        std::fs::create_dir_all(sys.path().join("dev/block")).expect("a tree");
        std::os::unix::fs::symlink(&block, sys.path().join("dev/block/259:1")).expect("a link");
        let device = rustix::fs::makedev(259, 1);
        assert!(!find_domain(sys.path(), device));
        for (domain, persist) in [("memory_controller\n", false), ("cpu_cache\n", true), ("", false)] {
            std::fs::write(region.join("persistence_domain"), domain).expect("a file");
            assert_eq!(find_domain(sys.path(), device), persist, "{domain:?}");
        }
        assert!(!find_domain(sys.path(), rustix::fs::makedev(8, 1)));
    }
}
