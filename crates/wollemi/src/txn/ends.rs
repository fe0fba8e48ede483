//! The first and the last entry of a map in a transaction.
//!
//! A transaction that pops an entry has read everything up to it, and sees no key up to it from then on, unless it puts
//! one there. So the next pop begins to read behind that entry. The commit validates the parts that all pops have read,
//! which adjoin: a key that another writer puts before a popped entry is a conflict.

use crate::entry::Entry;
use crate::txn::range::TransactionRange;
use crate::txn::transaction::Transaction;
use crate::{Error, Map, Media};
use index::Direction;

impl<M: Media> Transaction<'_, M> {
    /// Returns the entry with the smallest key; `None` if the transaction sees none. The entry and the gap before it
    /// count as read.
    ///
    /// # Errors
    ///
    /// Those of [`range`](Transaction::range), and [`Error::Index`] if the pool is damaged.
    pub fn first(&self, map: &Map) -> Result<Option<Entry>, Error> {
        self.rest(map)?.next().transpose()
    }

    /// Returns the entry with the largest key, like [`first`](Transaction::first).
    ///
    /// # Errors
    ///
    /// Those of [`first`](Transaction::first).
    pub fn last(&self, map: &Map) -> Result<Option<Entry>, Error> {
        self.rest(map)?.next_back().transpose()
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
    /// Each call begins to read behind the entries that earlier calls have popped, so to pop many entries costs no more
    /// than to read and remove them. Entries removed by other calls are read over each time, and so is what was popped
    /// behind a key that the transaction has put back.
    ///
    /// # Errors
    ///
    /// Those of [`first`](Transaction::first).
    pub fn pop_first(&mut self, map: &Map) -> Result<Option<Entry>, Error> {
        let entry = self.first(map)?;
        Ok(self.pop(map, entry, Direction::Forward))
    }

    /// Removes the entry with the largest key and returns it, like [`pop_first`](Transaction::pop_first).
    ///
    /// # Errors
    ///
    /// Those of [`first`](Transaction::first).
    pub fn pop_last(&mut self, map: &Map) -> Result<Option<Entry>, Error> {
        let entry = self.last(map)?;
        Ok(self.pop(map, entry, Direction::Reverse))
    }

    /// Removes and returns the entry, which is the first one in this direction.
    pub(crate) fn pop(&mut self, map: &Map, entry: Option<Entry>, direction: Direction) -> Option<Entry> {
        if let Some((key, _)) = &entry {
            self.changes.pop(map, key, direction);
        }
        entry
    }

    /// Iterates over all entries that the transaction sees, without reading what its pops have removed.
    pub(crate) fn rest(&self, map: &Map) -> Result<TransactionRange<'_>, Error> {
        self.range(map, self.changes.rest(map))
    }
}

#[cfg(test)]
mod tests {
    use crate::{Db, Error};

    /// Pops read each entry once, however many a transaction makes: the commit validates no more than the map held.
    #[test]
    fn pops_read_each_entry_once() -> Result<(), Error> {
        let db = Db::anonymous()?;
        let map = db.map("m")?;
        map.load((0..100u8).map(|i| ([i], [i])))?;
        let mut tx = db.begin();
        for i in 0..50u8 {
            assert_eq!(tx.pop_first(&map)?, Some((vec![i], vec![i])));
            assert_eq!(tx.pop_last(&map)?, Some((vec![99 - i], vec![99 - i])));
        }
        assert_eq!((tx.pop_first(&map)?, tx.pop_last(&map)?), (None, None));
        let (_, ranges) = tx.into_reads().into_parts()?;
        assert_eq!(ranges.iter().map(|range| range.entries.len()).sum::<usize>(), 100);
        Ok(())
    }

    /// A pop finds what the transaction has put back before popped entries, at either end.
    #[test]
    fn pops_find_what_was_put_back() -> Result<(), Error> {
        let db = Db::anonymous()?;
        let map = db.map("m")?;
        map.load((10..20u8).map(|i| ([i], [i])))?;
        let mut tx = db.begin();
        for _ in 0..4 {
            assert!(tx.pop_first(&map)?.is_some() && tx.pop_last(&map)?.is_some());
        }
        // Before, among and behind the popped entries, and a popped one itself.
        for key in [11, 5, 12, 25, 18] {
            tx.upsert(&map, [key], "back")?;
        }
        tx.remove(&map, [12])?;
        let mut keys = Vec::new();
        while let Some((key, _)) = tx.pop_first(&map)? {
            keys.push(key[0]);
            keys.extend(tx.pop_last(&map)?.map(|(key, _)| key[0]));
        }
        assert_eq!(keys, [5, 25, 11, 18, 14, 15]);
        tx.commit()?;
        assert!(map.is_empty()?);
        Ok(())
    }

    /// A key that another writer puts among popped entries, or before them, is a conflict, as is one in the gap between
    /// two pops; one behind them is none.
    #[test]
    fn keys_put_among_popped_entries_are_conflicts() -> Result<(), Error> {
        for (key, conflicts) in [
            ("a", true),
            ("b", true),
            ("b1", true),
            ("c1", true),
            ("d1", false),
        ] {
            let db = Db::anonymous()?;
            let map = db.map("m")?;
            map.load([("b", "1"), ("c", "2"), ("d", "3"), ("e", "4")])?;
            let mut tx = db.begin();
            for _ in 0..3 {
                tx.pop_first(&map)?;
            }
            map.upsert(key, "other")?;
            let conflict = matches!(tx.commit(), Err(Error::Conflict { .. }));
            assert_eq!(conflict, conflicts, "a write of {key}");
        }
        Ok(())
    }
}
