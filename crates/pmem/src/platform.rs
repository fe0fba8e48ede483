//! The differences between operating systems: one file for each, with the same items.
//!
//! | | Linux | macOS |
//! |---|---|---|
//! | level `power` | `MAP_SYNC` on DAX file systems | unsupported |
//! | boot id, which distinguishes a killed process from a stopped machine | `random/boot_id` | `kern.bootsessionuuid` |
//! | block allocation | by `fallocate` | by writing zeros |
//! | blocks of free pages are given back | by punching holes | only by compacting the pool |
//! | holder of a pool's lock | `/proc/locks` | unknown |
//! | access control lists | copied with a pool's permissions | left out |
//! | huge pages | `MADV_HUGEPAGE` | not requested |
//!
//! Locks (`flock`), mappings, attributes and exclusive renames are the same, through `rustix`.

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
