//! The first and the last entry of a view, and their number.

use crate::read::snapshot::View;
use crate::{Entry, Error};

impl View {
    /// Returns a copy of the entry that had the smallest key; `None` if the map was empty.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let map = db.map("letters")?;
    /// map.load([("a", "1"), ("b", "2")])?;
    /// let snapshot = db.snapshot()?;
    /// map.pop_first()?;
    /// let then = snapshot.view(&map)?;
    /// assert_eq!(then.first()?, Some((b"a".to_vec(), b"1".to_vec())));
    /// assert_eq!((then.len()?, map.len()?), (2, 1));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::SnapshotOutgrown`]. [`Error::Index`] if the pool is damaged, or if the index has [no
    /// order](crate::IndexKind::is_ordered).
    pub fn first(&self) -> Result<Option<Entry>, Error> {
        self.map.index.order().require_keys()?;
        self.iter().next().transpose()
    }

    /// Returns a copy of the entry that had the largest key, like [`first`](View::first).
    ///
    /// # Errors
    ///
    /// Those of [`first`](View::first).
    pub fn last(&self) -> Result<Option<Entry>, Error> {
        self.map.index.order().require_keys()?;
        self.iter().next_back().transpose()
    }

    /// Returns the number of entries that the map had, by visiting each. [`is_empty`](View::is_empty) visits one, and
    /// the keys before it that were added since.
    ///
    /// # Errors
    ///
    /// [`Error::SnapshotOutgrown`], and [`Error::Index`] if the pool is damaged.
    pub fn len(&self) -> Result<u64, Error> {
        self.iter().try_fold(0, |count, entry| entry.map(|_| count + 1))
    }

    /// Returns whether the map had no entries.
    ///
    /// # Errors
    ///
    /// Those of [`len`](View::len).
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.iter().next().transpose()?.is_none())
    }
}
