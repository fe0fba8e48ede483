//! The differences between operating systems: a file for each, with the same items.
//!
//! | | Linux | macOS |
//! |---|---|---|
//! | level `power` | `MAP_SYNC` on DAX file systems | not to be had |
//! | the id of the boot, by which a killed process is told from a stopped machine | `random/boot_id` | `kern.bootsessionuuid` |
//! | blocks are allocated | by `fallocate` | by writing zeros |
//! | blocks of free pages go back | by punching holes | not before the pool is compacted |
//! | who has a pool's lock | `/proc/locks` | not told |
//! | huge pages | `MADV_HUGEPAGE` | not asked for |
//!
//! Locks (`flock`), mappings, attributes and renames without replacing are the same, by `rustix`.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::*;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub(crate) use macos::*;

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
compile_error!("Wollemi runs on Linux and, at level `process`, on macOS: see docs/platforms.md");
