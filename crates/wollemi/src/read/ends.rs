//! Both ends of a map: reading and taking its first and its last entry.

use crate::entry::Entry;
use crate::read::merge::Read;
use crate::{Error, Map};
use index::Direction;
use std::ops::Bound;

impl Map {
    /// The entry with the least key, copied; `None` if the map is empty.
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
    /// [`Error::Index`] for a damaged pool.
    pub fn first(&self) -> Result<Option<Entry>, Error> {
        self.end(Direction::Forward)
    }

    /// The entry with the greatest key, copied; `None` if the map is empty.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] for a damaged pool.
    pub fn last(&self) -> Result<Option<Entry>, Error> {
        self.end(Direction::Reverse)
    }

    fn end(&self, direction: Direction) -> Result<Option<Entry>, Error> {
        let read = Read::some(&*self.index, (Bound::Unbounded, Bound::Unbounded), direction, 1)?;
        Ok(read.entries.into_iter().next())
    }

    /// Removes the entry with the least key and returns it; `None` if the map is empty. With keys in the order of
    /// arrival or of priority, the map is a queue.
    ///
    /// It runs as a transaction of its own ([`Db::transact`](crate::Db::transact)) does: the entry is the first one at
    /// the moment at which it is removed, and no two threads get the same. Threads that take from the same end conflict
    /// and try again, so they do not get faster by being more.
    ///
    /// ```
    /// let jobs = wollemi::Db::anonymous()?.map("jobs")?;
    /// jobs.load([("1", "sweep"), ("2", "mop"), ("3", "dust")])?;
    /// assert_eq!(jobs.pop_first()?, Some((b"1".to_vec(), b"sweep".to_vec())));
    /// assert_eq!(jobs.pop_last()?, Some((b"3".to_vec(), b"dust".to_vec())));
    /// assert_eq!(jobs.len()?, 1);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] where other writers changed the end of the map during each of the tries of the default
    /// [`Retry`](crate::Retry). [`Error::Index`] for a pool that is damaged or opened to be read. The entry is still
    /// there.
    pub fn pop_first(&self) -> Result<Option<Entry>, Error> {
        self.index.pop(self, Direction::Forward, &|_| Ok(()))
    }

    /// Removes the entry with the greatest key and returns it, as [`pop_first`](Map::pop_first) does with the least.
    ///
    /// # Errors
    ///
    /// As [`pop_first`](Map::pop_first).
    pub fn pop_last(&self) -> Result<Option<Entry>, Error> {
        self.index.pop(self, Direction::Reverse, &|_| Ok(()))
    }

    /// The number of entries: [`count`](Map::count), by the name that collections give it. No number is kept: the call
    /// visits each entry. [`is_empty`](Map::is_empty) looks for one entry only.
    ///
    /// # Errors
    ///
    /// As [`count`](Map::count).
    pub fn len(&self) -> Result<u64, Error> {
        self.count()
    }
}
