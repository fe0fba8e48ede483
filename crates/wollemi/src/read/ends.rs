//! The first and the last entry of a map.

use crate::entry::Entry;
use crate::read::merge::Read;
use crate::{Error, Map};
use index::Direction;
use std::ops::Bound;

impl Map {
    /// Returns a copy of the entry with the smallest key; `None` if the map is empty.
    ///
    /// ```
    /// let map = wollemi::Db::anonymous()?.map("letters")?;
    /// assert_eq!(map.first()?, None);
    /// map.load([("a", "1"), ("b", "2"), ("c", "3")])?;
    /// assert_eq!(map.first()?, Some((b"a".to_vec(), b"1".to_vec())));
    /// assert_eq!(map.last()?, Some((b"c".to_vec(), b"3".to_vec())));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if the pool is damaged, or if the index has [no order](crate::IndexKind::is_ordered).
    pub fn first(&self) -> Result<Option<Entry>, Error> {
        self.end(Direction::Forward)
    }

    /// Returns a copy of the entry with the largest key; `None` if the map is empty.
    ///
    /// # Errors
    ///
    /// Those of [`first`](Map::first).
    pub fn last(&self) -> Result<Option<Entry>, Error> {
        self.end(Direction::Reverse)
    }

    fn end(&self, direction: Direction) -> Result<Option<Entry>, Error> {
        self.index.order().require_keys()?;
        let read = Read::batch(&*self.index, (Bound::Unbounded, Bound::Unbounded), direction, 1)?;
        Ok(read.entries.into_iter().next())
    }

    /// Returns the number of entries, like [`count`](Map::count), under the name that collections use. The map keeps no
    /// counter: the call visits each entry. [`is_empty`](Map::is_empty) visits at most one.
    ///
    /// # Errors
    ///
    /// Those of [`count`](Map::count).
    pub fn len(&self) -> Result<u64, Error> {
        self.count()
    }
}
