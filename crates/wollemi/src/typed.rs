//! Maps of Rust types: keys in an order-preserving encoding, values by `serde`, in postcard's format.

mod ends;
mod key;
mod transaction;
mod views;
mod writes;

use crate::{Durability, Entry, Error, Iter, Map};
pub use key::{Key, KeyBytes};
pub(crate) use key::{bounds, bytes_of};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Borrow;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::ops::RangeBounds;
pub use views::{TypedView, TypedViewIter, TypedWatch};

/// A [`Map`] with keys of type `K` and values of type `V`. The types are not stored. Bytes that do not decode as `K` or
/// `V` are an error on read.
///
/// ```
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Reading {
///     celsius: f32,
///     note: Option<String>,
/// }
///
/// let db = wollemi::Db::anonymous()?;
/// // By station and second: ordered by station, and by time within each.
/// let readings = wollemi::TypedMap::<(u32, i64), Reading>::new(db.map("readings")?);
/// readings.upsert(&(7, -60), &Reading { celsius: 20.5, note: None })?;
/// readings.upsert(&(7, 60), &Reading { celsius: 21.0, note: Some("sunny".into()) })?;
/// readings.upsert(&(8, 0), &Reading { celsius: 3.0, note: None })?;
///
/// let of_seven = readings.range((7, i64::MIN)..(8, i64::MIN)).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(of_seven.len(), 2);
/// assert_eq!(of_seven[0].0, (7, -60));
///
/// // In a batch, or wherever a map of bytes is required:
/// let mut batch = db.batch();
/// let reading = Reading { celsius: 4.0, note: None };
/// batch.upsert(readings.map(), readings.key(&(8, 1)), readings.value(&reading)?);
/// assert!(batch.commit()?);
/// assert_eq!(readings.get(&(8, 1))?, Some(reading));
/// # Ok::<(), wollemi::Error>(())
/// ```
pub struct TypedMap<K, V> {
    map: Map,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Serialize + DeserializeOwned> TypedMap<K, V> {
    /// Wraps a map.
    pub fn new(map: Map) -> TypedMap<K, V> {
        TypedMap {
            map,
            types: PhantomData,
        }
    }

    /// Returns the underlying map of bytes.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Returns a handle whose writes have this durability, like [`Map::with_durability`].
    pub fn with_durability(&self, durability: Durability) -> TypedMap<K, V> {
        TypedMap::new(self.map.with_durability(durability))
    }

    /// Returns a key's bytes.
    pub fn key(&self, key: &K) -> Vec<u8> {
        bytes_of(key)
    }

    /// Returns a value's bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if the type's `Serialize` fails.
    pub fn value(&self, value: &V) -> Result<Vec<u8>, Error> {
        postcard::to_stdvec(value).map_err(|error| self.wrong(error))
    }

    fn wrong(&self, why: impl fmt::Display) -> Error {
        wrong(self.map.name(), why)
    }

    pub(crate) fn read(&self, bytes: &[u8]) -> Result<V, Error> {
        read_value(self.map.name(), bytes)
    }

    fn read_all(&self, found: Vec<Option<Vec<u8>>>) -> Result<Vec<Option<V>>, Error> {
        let found = found.into_iter();
        found
            .map(|bytes| bytes.map(|bytes| self.read(&bytes)).transpose())
            .collect()
    }

    /// Returns the key's value. Accepts any borrowed form of the key's type.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let stock = wollemi::TypedMap::<String, u32>::new(db.map("stock")?);
    /// stock.upsert(&"apples".to_owned(), &12)?;
    /// assert_eq!(stock.get("apples")?, Some(12));
    /// assert!(stock.remove("apples")?);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Map::get`].
    pub fn get<Q: KeyBytes + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
    {
        let bytes = self.map.get(bytes_of(key))?;
        bytes.map(|bytes| self.read(&bytes)).transpose()
    }

    /// Returns whether the key is present.
    ///
    /// # Errors
    ///
    /// Those of [`Map::contains`].
    pub fn contains<Q: KeyBytes + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.map.contains(bytes_of(key))
    }

    /// Adds the key if it is absent; returns `false` if it is present.
    pub fn insert(&self, key: &K, value: &V) -> Result<bool, Error> {
        self.map.insert(bytes_of(key), self.value(value)?)
    }

    /// Sets the key's value, whether or not the key is present.
    pub fn upsert(&self, key: &K, value: &V) -> Result<(), Error> {
        self.map.upsert(bytes_of(key), self.value(value)?)
    }

    /// Removes the key; returns `false` if it is absent.
    pub fn remove<Q: KeyBytes + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.map.remove(bytes_of(key))
    }

    /// Iterates over all entries in key order, like [`Map::iter`].
    pub fn iter(&self) -> TypedIter<K, V> {
        self.range::<K>(..)
    }

    /// Iterates over the entries between two bounds, in key order. The bounds may have a borrowed form of the key's
    /// type, as those of [`BTreeMap::range`](std::collections::BTreeMap::range) may.
    ///
    /// ```
    /// use std::ops::Bound;
    ///
    /// let stock = wollemi::TypedMap::<String, u32>::new(wollemi::Db::anonymous()?.map("stock")?);
    /// for fruit in ["apple", "banana", "cherry"] {
    ///     stock.upsert(&fruit.to_owned(), &1)?;
    /// }
    /// assert_eq!(stock.range("b".to_owned()..).count(), 2);
    /// assert_eq!(stock.range::<str>((Bound::Unbounded, Bound::Excluded("b"))).count(), 1);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn range<Q: KeyBytes + ?Sized>(&self, keys: impl RangeBounds<Q>) -> TypedIter<K, V>
    where
        K: Borrow<Q>,
    {
        self.over(self.map.range(bounds(keys)))
    }

    /// Iterates over the entries whose keys, text or bytes, begin with `prefix`.
    ///
    /// ```
    /// let stock = wollemi::TypedMap::<String, u32>::new(wollemi::Db::anonymous()?.map("stock")?);
    /// for fruit in ["apple", "apricot", "pear"] {
    ///     stock.upsert(&fruit.to_owned(), &1)?;
    /// }
    /// assert_eq!(stock.prefix("ap").count(), 2);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn prefix<Q: KeyBytes + ?Sized>(&self, prefix: &Q) -> TypedIter<K, V>
    where
        K: Borrow<Q>,
    {
        self.over(self.map.prefix(bytes_of(prefix)))
    }

    /// Iterates in key order over the entries whose keys are tuples that begin with this element. A tuple as `first`
    /// stands for several elements.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let visits = wollemi::TypedMap::<(String, u64), u32>::new(db.map("visits")?);
    /// for (who, day) in [("alice", 1), ("alice", 2), ("alicia", 1)] {
    ///     visits.upsert(&(who.to_owned(), day), &1)?;
    /// }
    /// assert_eq!(visits.with_first(&"alice".to_owned()).count(), 2);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn with_first(&self, first: &impl Key) -> TypedIter<K, V> {
        self.over(self.map.prefix(part_of(first)))
    }

    fn over<I>(&self, entries: I) -> TypedIter<K, V, I> {
        TypedIter {
            map: self.clone(),
            entries,
        }
    }

    pub(crate) fn entry(&self, entry: Result<Entry, Error>) -> Result<(K, V), Error> {
        let (key, value) = entry?;
        Ok((read_key(self.map.name(), &key)?, self.read(&value)?))
    }
}

fn wrong(map: &str, why: impl fmt::Display) -> Error {
    Error::Value {
        map: map.to_owned(),
        why: why.to_string(),
    }
}

/// Decodes a value of the map of this name.
fn read_value<V: DeserializeOwned>(map: &str, bytes: &[u8]) -> Result<V, Error> {
    match postcard::take_from_bytes(bytes) {
        Ok((value, [])) => Ok(value),
        Ok(_) => Err(wrong(map, "trailing bytes")),
        Err(error) => Err(wrong(map, error)),
    }
}

/// Decodes a key of the map of this name.
fn read_key<K: Key>(map: &str, bytes: &[u8]) -> Result<K, Error> {
    K::read(bytes).ok_or_else(|| wrong(map, "a key does not decode"))
}

/// Returns the bytes with which a tuple begins that has this first element.
fn part_of(first: &impl Key) -> Vec<u8> {
    let mut bytes = Vec::new();
    first.write_part(&mut bytes);
    bytes
}

/// A double-ended iterator over a [`TypedMap`]'s entries in key order, which owns what it yields and a handle to the
/// map. `I` is the iterator over the underlying bytes: [`Iter`] of a map, [`ViewIter`](crate::ViewIter) of a view, or
/// [`TransactionRange`](crate::TransactionRange), which borrows the transaction.
///
/// An entry that does not decode is an error, after which the iteration continues.
pub struct TypedIter<K, V, I = Iter> {
    map: TypedMap<K, V>,
    entries: I,
}

impl<K: Key, V: Serialize + DeserializeOwned, I> Iterator for TypedIter<K, V, I>
where
    I: Iterator<Item = Result<Entry, Error>>,
{
    type Item = Result<(K, V), Error>;
    fn next(&mut self) -> Option<Self::Item> {
        self.entries.next().map(|entry| self.map.entry(entry))
    }
}

impl<K: Key, V: Serialize + DeserializeOwned, I> DoubleEndedIterator for TypedIter<K, V, I>
where
    I: DoubleEndedIterator<Item = Result<Entry, Error>>,
{
    fn next_back(&mut self) -> Option<Self::Item> {
        self.entries.next_back().map(|entry| self.map.entry(entry))
    }
}

impl<K: Key, V: Serialize + DeserializeOwned, I> FusedIterator for TypedIter<K, V, I> where
    I: FusedIterator<Item = Result<Entry, Error>>
{
}

impl<K: Key, V: Serialize + DeserializeOwned> IntoIterator for &TypedMap<K, V> {
    type Item = Result<(K, V), Error>;
    type IntoIter = TypedIter<K, V>;
    fn into_iter(self) -> TypedIter<K, V> {
        self.iter()
    }
}

impl<K, V, I> fmt::Debug for TypedIter<K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedIter").field(&self.map).finish()
    }
}

impl<K, V> Clone for TypedMap<K, V> {
    fn clone(&self) -> Self {
        TypedMap {
            map: self.map.clone(),
            types: PhantomData,
        }
    }
}

impl<K, V> fmt::Debug for TypedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedMap").field(&self.map).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys are found by their borrowed forms, and only by a complete key.
    #[test]
    fn borrowed_forms_find_keys() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let words = TypedMap::<String, u8>::new(db.map("words")?);
        words.upsert(&"apple".to_owned(), &1)?;
        assert_eq!((words.get("apple")?, words.get("app")?), (Some(1), None));
        assert!(words.contains("apple")? && words.contains(&"apple".to_owned())?);
        assert!(words.remove("apple")? && !words.contains("apple")?);

        let bytes = TypedMap::<Vec<u8>, u8>::new(db.map("bytes")?);
        bytes.upsert(&vec![1, 2], &3)?;
        assert_eq!(bytes.get(&[1, 2][..])?, Some(3));
        let arrays = TypedMap::<[u8; 2], u8>::new(db.map("arrays")?);
        arrays.upsert(&[1, 2], &3)?;
        assert_eq!((arrays.get(&[1, 2])?, arrays.get(&[1u8][..])?), (Some(3), None));
        Ok(())
    }

    /// The first and last entry are those by the order of the keys, whatever their bytes mean as another type.
    #[test]
    fn ends_are_those_of_the_keys() -> Result<(), Error> {
        let numbers = TypedMap::<i32, String>::new(crate::Db::anonymous()?.map("m")?);
        assert_eq!((numbers.first()?, numbers.pop_last()?), (None, None));
        for key in [3, -5, 0] {
            numbers.upsert(&key, &key.to_string())?;
        }
        assert_eq!(numbers.first()?, Some((-5, "-5".to_owned())));
        assert_eq!(numbers.last()?, Some((3, "3".to_owned())));
        assert_eq!(numbers.pop_first()?, Some((-5, "-5".to_owned())));
        assert_eq!(numbers.pop_last()?, Some((3, "3".to_owned())));
        assert_eq!((numbers.len()?, numbers.is_empty()?), (1, false));
        Ok(())
    }

    /// A map can be iterated over by reference, and through a handle of another durability.
    #[test]
    fn a_map_is_iterated_over_by_reference() -> Result<(), Error> {
        let numbers = TypedMap::<u8, u8>::new(crate::Db::anonymous()?.map("m")?);
        let eventual = numbers.with_durability(Durability::Eventual);
        assert!(eventual.insert(&2, &20)? && numbers.insert(&1, &10)?);
        let mut found = Vec::new();
        for entry in &eventual {
            found.push(entry?);
        }
        assert_eq!(found, [(1, 10), (2, 20)]);
        Ok(())
    }

    /// Bytes of other types are an error, not a value.
    #[test]
    fn other_types_are_noticed() -> Result<(), Error> {
        let map = crate::Db::anonymous()?.map("m")?;
        let numbers = TypedMap::<u32, u16>::new(map.clone());
        numbers.upsert(&1, &300)?;
        map.upsert(2u32.to_be_bytes(), [0xff; 9])?;
        map.upsert(3u32.to_be_bytes(), [1, 1])?;
        assert_eq!(numbers.get(&1)?, Some(300));
        assert!(matches!(numbers.get(&2), Err(Error::Value { .. })));
        assert!(matches!(numbers.get(&3), Err(Error::Value { .. })));
        map.upsert("longer", [1])?;
        assert!(matches!(
            numbers.range(4..).next(),
            Some(Err(Error::Value { .. }))
        ));
        assert!(matches!(numbers.last(), Err(Error::Value { .. })));
        assert!(numbers.insert(&5, &5)? && numbers.remove(&5)? && !numbers.remove(&5)?);
        Ok(())
    }
}
