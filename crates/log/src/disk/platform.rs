//! The differences between operating systems: one file for each, with the same items.
//!
//! | | Linux | macOS |
//! |---|---|---|
//! | syncs | `fsync`, `fdatasync` | `F_FULLFSYNC`, since `fsync` does not flush the drive's cache |
//! | blocks are allocated ahead | by `fallocate`, where the file system supports it | when they are written |
//! | pages are read one by one | by `fadvise` | not requested |
//! | pages of a mapping | are made writable, and unmapped, in bulk | one by one, by the system |

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(super) use linux::*;

#[cfg(target_os = "macos")]
mod macos;
#[cfg(target_os = "macos")]
pub(super) use macos::*;
