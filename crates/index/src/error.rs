//! The errors of an operation.

use crate::{MAX_KEY, MAX_VALUE};

/// Why an operation failed. It has changed nothing, except for [`NotDurable`](Error::NotDurable).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The key is longer than [`MAX_KEY`].
    #[error("key of {0} bytes: the longest key is {MAX_KEY} bytes")]
    KeyTooLong(usize),
    /// The value is longer than [`MAX_VALUE`].
    #[error("value of {0} bytes: the longest value is {MAX_VALUE} bytes")]
    ValueTooLong(usize),
    /// The operation needs an order of keys, which the index does not have.
    #[error("the index has no order of keys: it has no ranges, no prefixes, no first and no last key")]
    Unordered,
    /// A change of many keys was begun and could not be completed; all writes fail until it is.
    #[error(
        "nothing can be written until the database is opened again, with more room: that completes a committed batch"
    )]
    Unfinished,
    /// The database was opened read-only.
    #[error("the database was opened read-only: nothing can be written")]
    ReadOnly,
    /// The log has refused the change. Nothing was changed.
    #[error("nothing was changed: {0}")]
    Refused(Box<dyn std::error::Error + Send + Sync>),
    /// The operation has taken effect, or has read data that may not be durable, and may not survive a power loss. Or
    /// it has failed, and may take effect when the database is opened again after a crash.
    #[error("this may not survive a power loss: {0}")]
    NotDurable(Box<dyn std::error::Error + Send + Sync>),
    /// The keys of the pairs for a build do not ascend, or lie outside of their part.
    #[error("keys passed to a build must ascend and be unique")]
    OutOfOrder,
    /// The source of the pairs for a build has failed, and keeps the reason itself.
    #[error("the source of the pairs failed")]
    Stopped,
    /// The heap operation failed: no space, or an invalid pool.
    #[error(transparent)]
    Heap(#[from] heap::Error),
}

impl heap::MayBeFull for Error {
    fn is_full(&self) -> bool {
        matches!(self, Error::Heap(error) if error.is_full())
    }
}
