//! Removing the first or last entry of a map, as a transaction.
//!
//! The entry is read together with the gap before it, so the commit fails if a key was put into the gap meanwhile. An
//! empty map is read as one gap.

use crate::entry::Entry;
use crate::read::merge::Read;
use crate::write::map_index::{KeyState, Plan, RangeRead};
use crate::{Error, Map};
use index::Direction;
use std::ops::Bound;

impl Map {
    /// Removes the entry with the smallest key and returns it; `None` if the map is empty. With keys in order of
    /// arrival or priority, the map is a queue.
    ///
    /// It runs as a transaction of its own ([`Db::transact`](crate::Db::transact)): the entry is the first one at the
    /// moment of its removal, and no two threads get the same. Threads that pop from the same end conflict and retry,
    /// so more threads are not faster.
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
    /// [`Error::Conflict`] if other writers changed the end of the map during each attempt of the default
    /// [`Retry`](crate::Retry). [`Error::Index`] if the pool is damaged or opened read-only, or if the index has [no
    /// order](crate::IndexKind::is_ordered). The entry remains.
    pub fn pop_first(&self) -> Result<Option<Entry>, Error> {
        self.pop(Direction::Forward, &|_| Ok(true))
    }

    /// Removes the entry with the largest key and returns it, as [`pop_first`](Map::pop_first) does with the smallest.
    ///
    /// # Errors
    ///
    /// Those of [`pop_first`](Map::pop_first).
    pub fn pop_last(&self) -> Result<Option<Entry>, Error> {
        self.pop(Direction::Reverse, &|_| Ok(true))
    }

    /// Removes and returns the first entry in this direction if `check` accepts it. If not, or with an error, the entry
    /// remains.
    pub(crate) fn pop(
        &self,
        direction: Direction,
        check: &dyn Fn(&Entry) -> Result<bool, Error>,
    ) -> Result<Option<Entry>, Error> {
        self.index.order().require_keys()?;
        let mut popped = Ok(None);
        self.index.commit(&mut || {
            let all = (Bound::Unbounded, Bound::Unbounded);
            let read = Read::batch(self.index.bare(), all, direction, 1)?;
            let (lower, upper) = read.covered(all, direction)?;
            let range = RangeRead {
                map: self.index.clone(),
                lower: lower.map(<[u8]>::to_vec),
                upper: upper.map(<[u8]>::to_vec),
                entries: read.entries.clone(),
            };
            let first = read.entries.into_iter().next();
            popped = match first {
                Some(entry) => check(&entry).map(|accepts| accepts.then_some(entry)),
                None => Ok(None),
            };
            // If `check` refuses the entry, the plan only verifies that it was there.
            let changes = match &popped {
                Ok(Some((key, _))) => [KeyState::new(&self.index, key, None)].into(),
                _ => Default::default(),
            };
            Ok(Plan {
                changes,
                ranges: [range].into(),
                durability: self.durability,
                ..Plan::default()
            })
        })?;
        popped
    }
}
