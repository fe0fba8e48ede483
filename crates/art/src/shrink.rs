//! When nodes give up room, for all designs alike.

use crate::Kind;
use heap::Error;

/// Children at or below which a node is replaced by one of the next smaller kind: well below what fills that,
/// so that no key toggles a node.
pub fn shrink_at(kind: Kind) -> usize {
    match kind {
        Kind::N256 => 40,
        Kind::N48 => 12,
        Kind::N16 => 3,
        _ => 0,
    }
}

/// Whether a step failed for want of memory that is not needed: a structure that stays larger than it must be
/// is sound.
///
/// # Errors
///
/// Whatever else it failed with.
pub fn no_memory(done: Result<(), Error>) -> Result<bool, Error> {
    match done {
        Ok(()) => Ok(false),
        Err(Error::Full { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}
