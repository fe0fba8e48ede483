//! Reading items.

use super::{Failure, ItemStore};
use crate::items::item::Item;
use crate::items::record;
use index::{Direction, Guard, Order, Value};
use std::ops::{Bound, ControlFlow};

/// The visitor of a walk: called for each key in order, with its item, or `None` if the item is dead or the value is no
/// item.
pub type Visit<'f> = dyn FnMut(&[u8], Option<&Item<'_>>) -> ControlFlow<()> + 'f;

impl ItemStore {
    /// Calls `show` with an item, if it exists; in a transaction, as the transaction has left it.
    pub fn read<T>(
        &self,
        key: &[u8],
        now: u64,
        show: impl FnOnce(&Item<'_>) -> T,
    ) -> Result<Option<T>, Failure> {
        let mut flushed = false;
        let shown = self.items.read(key, |value| {
            let Some(value) = value else { return Ok(None) };
            let item = Item::read(value).ok_or(Failure::Foreign)?;
            if self.is_dead(&item.header, now) {
                flushed = self.is_flushed(&item.header);
                return Ok(None);
            }
            self.usage.note(key);
            Ok(Some(show(&item)))
        })?;
        if flushed {
            self.see_flush()?;
        }
        shown
    }

    /// Called by readers that report a flushed item absent. Reads the record through the index, so that the answer
    /// waits until the flush is durable, or fails if it cannot become so. (A read of the item itself waits only for the
    /// item's own writes, of which the flush is none.) The caller holds no lock of the overlay.
    #[cold]
    pub(super) fn see_flush(&self) -> Result<(), Failure> {
        Ok(self.items.read(record::KEY, |_| ())?)
    }

    /// Reads items, in no transaction: fills `found[i]` for each key that has a live item, and appends the indices of
    /// the keys of dead items to `dead`.
    pub fn get<'g>(
        &'g self,
        keys: &[&[u8]],
        now: u64,
        guard: &'g Guard,
        dead: &mut Vec<usize>,
        found: &mut [Option<Value<'g>>],
    ) -> Result<(), Failure> {
        if let [key] = keys {
            found[0] = self.items.index().get(key, guard)?;
        } else {
            self.items
                .index()
                .multi_get(keys, guard, &mut |i, value| found[i] = value)?;
        }
        let mut flushed = false;
        for (i, slot) in found.iter_mut().enumerate() {
            if let Some(value) = slot {
                let item = Item::read(value).ok_or(Failure::Foreign)?;
                if self.is_dead(&item.header, now) {
                    flushed |= self.is_flushed(&item.header);
                    *slot = None;
                    dead.push(i);
                } else {
                    self.usage.note(keys[i]);
                }
            }
        }
        match flushed {
            true => self.see_flush(),
            false => Ok(()),
        }
    }

    /// Prefetches the memory that edits of these keys will look at, as [`index::Index::prefetch`] does.
    pub fn prefetch(&self, keys: &[&[u8]]) {
        self.items.index().prefetch(keys, &heap::pin());
    }

    /// Returns the order in which walks visit items.
    pub fn order(&self) -> Order {
        self.items.index().order()
    }

    /// Visits items between the bounds, in [order](ItemStore::order), until the visitor breaks. It receives `None` for
    /// a dead item and for a value that is no item.
    pub fn scan(
        &self,
        lower: Bound<&[u8]>,
        upper: Bound<&[u8]>,
        direction: Direction,
        now: u64,
        guard: &Guard,
        visit: &mut Visit<'_>,
    ) -> Result<(), index::Error> {
        // The record has the empty key, which comes first in any order and is no item's.
        let lower = match lower {
            Bound::Unbounded | Bound::Included([]) => Bound::Excluded(record::KEY),
            lower => lower,
        };
        self.items
            .scan((lower, upper), direction, guard, &mut |key, value| {
                let item = Item::read(value).filter(|item| !self.is_dead(&item.header, now));
                visit(key, item.as_ref())
            })
    }
}
