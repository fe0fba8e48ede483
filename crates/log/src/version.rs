//! The version of the format of segments and fragments.

/// The format version that this program writes, and the latest that it reads.
pub(crate) const VERSION: u32 = 1;
