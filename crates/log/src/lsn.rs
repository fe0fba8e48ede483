//! Positions in the log.

use std::fmt;

/// A position in the log: the number of bytes since the start of the log as it was created, dropped segments and the
/// headers of segments included. `lsn / segment size` is the number of its segment, `lsn % segment size` the offset in
/// that segment's file. The end of an open log only grows, and dropping records renumbers none, so no two records of a
/// log have the same position. (The positions of records that a crash has cut off are used again.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
