//! The errors of an operation.

use crate::{MAX_KEY, MAX_VALUE};

/// Why an operation failed. Nothing was changed by it, but where it is [`NotDurable`](Error::NotDurable).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key is longer than [`MAX_KEY`].
    #[error("key of {0} bytes: the longest key is {MAX_KEY} bytes")]
    KeyTooLong(usize),
    /// The value is longer than [`MAX_VALUE`].
    #[error("value of {0} bytes: the longest value is {MAX_VALUE} bytes")]
    ValueTooLong(usize),
    /// The index has no order of keys, and was asked for a range of them.
    #[error("the index has no order of keys: it has no ranges, no prefixes, no first and no last key")]
    Unordered,
    /// A change of many keys was begun and could not be finished; all writes fail until it is.
    #[error(
        "nothing can be written until the database is opened again, with more room: that completes a committed batch"
    )]
    Unfinished,
    /// The database was opened to be read only.
    #[error("the database was opened to be read: nothing can be written")]
    ReadOnly,
    /// The log of all changes has refused this one. Nothing was changed.
    #[error("nothing was changed: {0}")]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The operation has taken effect, or has seen what did, and it cannot be known whether that survives a loss of
    /// power. Or it has failed, and may take effect when the database is opened again after a crash.
    #[error("it is not known whether this survives a loss of power: {0}")]
    NotDurable(Box<dyn std::error::Error + Send + Sync>),
    /// The pairs that an index was to be built of do not ascend by their keys.
    #[error("the keys to build an index of are not in ascending order, each once")]
    OutOfOrder,
    /// The source of the pairs that an index was to be built of has failed, and knows why.
    #[error("the source of the pairs to build an index of has failed")]
    Stopped,
    /// The heap could not serve the operation: no space, or a pool whose bytes do not make sense.
    #[error(transparent)]
    Heap(#[from] heap::Error),
}

impl heap::MayBeFull for Error {
    fn is_full(&self) -> bool {
        matches!(self, Error::Heap(error) if error.is_full())
    }
}
