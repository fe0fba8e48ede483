//! Errors that a disk injects.

use rustix::io::Errno;

/// A call that fails.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The number of the call, from 0, or of the first that can fail in this way.
    pub call: u64,
    /// How.
    pub kind: FaultKind,
    /// Whether all later calls fail that can.
    pub lasting: bool,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The device refuses (`EIO`): any call. Of a sync, K5 follows.
    Io,
    /// The disk is full (`ENOSPC`): creations, preallocations and writes; and renamings and removals, for which some
    /// file systems need room.
    Full,
    /// A part is written, then the device refuses: writes and preallocations.
    Short,
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

impl Fault {
    /// Whether the call of this number fails.
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
