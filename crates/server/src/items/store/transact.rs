//! Transactions: edits that are kept back until all of them are committed.

use super::{Changes, Store, count};
use crate::items::record::Record;

/// What is kept beside the index, as it was before a transaction.
pub struct Before {
    record: Record,
    count: count::Saved,
}

impl Store {
    /// Keeps edits back from now on. Nobody else acts until the transaction ends.
    pub fn begin(&self) -> Before {
        self.items.begin();
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

    /// What the transaction changes; `None` where that is too much.
    pub fn changes(&self) -> Option<Changes> {
        self.items.changes()
    }

    /// Makes one of the changes of a transaction that has ended, by itself.
    pub fn make(&self, key: &[u8], value: Option<&[u8]>) -> Result<(), index::Error> {
        match value {
            Some(value) => self.items.index().upsert(key, value),
            None => self.items.index().remove(key).map(drop),
        }
    }

    /// Ends the transaction. If it was not committed, all is as it was `before`.
    pub fn end(&self, before: Before, committed: bool) {
        self.items.end();
        if !committed {
            self.adopt(&mut self.lock(), before.record);
            self.count.restore(before.count);
        }
    }
}
