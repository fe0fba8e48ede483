//! When nodes shrink, the same for all designs.

use crate::Kind;
use heap::Error;

/// Number of children at or below which a node is replaced by one of the next smaller kind: below that kind's capacity,
/// so that no single key toggles a node.
pub fn shrink_at(kind: Kind) -> usize {
    match kind {
        Kind::N256 => 40,
        Kind::N48 => 12,
        Kind::N16 => 3,
        _ => 0,
    }
}

/// Whether an optional step has failed for lack of memory: a structure that stays larger than necessary is sound.
///
/// # Errors
///
/// Any other failure.
pub fn no_memory(done: Result<(), Error>) -> Result<bool, Error> {
    match done {
        Ok(()) => Ok(false),
        Err(Error::Full { .. }) => Ok(true),
        Err(error) => Err(error),
    }
}
