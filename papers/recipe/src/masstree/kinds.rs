//! The kind of an entry, stored when a writer fills it.
//!
//! A file of its own: the name of its write-back (`Media::site`) covers nothing else.

use super::node::{NodeRef, kind, with_kind};
use pmem::{Media, PersistBatch};

impl<'g> NodeRef<'g> {
    /// Stores the kind of an entry that does not count yet, if it has another one. The caller holds the lock, and
    /// stores the permutation, in the same line, afterwards.
    pub(super) fn store_kind<'m, M: Media>(&self, entry: usize, is: u8, batch: &PersistBatch<'_, 'm, M>)
    where
        'g: 'm,
    {
        let media = batch.media();
        let kinds = self.node.kinds.load(media);
        if kind(kinds, entry) != is {
            media.site("masstree: kind of an entry");
            self.node.kinds.store(with_kind(kinds, entry, is), batch);
        }
    }
}
