//! Errors that a disk injects.

use rustix::io::Errno;
use std::fmt;

/// A call that fails.
#[derive(Clone, Copy, Debug)]
pub struct DiskFault {
    /// The number of the call, from 0; the first call from there on that can fail in this way fails.
    pub call: u64,
    /// How it fails.
    pub kind: FaultKind,
    /// Whether all later calls that can fail in this way fail too.
    pub lasting: bool,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The device refuses (`EIO`): any call. A failed sync has the effects of K5.
    Io,
    /// The disk is full (`ENOSPC`): creations, preallocations and writes; also renames and removals, for which some
    /// file systems need room.
    Full,
    /// The device writes a part, then refuses: writes and preallocations.
    Short,
}

/// A call that an injected fault has made fail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCall {
    /// Its number among all calls of the disk, from 0.
    pub number: u64,
    /// The name of the file, at its opening; empty for the directory.
    pub file: String,
    /// The operation, as errors name it.
    pub operation: &'static str,
    /// How it failed.
    pub kind: FaultKind,
}

impl fmt::Display for FailedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of '{}' ({:?})", self.operation, self.file, self.kind)
    }
}

impl FaultKind {
    pub(super) fn errno(self) -> Errno {
        match self {
            FaultKind::Io | FaultKind::Short => Errno::IO,
            FaultKind::Full => Errno::NOSPC,
        }
    }

    fn can_strike(self, operation: &str) -> bool {
        match self {
            FaultKind::Io => true,
            FaultKind::Full => ["create", "allocate", "write", "rename", "remove"].contains(&operation),
            FaultKind::Short => ["allocate", "write"].contains(&operation),
        }
    }
}

impl DiskFault {
    /// Returns how the call of this number fails, if it does.
    pub(super) fn strike(&mut self, number: u64, operation: &str) -> Option<FaultKind> {
        if number < self.call || !self.kind.can_strike(operation) {
            return None;
        }
        if !self.lasting {
            self.call = u64::MAX;
        }
        Some(self.kind)
    }
}
