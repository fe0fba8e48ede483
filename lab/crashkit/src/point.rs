//! The points at which logical threads may be switched, and their next access there.

use crate::log::Site;

/// Where a logical thread may be switched.
#[derive(Clone, Copy, Debug)]
pub enum Point {
    /// Before an access of memory, a write-back or a fence.
    Access(Access),
    /// Before an operation.
    Invoke,
    /// In a loop that waits for another thread: it makes no progress before another runs.
    Wait,
}

/// The access that a logical thread is about to make.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The address of the word or of the first byte; 0: none.
    pub at: usize,
    /// Its kind.
    pub kind: AccessKind,
    /// The source line that asks for it.
    pub site: Site,
}

/// The kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessKind {
    /// A load of a word.
    Load,
    /// A store to a word, or an exchange.
    Store,
    /// Anything else.
    Other,
}
