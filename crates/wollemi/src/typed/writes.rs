//! The remaining operations of a map, on typed maps.

use super::{Key, KeyBytes, TypedMap, bytes_of};
use crate::Error;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Borrow;

impl<K: Key, V: Serialize + DeserializeOwned> TypedMap<K, V> {
    /// Looks up many keys together and returns their values, like [`Map::multi_get`](crate::Map::multi_get).
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Map::multi_get`](crate::Map::multi_get).
    pub fn multi_get<'q, Q: KeyBytes + ?Sized + 'q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
    ) -> Result<Vec<Option<V>>, Error>
    where
        K: Borrow<Q>,
    {
        let keys: Vec<_> = keys.into_iter().map(bytes_of).collect();
        self.read_all(self.map.multi_get(&keys)?)
    }

    /// Replaces the key's value if it is present; returns `false` if it is absent.
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Map::update`](crate::Map::update).
    pub fn update(&self, key: &K, value: &V) -> Result<bool, Error> {
        self.map.update(bytes_of(key), self.value(value)?)
    }

    /// Replaces `expected` by `new`, each of which may be `None` for an absent key. Returns `false`, with nothing
    /// changed, if the key's value differs from `expected`. Values are compared as bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Map::compare_and_swap`](crate::Map::compare_and_swap).
    pub fn compare_and_swap(&self, key: &K, expected: Option<&V>, new: Option<&V>) -> Result<bool, Error> {
        let bytes = |value: Option<&V>| value.map(|value| self.value(value)).transpose();
        self.map
            .compare_and_swap(bytes_of(key), bytes(expected)?, bytes(new)?)
    }

    /// Replaces the key's value by the closure's result, atomically, and returns the new value. `None`, as argument or
    /// result, means that the key is absent. The closure runs under the lock on the key and may run more than once,
    /// like that of [`Map::edit_with`](crate::Map::edit_with).
    ///
    /// ```
    /// let visits = wollemi::TypedMap::<String, u64>::new(wollemi::Db::anonymous()?.map("visits")?);
    /// let alice = "alice".to_owned();
    /// visits.edit_with(&alice, |count| Some(count.unwrap_or(0) + 1))?;
    /// assert_eq!(visits.edit_with(&alice, |count| Some(count.unwrap_or(0) + 1))?, Some(2));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if the key's value does not decode, or the new one cannot be encoded: the key is unchanged.
    /// Those of [`Map::edit_with`](crate::Map::edit_with).
    pub fn edit_with(
        &self,
        key: &K,
        mut function: impl FnMut(Option<V>) -> Option<V>,
    ) -> Result<Option<V>, Error> {
        let mut decided = Ok(None);
        self.map.edit_with(bytes_of(key), |current| {
            let mut decide = || -> Result<_, Error> {
                let old = current.map(|bytes| self.read(bytes)).transpose()?;
                let new = function(old);
                let bytes = new.as_ref().map(|value| self.value(value)).transpose()?;
                Ok((new, bytes))
            };
            match decide() {
                Ok((new, bytes)) => {
                    decided = Ok(new);
                    bytes
                }
                Err(error) => {
                    decided = Err(error);
                    current.map(<[u8]>::to_vec)
                }
            }
        })?;
        decided
    }

    /// Upserts many entries and returns their number, like [`Map::load`](crate::Map::load).
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Map::load`](crate::Map::load); earlier entries are in the map.
    pub fn load<'e>(&self, entries: impl IntoIterator<Item = (&'e K, &'e V)>) -> Result<u64, Error>
    where
        K: 'e,
        V: 'e,
    {
        let mut unfit = Ok(());
        let bytes = entries.into_iter().map_while(|(key, value)| {
            let value = self.value(value).map_err(|error| unfit = Err(error)).ok()?;
            Some((bytes_of(key), value))
        });
        let loaded = self.map.load(bytes)?;
        unfit.map(|()| loaded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each operation does the same as on a map of bytes.
    #[test]
    fn writes_are_those_of_maps() -> Result<(), Error> {
        let stock = TypedMap::<String, i32>::new(crate::Db::anonymous()?.map("stock")?);
        let [apples, pears] = ["apples", "pears"].map(str::to_owned);
        assert!(!stock.update(&apples, &1)?);
        assert_eq!(stock.load([(&apples, &1), (&pears, &2)])?, 2);
        assert!(stock.update(&apples, &3)?);
        assert!(!stock.compare_and_swap(&apples, Some(&1), None)?);
        assert!(stock.compare_and_swap(&apples, Some(&3), Some(&4))?);
        assert!(stock.compare_and_swap(&pears, Some(&2), None)?);
        assert_eq!(stock.multi_get(["apples", "pears"])?, [Some(4), None]);
        assert_eq!(
            stock.edit_with(&apples, |count| count.map(|count| -count))?,
            Some(-4)
        );
        assert_eq!(stock.edit_with(&apples, |_| None)?, None);
        assert!(!stock.contains("apples")?);
        Ok(())
    }

    /// An edit of a value that does not decode changes nothing and returns an error.
    #[test]
    fn what_cannot_be_read_is_not_edited() -> Result<(), Error> {
        let map = crate::Db::anonymous()?.map("m")?;
        let numbers = TypedMap::<u8, String>::new(map.clone());
        map.upsert([7], [0xff; 3])?;
        assert!(numbers.edit_with(&7, |_| None).is_err());
        assert_eq!(map.get([7])?, Some(vec![0xff; 3]));
        Ok(())
    }
}
