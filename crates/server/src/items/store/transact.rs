//! Transactions: edits that are kept back until all of them are committed.

use super::{Store, count};
use crate::items::record::Record;

/// The state beside the index, as it was before a transaction.
pub struct Before {
    record: Record,
    count: count::Saved,
}

impl Store {
    /// Buffers edits from now on. No other command runs until the transaction ends.
    pub fn begin(&self) -> Before {
        self.items.keep_back(true);
        Before {
            record: *self.lock(),
            count: self.count.save(),
        }
    }

    /// Whether a transaction runs.
    #[inline]
    pub fn in_transaction(&self) -> bool {
        self.items.is_on()
    }

    /// Ends the transaction. If it was not committed, all is as it was `before`; but uniques that it has given are not
    /// given again.
    pub fn end(&self, before: Before, committed: bool) {
        self.items.keep_back(false);
        if !committed {
            let mut record = self.lock();
            let reserved = record.reserved;
            self.adopt(
                &mut record,
                Record {
                    reserved,
                    ..before.record
                },
            );
            drop(record);
            self.count.restore(before.count);
        }
    }
}
