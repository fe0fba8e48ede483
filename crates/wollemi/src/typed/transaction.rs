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
}
