//! Maps of Rust's own types: keys in an encoding that keeps their order, values by `serde`, in postcard's format.

mod ends;

use crate::{Error, Map};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Bound, RangeBounds};

/// A type of keys: each has its bytes, and these are ordered as the keys are.
///
/// Unsigned integers are big-endian; signed ones too, with the sign bit turned over; text and bytes are what they are; a
/// pair is one after the other, so all of its first kind have one [length](FixedKey).
pub trait Key: Sized {
    /// Puts the key's bytes behind what is there.
    fn write(&self, into: &mut Vec<u8>);

    /// The key of these bytes; `None` if they are no key's.
    fn read(bytes: &[u8]) -> Option<Self>;
}

/// What a key can be looked up by: the key itself, text for a [`String`], a slice for bytes.
///
/// A key and the form that it is [borrowed](std::borrow::Borrow) as have the same bytes.
pub trait KeyBytes {
    /// Puts the key's bytes behind what is there.
    fn write_bytes(&self, into: &mut Vec<u8>);
}

impl<K: Key> KeyBytes for K {
    fn write_bytes(&self, into: &mut Vec<u8>) {
        self.write(into);
    }
}

impl KeyBytes for str {
    fn write_bytes(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self.as_bytes());
    }
}

impl KeyBytes for [u8] {
    fn write_bytes(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self);
    }
}

/// A type of keys all of which have one length.
pub trait FixedKey: Key {
    /// That length, in bytes.
    const LEN: usize;
}

macro_rules! integers {
    ($($unsigned:ty, $signed:ty;)+) => {$(
        impl Key for $unsigned {
            fn write(&self, into: &mut Vec<u8>) {
                into.extend_from_slice(&self.to_be_bytes());
            }
            fn read(bytes: &[u8]) -> Option<Self> {
                Some(<$unsigned>::from_be_bytes(bytes.try_into().ok()?))
            }
        }
        impl FixedKey for $unsigned {
            const LEN: usize = size_of::<$unsigned>();
        }
        impl Key for $signed {
            fn write(&self, into: &mut Vec<u8>) {
                (self.cast_unsigned() ^ <$signed>::MIN.cast_unsigned()).write(into);
            }
            fn read(bytes: &[u8]) -> Option<Self> {
                Some((<$unsigned>::read(bytes)? ^ <$signed>::MIN.cast_unsigned()).cast_signed())
            }
        }
        impl FixedKey for $signed {
            const LEN: usize = size_of::<$signed>();
        }
    )+};
}

integers! {
    u8, i8;
    u16, i16;
    u32, i32;
    u64, i64;
    u128, i128;
}

impl Key for String {
    fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self.as_bytes());
    }
    fn read(bytes: &[u8]) -> Option<Self> {
        str::from_utf8(bytes).ok().map(str::to_owned)
    }
}

impl Key for Vec<u8> {
    fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self);
    }
    fn read(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

impl<const N: usize> Key for [u8; N] {
    fn write(&self, into: &mut Vec<u8>) {
        into.extend_from_slice(self);
    }
    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok()
    }
}

impl<const N: usize> FixedKey for [u8; N] {
    const LEN: usize = N;
}

impl<A: FixedKey, B: Key> Key for (A, B) {
    fn write(&self, into: &mut Vec<u8>) {
        self.0.write(into);
        self.1.write(into);
    }
    fn read(bytes: &[u8]) -> Option<Self> {
        let (first, second) = bytes.split_at_checked(A::LEN)?;
        Some((A::read(first)?, B::read(second)?))
    }
}

impl<A: FixedKey, B: FixedKey> FixedKey for (A, B) {
    const LEN: usize = A::LEN + B::LEN;
}

pub(crate) fn bounds<K: Key>(keys: impl RangeBounds<K>) -> (Bound<Vec<u8>>, Bound<Vec<u8>>) {
    let bytes = |bound: Bound<&K>| bound.map(bytes_of);
    (bytes(keys.start_bound()), bytes(keys.end_bound()))
}

pub(crate) fn bytes_of(key: &(impl KeyBytes + ?Sized)) -> Vec<u8> {
    let mut bytes = Vec::new();
    key.write_bytes(&mut bytes);
    bytes
}

/// A [`Map`] whose keys and values are of these types. It is of these types by its use: bytes that are none of them are
/// an error when they are read.
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
/// // By station and second: in the order of the stations, and of the time within each.
/// let readings = wollemi::TypedMap::<(u32, i64), Reading>::new(db.map("readings")?);
/// readings.upsert(&(7, -60), &Reading { celsius: 20.5, note: None })?;
/// readings.upsert(&(7, 60), &Reading { celsius: 21.0, note: Some("sunny".into()) })?;
/// readings.upsert(&(8, 0), &Reading { celsius: 3.0, note: None })?;
///
/// let of_seven = readings.range((7, i64::MIN)..(8, i64::MIN)).collect::<Result<Vec<_>, _>>()?;
/// assert_eq!(of_seven.len(), 2);
/// assert_eq!(of_seven[0].0, (7, -60));
///
/// // In a batch, or wherever a map of bytes is wanted:
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
    /// The map, taken to be of these types.
    pub fn new(map: Map) -> TypedMap<K, V> {
        TypedMap {
            map,
            types: PhantomData,
        }
    }

    /// The map of bytes under it.
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// A key's bytes.
    pub fn key(&self, key: &K) -> Vec<u8> {
        bytes_of(key)
    }

    /// A value's bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Value`], where the type's `Serialize` fails.
    pub fn value(&self, value: &V) -> Result<Vec<u8>, Error> {
        postcard::to_stdvec(value).map_err(|error| self.wrong(error))
    }

    fn wrong(&self, why: impl fmt::Display) -> Error {
        Error::Value {
            map: self.map.name().to_owned(),
            why: why.to_string(),
        }
    }

    pub(crate) fn read(&self, bytes: &[u8]) -> Result<V, Error> {
        match postcard::take_from_bytes(bytes) {
            Ok((value, [])) => Ok(value),
            Ok(_) => Err(self.wrong("bytes are left over")),
            Err(error) => Err(self.wrong(error)),
        }
    }

    /// The key's value. A key may be looked up in a form that its type is borrowed as.
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
    /// [`Error::Value`], and as [`Map::get`].
    pub fn get<Q: KeyBytes + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
    {
        let bytes = self.map.get(bytes_of(key))?;
        bytes.map(|bytes| self.read(&bytes)).transpose()
    }

    /// Whether the key is present.
    ///
    /// # Errors
    ///
    /// As [`Map::contains`].
    pub fn contains<Q: KeyBytes + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.map.contains(bytes_of(key))
    }

    /// Adds the key if it is absent; `false` if it is present.
    pub fn insert(&self, key: &K, value: &V) -> Result<bool, Error> {
        self.map.insert(bytes_of(key), self.value(value)?)
    }

    /// Gives the key this value, whether it is there or not.
    pub fn upsert(&self, key: &K, value: &V) -> Result<(), Error> {
        self.map.upsert(bytes_of(key), self.value(value)?)
    }

    /// Removes the key; `false` if it is absent.
    pub fn remove<Q: KeyBytes + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.map.remove(bytes_of(key))
    }

    /// All entries in key order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Result<(K, V), Error>> {
        self.range(..)
    }

    /// The entries between two bounds, in key order.
    pub fn range(&self, keys: impl RangeBounds<K>) -> impl DoubleEndedIterator<Item = Result<(K, V), Error>> {
        self.map.range(bounds(keys)).map(|entry| self.entry(entry))
    }

    pub(crate) fn entry(&self, entry: Result<crate::Entry, Error>) -> Result<(K, V), Error> {
        let (key, value) = entry?;
        let key = K::read(&key).ok_or_else(|| self.wrong("a key of another type"))?;
        Ok((key, self.read(&value)?))
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
    use proptest::prelude::*;

    /// Keys are found by their borrowed forms, and only by the whole of them.
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

    /// The ends are those of the keys, not of their bytes read otherwise.
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

    fn in_order<K: Key + Ord + Clone + fmt::Debug>(one: &K, two: &K) {
        let (one_bytes, two_bytes) = (bytes_of(one), bytes_of(two));
        assert_eq!(K::read(&one_bytes).as_ref(), Some(one));
        assert_eq!(one_bytes.cmp(&two_bytes), one.cmp(two));
    }

    proptest! {
        /// Keys come back from their bytes, which are in the keys' order.
        #[test]
        fn bytes_are_in_the_order_of_keys(
            ints: ((u8, u32), (u8, u32)),
            signed: ((i8, i64), (i8, i64)),
            large: (i128, i128),
            text: (String, String),
            mixed: ((i16, String), (i16, String)),
            arrays: ([u8; 3], [u8; 3]),
        ) {
            in_order(&ints.0, &ints.1);
            in_order(&signed.0, &signed.1);
            in_order(&large.0, &large.1);
            in_order(&text.0, &text.1);
            in_order(&mixed.0, &mixed.1);
            in_order(&arrays.0, &arrays.1);
        }
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
