//! Transactions, which buffer edits until all of them are committed.

use super::{ItemStore, count};
use crate::items::record::StoreRecord;
use std::sync::atomic::Ordering;

/// A copy of the state beside the index from before a transaction.
pub struct Before {
    record: StoreRecord,
    count: count::Saved,
    removals: u64,
}

impl ItemStore {
    /// Buffers edits from now on. No other command runs until the transaction ends.
    pub fn begin(&self) -> Before {
        self.items.keep_back(true);
        Before {
            record: *self.lock(),
            count: self.count.save(),
            removals: self.removals.load(Ordering::Relaxed),
        }
    }

    /// Returns whether a transaction runs.
    #[inline]
    pub fn in_transaction(&self) -> bool {
        self.items.is_on()
    }

    /// Ends the transaction. If it was not committed, restores the state from `before` it, except that uniques it has
    /// used are not given again.
    pub fn end(&self, before: Before, committed: bool) {
        self.items.keep_back(false);
        self.removed.end(committed);
        if !committed {
            let mut record = self.lock();
            let reserved = record.reserved;
            self.adopt(
                &mut record,
                StoreRecord {
                    reserved,
                    ..before.record
                },
            );
            drop(record);
            self.count.restore(before.count);
            self.removals.store(before.removals, Ordering::Relaxed);
        }
    }
}
