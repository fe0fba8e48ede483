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

/// What a logical thread is about to do.
#[derive(Clone, Copy, Debug)]
pub struct Access {
    /// The address of the word or of the first byte; 0: none.
    pub at: usize,
    /// What it does to a word there.
    pub does: Does,
    /// The line of source that asks for it.
    pub site: Site,
}

/// What an access does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Does {
    /// It loads a word.
    Load,
    /// It stores a word, or replaces it.
    Store,
    /// Anything else.
    Other,
}
