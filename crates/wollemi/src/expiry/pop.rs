//! Removing the first or last live entry of an expiring map.
//!
//! Each attempt looks at one entry, like an attempt of [`Map::pop_first`](crate::Map::pop_first). If the entry has
//! expired, it is removed by a write of its own, as the sweeper would remove it, and the next attempt follows. So each
//! expired entry costs one removal, and later pops do not read past it.

use crate::expiry::expiring::{Expiring, now, without_header};
use crate::{Durability, Entry, Error};
use index::Direction;
use std::cell::Cell;

impl Expiring {
    /// Removes the live entry with the smallest key and returns it; `None` if none is alive. Removes the expired
    /// entries before it, too, like a [`Sweeper`](crate::Sweeper).
    ///
    /// It runs as a transaction of its own, like [`Map::pop_first`](crate::Map::pop_first): no two threads get the same
    /// entry, and no live entry has a smaller key at the moment of the removal.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let offers = wollemi::Expiring::new(wollemi::Db::anonymous()?.map("offers")?);
    /// offers.upsert("1", "over", Some(Duration::ZERO))?;
    /// offers.upsert("2", "for an hour", Some(Duration::from_secs(3600)))?;
    /// offers.upsert("3", "for ever", None)?;
    /// assert_eq!(offers.pop_first()?, Some((b"2".to_vec(), b"for an hour".to_vec())));
    /// assert_eq!(offers.map().len()?, 1);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`Map::pop_first`](crate::Map::pop_first). The entry remains.
    pub fn pop_first(&self) -> Result<Option<Entry>, Error> {
        self.pop(Direction::Forward)
    }

    /// Removes the live entry with the largest key and returns it, as [`pop_first`](Expiring::pop_first) does with the
    /// smallest.
    ///
    /// # Errors
    ///
    /// Those of [`pop_first`](Expiring::pop_first).
    pub fn pop_last(&self) -> Result<Option<Entry>, Error> {
        self.pop(Direction::Reverse)
    }

    fn pop(&self, direction: Direction) -> Result<Option<Entry>, Error> {
        loop {
            let expired = Cell::new(None);
            let popped = self.map().pop(direction, &|(key, bytes)| {
                let is_alive = self.is_alive(bytes)?;
                expired.set((!is_alive).then(|| key.clone()));
                Ok(is_alive)
            })?;
            let Some(key) = expired.into_inner() else {
                return Ok(popped.map(without_header));
            };
            // An expired entry is absent in any case, so no thread waits until its removal is durable.
            self.with_durability(Durability::Eventual).expire(&key, now())?;
        }
    }
}
