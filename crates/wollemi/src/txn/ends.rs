//! The first and the last entry of a map in a transaction.

use crate::entry::Entry;
use crate::txn::transaction::Transaction;
use crate::{Error, Map, Media};

impl<M: Media> Transaction<'_, M> {
    /// Returns the entry with the smallest key; `None` if the transaction sees none. The entry and the gap before it
    /// count as read.
    ///
    /// # Errors
    ///
    /// Those of [`range`](Transaction::range), and [`Error::Index`] if the pool is damaged.
    pub fn first(&self, map: &Map) -> Result<Option<Entry>, Error> {
        self.range(map, ..)?.next().transpose()
    }

    /// Returns the entry with the largest key, like [`first`](Transaction::first).
    ///
    /// # Errors
    ///
    /// Those of [`first`](Transaction::first).
    pub fn last(&self, map: &Map) -> Result<Option<Entry>, Error> {
        self.range(map, ..)?.next_back().transpose()
    }

    /// Removes the entry with the smallest key and returns it; `None` if the transaction sees none.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let (waiting, running) = (db.map("waiting")?, db.map("running")?);
    /// waiting.load([("1", "sweep"), ("2", "mop")])?;
    /// let started = db.transact(|tx| {
    ///     let job = tx.pop_first(&waiting)?;
    ///     if let Some((number, job)) = &job {
    ///         tx.upsert(&running, number, job)?;
    ///     }
    ///     Ok::<_, wollemi::Error>(job)
    /// })?;
    /// assert_eq!(started, Some((b"1".to_vec(), b"sweep".to_vec())));
    /// assert_eq!((waiting.len()?, running.len()?), (1, 1));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// Each call reads from the end of the map again, past what the transaction has removed: to remove many entries,
    /// iterate over a [range](Transaction::range) and remove its keys.
    ///
    /// # Errors
    ///
    /// Those of [`first`](Transaction::first).
    pub fn pop_first(&mut self, map: &Map) -> Result<Option<Entry>, Error> {
        let entry = self.first(map)?;
        self.pop(map, entry)
    }

    /// Removes the entry with the largest key and returns it, like [`pop_first`](Transaction::pop_first).
    ///
    /// # Errors
    ///
    /// Those of [`first`](Transaction::first).
    pub fn pop_last(&mut self, map: &Map) -> Result<Option<Entry>, Error> {
        let entry = self.last(map)?;
        self.pop(map, entry)
    }

    pub(crate) fn pop(&mut self, map: &Map, entry: Option<Entry>) -> Result<Option<Entry>, Error> {
        if let Some((key, _)) = &entry {
            self.changes.set(map, key, None);
        }
        Ok(entry)
    }
}
