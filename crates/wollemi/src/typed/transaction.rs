//! Typed maps in transactions.

use crate::txn::range::TransactionRange;
use crate::txn::transaction::Transaction;
use crate::typed::{Key, KeyBytes, TypedIter, TypedMap, bounds, bytes_of, part_of};
use crate::{Entry, Error, Media};
use index::Direction;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Borrow;
use std::ops::RangeBounds;

impl<K: Key, V: Serialize + DeserializeOwned> TypedMap<K, V> {
    /// Returns the key's value, as a transaction sees it.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let stock = wollemi::TypedMap::<String, u32>::new(db.map("stock")?);
    /// stock.upsert(&"apples".to_owned(), &12)?;
    /// let left = db.transact(|tx| {
    ///     let left = stock.get_in(tx, "apples")?.unwrap_or(0).saturating_sub(2);
    ///     stock.upsert_in(tx, &"apples".to_owned(), &left)?;
    ///     Ok::<_, wollemi::Error>(left)
    /// })?;
    /// assert_eq!(left, 10);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Transaction::get`].
    pub fn get_in<M: Media, Q: KeyBytes + ?Sized>(
        &self,
        tx: &Transaction<'_, M>,
        key: &Q,
    ) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
    {
        let bytes = tx.get(self.map(), bytes_of(key))?;
        bytes.map(|bytes| self.read(&bytes)).transpose()
    }

    /// Looks up many keys together and returns their values, as a transaction sees them, like
    /// [`Transaction::multi_get`].
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Transaction::multi_get`].
    pub fn multi_get_in<'q, M: Media, Q: KeyBytes + ?Sized + 'q>(
        &self,
        tx: &Transaction<'_, M>,
        keys: impl IntoIterator<Item = &'q Q>,
    ) -> Result<Vec<Option<V>>, Error>
    where
        K: Borrow<Q>,
    {
        let keys: Vec<_> = keys.into_iter().map(bytes_of).collect();
        self.read_all(tx.multi_get(self.map(), &keys)?)
    }

    /// Returns whether a transaction sees the key.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::contains`].
    pub fn contains_in<M: Media, Q: KeyBytes + ?Sized>(
        &self,
        tx: &Transaction<'_, M>,
        key: &Q,
    ) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        tx.contains(self.map(), bytes_of(key))
    }

    /// Adds the key in a transaction if it is absent there; returns `false` if it is present.
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Transaction::insert`].
    pub fn insert_in<M: Media>(
        &self,
        tx: &mut Transaction<'_, M>,
        key: &K,
        value: &V,
    ) -> Result<bool, Error> {
        tx.insert(self.map(), bytes_of(key), self.value(value)?)
    }

    /// Sets the key's value in a transaction.
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Transaction::upsert`].
    pub fn upsert_in<M: Media>(&self, tx: &mut Transaction<'_, M>, key: &K, value: &V) -> Result<(), Error> {
        tx.upsert(self.map(), bytes_of(key), self.value(value)?)
    }

    /// Replaces the key's value in a transaction if it is present there; returns `false` if it is absent.
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Transaction::update`].
    pub fn update_in<M: Media>(
        &self,
        tx: &mut Transaction<'_, M>,
        key: &K,
        value: &V,
    ) -> Result<bool, Error> {
        tx.update(self.map(), bytes_of(key), self.value(value)?)
    }

    /// Replaces the key's value in a transaction by the closure's result, and returns the new value. `None`, as
    /// argument or result, means that the key is absent. Counts as a read. Each call runs the closure once.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let stock = wollemi::TypedMap::<String, u32>::new(db.map("stock")?);
    /// let apples = "apples".to_owned();
    /// let count = db.transact(|tx| stock.edit_with_in(tx, &apples, |count| Some(count.unwrap_or(0) + 12)))?;
    /// assert_eq!((count, stock.get("apples")?), (Some(12), Some(12)));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if the key's value does not decode, or the new one cannot be encoded: the key is unchanged.
    /// Those of [`Transaction::edit_with`].
    pub fn edit_with_in<M: Media>(
        &self,
        tx: &mut Transaction<'_, M>,
        key: &K,
        function: impl FnOnce(Option<V>) -> Option<V>,
    ) -> Result<Option<V>, Error> {
        let new = function(self.get_in(tx, key)?);
        match &new {
            Some(value) => self.upsert_in(tx, key, value)?,
            None => drop(self.remove_in(tx, key)?),
        }
        Ok(new)
    }

    /// Returns the entry with the smallest key, as a transaction sees it; `None` if it sees none.
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Transaction::first`].
    pub fn first_in<M: Media>(&self, tx: &Transaction<'_, M>) -> Result<Option<(K, V)>, Error> {
        let entry = tx.first(self.map())?;
        entry.map(|entry| self.entry(Ok(entry))).transpose()
    }

    /// Returns the entry with the largest key, as a transaction sees it; `None` if it sees none.
    ///
    /// # Errors
    ///
    /// Those of [`first_in`](TypedMap::first_in).
    pub fn last_in<M: Media>(&self, tx: &Transaction<'_, M>) -> Result<Option<(K, V)>, Error> {
        let entry = tx.last(self.map())?;
        entry.map(|entry| self.entry(Ok(entry))).transpose()
    }

    /// Removes the entry with the smallest key in a transaction and returns it; `None` if the transaction sees none.
    ///
    /// # Errors
    ///
    /// Those of [`first_in`](TypedMap::first_in). An entry that does not decode remains.
    pub fn pop_first_in<M: Media>(&self, tx: &mut Transaction<'_, M>) -> Result<Option<(K, V)>, Error> {
        let entry = tx.first(self.map())?;
        self.pop_in(tx, entry, Direction::Forward)
    }

    /// Removes the entry with the largest key in a transaction and returns it; `None` if the transaction sees none.
    ///
    /// # Errors
    ///
    /// Those of [`pop_first_in`](TypedMap::pop_first_in).
    pub fn pop_last_in<M: Media>(&self, tx: &mut Transaction<'_, M>) -> Result<Option<(K, V)>, Error> {
        let entry = tx.last(self.map())?;
        self.pop_in(tx, entry, Direction::Reverse)
    }

    fn pop_in<M: Media>(
        &self,
        tx: &mut Transaction<'_, M>,
        entry: Option<Entry>,
        direction: Direction,
    ) -> Result<Option<(K, V)>, Error> {
        let decoded = entry.clone().map(|entry| self.entry(Ok(entry))).transpose()?;
        tx.pop(self.map(), entry, direction);
        Ok(decoded)
    }

    /// Removes the key in a transaction; returns `false` if it is absent there.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::remove`].
    pub fn remove_in<M: Media, Q: KeyBytes + ?Sized>(
        &self,
        tx: &mut Transaction<'_, M>,
        key: &Q,
    ) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        tx.remove(self.map(), bytes_of(key))
    }

    /// Iterates over all entries in key order, as a transaction sees them, like [`range_in`](TypedMap::range_in).
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::range`].
    pub fn iter_in<'t, M: Media>(
        &self,
        tx: &'t Transaction<'_, M>,
    ) -> Result<TypedIter<K, V, TransactionRange<'t>>, Error> {
        self.range_in::<M, K>(tx, ..)
    }

    /// Iterates over the entries between two bounds, in key order, as a transaction sees them. The iterator borrows the
    /// transaction alone, so that it can be returned or stored without the map and the bounds.
    ///
    /// ```
    /// use wollemi::{Db, Error, Transaction, TransactionRange, TypedIter, TypedMap};
    ///
    /// type Jobs<'t> = TypedIter<u64, String, TransactionRange<'t>>;
    ///
    /// fn due<'t>(tx: &'t Transaction<'_>, jobs: &TypedMap<u64, String>, now: u64) -> Result<Jobs<'t>, Error> {
    ///     jobs.range_in(tx, ..=now)
    /// }
    ///
    /// let db = Db::anonymous()?;
    /// let jobs = TypedMap::<u64, String>::new(db.map("jobs")?);
    /// jobs.load([(&1, &"sweep".to_owned()), (&9, &"mop".to_owned())])?;
    /// assert_eq!(due(&db.begin(), &jobs, 5)?.count(), 1);
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::range`].
    pub fn range_in<'t, M: Media, Q: KeyBytes + ?Sized>(
        &self,
        tx: &'t Transaction<'_, M>,
        keys: impl RangeBounds<Q>,
    ) -> Result<TypedIter<K, V, TransactionRange<'t>>, Error>
    where
        K: Borrow<Q>,
    {
        Ok(self.over(tx.range(self.map(), bounds(keys))?))
    }

    /// Iterates over the entries whose keys, text or bytes, begin with `prefix`, as a transaction sees them, like
    /// [`range_in`](TypedMap::range_in).
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::prefix`].
    pub fn prefix_in<'t, M: Media, Q: KeyBytes + ?Sized>(
        &self,
        tx: &'t Transaction<'_, M>,
        prefix: &Q,
    ) -> Result<TypedIter<K, V, TransactionRange<'t>>, Error>
    where
        K: Borrow<Q>,
    {
        Ok(self.over(tx.prefix(self.map(), bytes_of(prefix))?))
    }

    /// Iterates in key order over the entries whose keys are tuples that begin with this element, as a transaction sees
    /// them, like [`with_first`](TypedMap::with_first).
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::prefix`].
    pub fn with_first_in<'t, M: Media>(
        &self,
        tx: &'t Transaction<'_, M>,
        first: &impl Key,
    ) -> Result<TypedIter<K, V, TransactionRange<'t>>, Error> {
        Ok(self.over(tx.prefix(self.map(), part_of(first))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A transaction sees its own writes of a typed map, by key and by prefix.
    #[test]
    fn a_transaction_sees_its_own_writes() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let stock = TypedMap::<String, u32>::new(db.map("stock")?);
        stock.upsert(&"apples".to_owned(), &12)?;
        db.transact(|tx| {
            assert!(stock.insert_in(tx, &"apricots".to_owned(), &3)?);
            assert!(stock.remove_in(tx, "apples")?);
            assert!(stock.contains_in(tx, "apricots")? && !stock.contains_in(tx, "apples")?);
            let found: Vec<_> = stock.prefix_in(tx, "ap")?.collect::<Result<_, _>>()?;
            assert_eq!(found, [("apricots".to_owned(), 3)]);
            Ok::<_, Error>(())
        })
    }

    /// A transaction looks up and edits keys of a typed map with its own changes, and leaves a value that does not
    /// decode.
    #[test]
    fn a_transaction_looks_up_and_edits() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let map = db.map("stock")?;
        let stock = TypedMap::<String, u32>::new(map.clone());
        let [apples, pears, plums] = ["apples", "pears", "plums"].map(str::to_owned);
        stock.load([(&apples, &12), (&pears, &7)])?;
        map.upsert("torn", [0xff; 9])?;
        let mut tx = db.begin();
        assert_eq!(
            stock.edit_with_in(&mut tx, &apples, |count| count.map(|count| count - 2))?,
            Some(10)
        );
        assert_eq!(stock.edit_with_in(&mut tx, &pears, |_| None)?, None);
        assert_eq!(stock.edit_with_in(&mut tx, &plums, |count| count)?, None);
        assert!(stock.edit_with_in(&mut tx, &"torn".to_owned(), |_| None).is_err());
        assert_eq!(tx.len(), 2);
        assert_eq!(
            stock.multi_get_in(&tx, ["plums", "pears", "apples"])?,
            [None, None, Some(10)]
        );
        assert!(stock.multi_get_in(&tx, ["torn"]).is_err());
        tx.commit()?;
        assert_eq!(stock.multi_get(["apples", "pears"])?, [Some(10), None]);
        assert_eq!(map.get("torn")?, Some(vec![0xff; 9]));
        Ok(())
    }

    /// What a transaction looks up together or edits counts as read.
    #[test]
    fn what_is_looked_up_or_edited_is_checked() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let stock = TypedMap::<u8, u8>::new(db.map("stock")?);
        let look_up = db.begin();
        assert_eq!(stock.multi_get_in(&look_up, [&1, &2])?, [None, None]);
        let mut edit = db.begin();
        assert_eq!(stock.edit_with_in(&mut edit, &2, |_| None)?, None);
        stock.upsert(&2, &1)?;
        for tx in [look_up, edit] {
            assert!(matches!(tx.commit(), Err(Error::Conflict { .. })));
        }
        Ok(())
    }

    /// Iterators borrow the transaction alone: neither the handle nor the bounds.
    #[test]
    fn iterators_borrow_the_transaction_alone() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let visits = TypedMap::<(String, u8), u8>::new(db.map("visits")?);
        let [alice, alicia] = ["alice", "alicia"].map(str::to_owned);
        let mut tx = db.begin();
        for key in [(&alice, 1), (&alice, 2), (&alicia, 1)] {
            visits.upsert_in(&mut tx, &(key.0.clone(), key.1), &0)?;
        }
        let [all, behind, of_alice] = {
            let (visits, lower) = (visits.clone(), (alice.clone(), 2));
            [
                visits.iter_in(&tx)?,
                visits.range_in(&tx, &lower..)?,
                visits.with_first_in(&tx, &alice.clone())?,
            ]
        };
        let keys: Vec<_> = all
            .rev()
            .map(|entry| entry.map(|(key, _)| key))
            .collect::<Result<_, _>>()?;
        assert_eq!(keys, [(alicia, 1), (alice.clone(), 2), (alice, 1)]);
        assert_eq!((behind.count(), of_alice.count()), (2, 2));
        let names = TypedMap::<String, u8>::new(db.map("names")?);
        let begins = {
            let prefix = String::from("a");
            names.clone().prefix_in(&tx, &*prefix)?
        };
        assert_eq!(begins.count(), 0);
        // None of them is in use any more.
        visits.pop_first_in(&mut tx)?;
        Ok(())
    }

    /// A transaction takes entries from the ends of a typed map, and leaves one that does not decode.
    #[test]
    fn a_transaction_takes_from_the_ends() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let map = db.map("jobs")?;
        let jobs = TypedMap::<i32, String>::new(map.clone());
        for key in [-5, 0, 7] {
            jobs.upsert(&key, &key.to_string())?;
        }
        map.upsert(bytes_of(&i32::MAX), [0xff; 3])?;
        db.transact(|tx| {
            assert!(jobs.update_in(tx, &0, &"zero".to_owned())? && !jobs.update_in(tx, &1, &String::new())?);
            assert_eq!(jobs.first_in(tx)?, Some((-5, "-5".to_owned())));
            assert_eq!(jobs.pop_first_in(tx)?, Some((-5, "-5".to_owned())));
            assert_eq!(jobs.pop_first_in(tx)?, Some((0, "zero".to_owned())));
            assert!(jobs.last_in(tx).is_err() && jobs.pop_last_in(tx).is_err());
            assert!(tx.remove(&map, bytes_of(&i32::MAX))?);
            assert_eq!(jobs.pop_last_in(tx)?, Some((7, "7".to_owned())));
            assert_eq!((jobs.pop_first_in(tx)?, jobs.last_in(tx)?), (None, None));
            Ok::<_, Error>(())
        })?;
        assert!(map.is_empty()?);
        Ok(())
    }
}
