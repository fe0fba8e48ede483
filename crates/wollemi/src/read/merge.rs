//! Reading an index under an overlay: before-images (snapshots), or uncommitted changes (transactions).

use crate::entry::{BATCH_BYTES, Entry};
use index::{Direction, Index, Order};
use std::collections::VecDeque;
use std::ops::{Bound, ControlFlow};

/// A lower and an upper bound.
pub(crate) type Bounds<'b> = (Bound<&'b [u8]>, Bound<&'b [u8]>);

/// A batch of entries of an index, in its order, read from one end.
pub(crate) struct Read {
    order: Order,
    pub entries: Vec<Entry>,
    /// Whether more entries may follow.
    full: bool,
}

impl Read {
    /// Reads at most `limit` entries between two bounds, from one end.
    pub fn batch(
        index: &dyn Index,
        (lower, upper): Bounds<'_>,
        direction: Direction,
        limit: usize,
    ) -> Result<Read, index::Error> {
        let (mut entries, mut bytes, mut full) = (Vec::new(), 0, false);
        let guard = heap::pin();
        index.walk(lower, upper, direction, &guard, &mut |key, value| {
            bytes += key.len() + value.len();
            entries.push((key.to_vec(), value.to_vec()));
            full = entries.len() >= limit || bytes >= BATCH_BYTES;
            if full {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        Ok(Read {
            order: index.order(),
            entries,
            full,
        })
    }

    /// Returns the last key read, if the index was not read to the end.
    pub fn reached(&self) -> Option<Vec<u8>> {
        self.last().map(<[u8]>::to_vec)
    }

    fn last(&self) -> Option<&[u8]> {
        self.entries.last().filter(|_| self.full).map(|(key, _)| &**key)
    }

    /// Returns the bounds between which everything was read.
    ///
    /// # Errors
    ///
    /// If a damaged pool returns keys out of order, so that the bounds cross.
    pub fn covered<'b>(
        &'b self,
        (lower, upper): Bounds<'b>,
        direction: Direction,
    ) -> Result<Bounds<'b>, index::Error> {
        let covered = match (self.last(), direction) {
            (None, _) => (lower, upper),
            (Some(key), Direction::Forward) => (lower, Bound::Included(key)),
            (Some(key), Direction::Reverse) => (Bound::Included(key), upper),
        };
        if self.order.has_between(covered.0, covered.1) {
            return Ok(covered);
        }
        let what = "a key out of order";
        Err(heap::Error::Damaged { what, offset: 0 }.into())
    }
}

/// Merges entries of the index with the overlay, which replaces them, in the index's order, as seen from one end.
pub(crate) fn merge<V: AsRef<[u8]>>(
    found: Vec<Entry>,
    over: Vec<(Vec<u8>, Option<V>)>,
    order: Order,
    direction: Direction,
    entries: &mut VecDeque<Entry>,
) {
    let mut found = found.into_iter().peekable();
    for (key, value) in over {
        while let Some(entry) = found.next_if(|(other, _)| order.comes_first(other, &key, direction)) {
            entries.push_back(entry);
        }
        found.next_if(|(other, _)| *other == key);
        entries.extend(value.map(|bytes| (key, bytes.as_ref().to_vec())));
    }
    entries.extend(found);
}
