//! Positions in the log.

use std::fmt;

/// A position in the log: the number of bytes since its beginning, headers of segments included. It only grows, and
/// never identifies two records: `lsn / segment size` is the number of its segment, `lsn % segment size` the offset
/// in that segment's file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
