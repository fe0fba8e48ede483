//! The version of a pool's format.

/// The format that this program writes, and the newest that it reads.
pub(super) const VERSION: u64 = 1;
