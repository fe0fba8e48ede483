//! The remaining operations of expiring maps on keys, and handles with another durability.

use crate::expiry::expiring::{Expiring, WithLife, end_of, fill, is_over, life_of, now};
use crate::{Durability, Error};
use index::Action;
use std::time::Duration;

impl Expiring {
    /// Returns a handle whose writes have this durability, like
    /// [`Map::with_durability`](crate::Map::with_durability).
    pub fn with_durability(&self, durability: Durability) -> Expiring {
        Expiring::new(self.map().with_durability(durability))
    }

    /// Returns whether the key is alive.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`Map::contains`](crate::Map::contains).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let guard = heap::pin();
        match self.map().index.get(key.as_ref(), &guard)? {
            Some(bytes) => self.is_alive(&bytes),
            None => Ok(false),
        }
    }

    /// Returns copies of the values of many keys, in the keys' order, like
    /// [`Map::multi_get`](crate::Map::multi_get); `None` for a key that is not alive.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`Map::multi_get`](crate::Map::multi_get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.values(self.map().reader().multi_get(keys)?)
    }

    /// Upserts many entries with their lives and returns their number, like [`Map::load`](crate::Map::load).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let sessions = wollemi::Expiring::new(wollemi::Db::anonymous()?.map("sessions")?);
    /// let hour = Some(Duration::from_secs(3600));
    /// assert_eq!(sessions.load([("alice", "token", hour), ("bob", "token", None)])?, 2);
    /// assert_eq!(sessions.len()?, 2);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Map::load`](crate::Map::load); earlier entries are in the map.
    pub fn load<K, V>(
        &self,
        entries: impl IntoIterator<Item = (K, V, Option<Duration>)>,
    ) -> Result<u64, Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let entries = entries.into_iter();
        self.map()
            .load(entries.map(|(key, value, life)| (key, self.bytes(value, life))))
    }

    /// Replaces the value and the life of a live key; returns `false` if the key is not alive.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`Map::update`](crate::Map::update).
    pub fn update(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        life: Option<Duration>,
    ) -> Result<bool, Error> {
        let value = value.as_ref();
        let action = self.change(key.as_ref(), |found, put| {
            let now = now();
            match found {
                Some((end, _)) if !is_over(end, now) => {
                    fill(put, end_of(life, now), value);
                    Action::Put
                }
                _ => Action::Keep,
            }
        })?;
        Ok(action == Action::Put)
    }

    /// Replaces a key's value and remaining life by the closure's result, atomically, and returns the new ones. The
    /// closure gets `None` if the key is not alive; if it returns `None`, the key is removed. It runs under the lock on
    /// the key and may run more than once, like that of [`Map::edit_with`](crate::Map::edit_with).
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// // At most two requests a minute: the first begins the minute, the others leave it as it is.
    /// let requests = wollemi::Expiring::new(wollemi::Db::anonymous()?.map("requests")?);
    /// let mut may_pass = |who: &str| -> Result<bool, wollemi::Error> {
    ///     let count = requests.edit_with(who, |current| match current {
    ///         Some((count, left)) => Some((vec![count[0].saturating_add(1)], left)),
    ///         None => Some((vec![1], Some(Duration::from_secs(60)))),
    ///     })?;
    ///     Ok(count.is_some_and(|(count, _)| count[0] <= 2))
    /// };
    /// assert!(may_pass("alice")? && may_pass("alice")? && !may_pass("alice")?);
    /// assert!(may_pass("bob")?);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`]: the key is unchanged. Those of [`Map::edit_with`](crate::Map::edit_with).
    pub fn edit_with(
        &self,
        key: impl AsRef<[u8]>,
        mut function: impl FnMut(Option<(&[u8], Option<Duration>)>) -> Option<WithLife>,
    ) -> Result<Option<WithLife>, Error> {
        let mut decided = None;
        self.change(key.as_ref(), |found, put| {
            let now = now();
            let alive = found.filter(|(end, _)| !is_over(*end, now));
            decided = function(alive.map(|(end, value)| (value, life_of(end, now))));
            match (&decided, found) {
                (Some((value, life)), _) => {
                    fill(put, end_of(*life, now), value);
                    Action::Put
                }
                (None, Some(_)) => Action::Remove,
                (None, None) => Action::Keep,
            }
        })?;
        Ok(decided)
    }

    /// Replaces `expected` by `new`, each of which may be `None` for a key that is not alive; a new value gets this
    /// life. Returns `false`, with nothing changed, if the key's value differs from `expected`.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`Map::compare_and_swap`](crate::Map::compare_and_swap).
    pub fn compare_and_swap<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<V>,
        new: Option<V>,
        life: Option<Duration>,
    ) -> Result<bool, Error> {
        let expected = expected.as_ref().map(V::as_ref);
        let mut swapped = false;
        self.change(key.as_ref(), |found, put| {
            let now = now();
            let alive = found.filter(|(end, _)| !is_over(*end, now));
            swapped = alive.map(|(_, value)| value) == expected;
            match (&new, found) {
                (Some(new), _) if swapped => {
                    fill(put, end_of(life, now), new.as_ref());
                    Action::Put
                }
                (None, Some(_)) if swapped => Action::Remove,
                _ => Action::Keep,
            }
        })?;
        Ok(swapped)
    }
}
