//! What an index tells the heap about what is alive.

use crate::{Error, Heap};
use pmem::{Link, Media};

/// How objects of one kind of root lead to each other.
pub trait Trace<M: Media>: Send + Sync {
    /// Adds the links in the object that `link` leads to, and returns its length: the
    /// [`footprint`](crate::footprint) of its draft.
    ///
    /// Writers may be at work, and nothing that this can lead to is reused meanwhile, so no guard is needed.
    ///
    /// # Errors
    ///
    /// [`Error::Damaged`] where the object makes no sense; nothing is then swept.
    fn trace(&self, heap: &Heap<M>, link: Link, children: &mut Vec<Link>) -> Result<u64, Error>;
}
