//! Typed maps in transactions.

use crate::txn::transaction::Transaction;
use crate::typed::{Key, KeyBytes, TypedMap, bounds, bytes_of};
use crate::{Error, Media};
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

    /// Whether a transaction sees the key.
    ///
    /// # Errors
    ///
    /// As [`Transaction::contains`].
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
        self.pop_in(tx, entry)
    }

    /// Removes the entry with the largest key in a transaction and returns it; `None` if the transaction sees none.
    ///
    /// # Errors
    ///
    /// Those of [`pop_first_in`](TypedMap::pop_first_in).
    pub fn pop_last_in<M: Media>(&self, tx: &mut Transaction<'_, M>) -> Result<Option<(K, V)>, Error> {
        let entry = tx.last(self.map())?;
        self.pop_in(tx, entry)
    }

    fn pop_in<M: Media>(
        &self,
        tx: &mut Transaction<'_, M>,
        entry: Option<(Vec<u8>, Vec<u8>)>,
    ) -> Result<Option<(K, V)>, Error> {
        let decoded = entry.clone().map(|entry| self.entry(Ok(entry))).transpose()?;
        tx.pop(self.map(), entry)?;
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

    /// Iterates over the entries between two bounds, in key order, as a transaction sees them.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::range`].
    pub fn range_in<'t, M: Media, Q: KeyBytes + ?Sized>(
        &'t self,
        tx: &'t Transaction<'_, M>,
        keys: impl RangeBounds<Q>,
    ) -> Result<impl DoubleEndedIterator<Item = Result<(K, V), Error>>, Error>
    where
        K: Borrow<Q>,
    {
        let entries = tx.range(self.map(), bounds(keys))?;
        Ok(entries.map(|entry| self.entry(entry)))
    }

    /// The entries whose keys are text, or bytes, that begin with these, in key order, as a transaction sees them.
    ///
    /// # Errors
    ///
    /// As [`Transaction::prefix`].
    pub fn prefix_in<'t, M: Media, Q: KeyBytes + ?Sized>(
        &'t self,
        tx: &'t Transaction<'_, M>,
        prefix: &Q,
    ) -> Result<impl DoubleEndedIterator<Item = Result<(K, V), Error>>, Error>
    where
        K: Borrow<Q>,
    {
        let entries = tx.prefix(self.map(), bytes_of(prefix))?;
        Ok(entries.map(|entry| self.entry(entry)))
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
