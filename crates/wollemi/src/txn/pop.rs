//! Taking the entry at an end of a map, as a transaction.
//!
//! The entry is read together with the gap before it, so the commit fails where a key was put into the gap meanwhile.
//! An empty map is read as one gap.

use crate::entry::Entry;
use crate::read::merge::Read;
use crate::txn::retry::Retry;
use crate::write::reads::RangeRead;
use crate::write::store::Store;
use crate::write::traffic::Check;
use crate::{Error, Map, Media};
use index::Direction;
use std::ops::Bound;

impl<M: Media> Store<M> {
    /// Removes the entry at the end at which a scan in this direction begins, if `check` lets it go.
    ///
    /// # Errors
    ///
    /// Those of `check`, and as [`Db::transact`](crate::Db::transact).
    pub fn pop(&self, map: &Map, direction: Direction, check: &Check<'_>) -> Result<Option<Entry>, Error> {
        self.transact_with(&Retry::default(), |tx| {
            let all = (Bound::Unbounded, Bound::Unbounded);
            // Not by a `TransactionRange`, which copies a batch of entries.
            let read = Read::some(&*map.index, all, direction, 1)?;
            let (lower, upper) = read.covered(all, direction)?;
            tx.reads.get_mut().ranges.push(RangeRead {
                map: map.clone(),
                lower: lower.map(<[u8]>::to_vec),
                upper: upper.map(<[u8]>::to_vec),
                entries: read.entries.clone(),
            });
            let entry = read.entries.into_iter().next();
            if let Some(entry) = &entry {
                check(entry)?;
                tx.changes.set(map, &entry.0, None);
            }
            Ok(entry)
        })
    }
}
