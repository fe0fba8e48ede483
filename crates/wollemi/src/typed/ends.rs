//! The first and the last entry of a typed map.

use super::{Key, TypedMap, TypedView};
use crate::Error;
use index::Direction;
use serde::Serialize;
use serde::de::DeserializeOwned;

impl<K: Key, V: Serialize + DeserializeOwned> TypedMap<K, V> {
    /// Returns the entry with the smallest key; `None` if the map is empty.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let jobs = wollemi::TypedMap::<u64, String>::new(db.map("jobs")?);
    /// jobs.upsert(&7, &"sweep".to_owned())?;
    /// jobs.upsert(&300, &"mop".to_owned())?;
    /// assert_eq!(jobs.last()?, Some((300, "mop".to_owned())));
    /// assert_eq!(jobs.pop_first()?, Some((7, "sweep".to_owned())));
    /// assert_eq!(jobs.len()?, 1);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`Map::first`](crate::Map::first).
    pub fn first(&self) -> Result<Option<(K, V)>, Error> {
        self.map.first()?.map(|entry| self.entry(Ok(entry))).transpose()
    }

    /// Returns the entry with the largest key; `None` if the map is empty.
    ///
    /// # Errors
    ///
    /// Those of [`first`](TypedMap::first).
    pub fn last(&self) -> Result<Option<(K, V)>, Error> {
        self.map.last()?.map(|entry| self.entry(Ok(entry))).transpose()
    }

    /// Removes the entry with the smallest key and returns it, as [`Map::pop_first`](crate::Map::pop_first) does.
    ///
    /// # Errors
    ///
    /// [`Error::Value`] if the entry does not decode; it then remains. Those of
    /// [`Map::pop_first`](crate::Map::pop_first).
    pub fn pop_first(&self) -> Result<Option<(K, V)>, Error> {
        self.pop(Direction::Forward)
    }

    fn pop(&self, direction: Direction) -> Result<Option<(K, V)>, Error> {
        // An entry that does not decode remains in the map.
        let check = |entry: &crate::Entry| self.entry(Ok(entry.clone())).map(|_| true);
        let entry = self.map.pop(direction, &check)?;
        entry.map(|entry| self.entry(Ok(entry))).transpose()
    }

    /// Removes the entry with the largest key and returns it, as [`Map::pop_last`](crate::Map::pop_last) does.
    ///
    /// # Errors
    ///
    /// Those of [`pop_first`](TypedMap::pop_first).
    pub fn pop_last(&self) -> Result<Option<(K, V)>, Error> {
        self.pop(Direction::Reverse)
    }

    /// Returns the number of entries by visiting each, like [`Map::len`](crate::Map::len).
    ///
    /// # Errors
    ///
    /// Those of [`Map::len`](crate::Map::len).
    pub fn len(&self) -> Result<u64, Error> {
        self.map.len()
    }

    /// Returns whether the map has no entries.
    ///
    /// # Errors
    ///
    /// Those of [`Map::is_empty`](crate::Map::is_empty).
    pub fn is_empty(&self) -> Result<bool, Error> {
        self.map.is_empty()
    }
}

impl<K: Key, V: Serialize + DeserializeOwned> TypedView<K, V> {
    /// Returns the entry that had the smallest key; `None` if the map was empty.
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`View::first`](crate::View::first).
    pub fn first(&self) -> Result<Option<(K, V)>, Error> {
        let entry = self.view.first()?;
        entry.map(|entry| self.map.entry(Ok(entry))).transpose()
    }

    /// Returns the entry that had the largest key; `None` if the map was empty.
    ///
    /// # Errors
    ///
    /// Those of [`first`](TypedView::first).
    pub fn last(&self) -> Result<Option<(K, V)>, Error> {
        let entry = self.view.last()?;
        entry.map(|entry| self.map.entry(Ok(entry))).transpose()
    }

    /// Returns the number of entries that the map had, by visiting each.
    ///
    /// # Errors
    ///
    /// Those of [`View::len`](crate::View::len).
    pub fn len(&self) -> Result<u64, Error> {
        self.view.len()
    }

    /// Returns whether the map had no entries.
    ///
    /// # Errors
    ///
    /// Those of [`View::is_empty`](crate::View::is_empty).
    pub fn is_empty(&self) -> Result<bool, Error> {
        self.view.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An entry of other types is an error, and remains.
    #[test]
    fn what_cannot_be_read_is_not_taken() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let map = db.map("jobs")?;
        let jobs = TypedMap::<u64, String>::new(map.clone());
        map.upsert([0; 8], [0xff; 3])?;
        map.upsert([0xff; 8], [0xff; 3])?;
        assert!(jobs.pop_first().is_err() && jobs.pop_last().is_err());
        assert_eq!(jobs.len()?, 2);
        Ok(())
    }
}
