//! Expiring entries in transactions.

use crate::expiry::expiring::{Expiring, WithLife, end_of, fill, is_over, life_of, now, split};
use crate::expiry::iter::ExpiringIter;
use crate::txn::range::TransactionRange;
use crate::txn::transaction::Transaction;
use crate::{Entry, Error, KeyRange, Media};
use index::Direction;
use std::time::Duration;

impl Expiring {
    /// Returns the value of a live key and its remaining life, as a transaction sees it. Expiry is checked when the key
    /// is read, not when the transaction commits.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`Transaction::get`].
    pub fn get_in<M: Media>(
        &self,
        tx: &Transaction<'_, M>,
        key: impl AsRef<[u8]>,
    ) -> Result<Option<WithLife>, Error> {
        match tx.get(self.map(), key)? {
            Some(bytes) => self.read(&bytes),
            None => Ok(None),
        }
    }

    /// Returns whether a transaction sees the key alive.
    ///
    /// # Errors
    ///
    /// Those of [`get_in`](Expiring::get_in).
    pub fn contains_in<M: Media>(
        &self,
        tx: &Transaction<'_, M>,
        key: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        Ok(self.get_in(tx, key)?.is_some())
    }

    /// Returns the values of many keys, in the keys' order, as a transaction sees them, like
    /// [`Transaction::multi_get`]; `None` for a key that is not alive.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`Transaction::multi_get`].
    pub fn multi_get_in<M: Media, K: AsRef<[u8]>>(
        &self,
        tx: &Transaction<'_, M>,
        keys: &[K],
    ) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.values(tx.multi_get(self.map(), keys)?)
    }

    /// Adds the key in a transaction unless it is alive there; returns `false` if it is.
    ///
    /// # Errors
    ///
    /// Those of [`get_in`](Expiring::get_in).
    pub fn insert_in<M: Media>(
        &self,
        tx: &mut Transaction<'_, M>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        life: Option<Duration>,
    ) -> Result<bool, Error> {
        let absent = !self.contains_in(tx, key.as_ref())?;
        if absent {
            self.upsert_in(tx, key, value, life)?;
        }
        Ok(absent)
    }

    /// Sets the key's value and, if given, its life, in a transaction.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let db = wollemi::Db::anonymous()?;
    /// let (sessions, log) = (wollemi::Expiring::new(db.map("sessions")?), db.map("log")?);
    /// db.transact(|tx| {
    ///     if sessions.get_in(tx, "alice")?.is_none() {
    ///         sessions.upsert_in(tx, "alice", "token", Some(Duration::from_secs(60)))?;
    ///         tx.upsert(&log, "alice", "logged in")?;
    ///     }
    ///     Ok::<_, wollemi::Error>(())
    /// })?;
    /// assert_eq!(sessions.get("alice")?, Some(b"token".to_vec()));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::upsert`].
    pub fn upsert_in<M: Media>(
        &self,
        tx: &mut Transaction<'_, M>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        life: Option<Duration>,
    ) -> Result<(), Error> {
        tx.upsert(self.map(), key, self.bytes(value, life))
    }

    /// Removes the key in a transaction; returns `false` if it was not alive.
    ///
    /// # Errors
    ///
    /// Those of [`get_in`](Expiring::get_in).
    pub fn remove_in<M: Media>(
        &self,
        tx: &mut Transaction<'_, M>,
        key: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        let alive = self.get_in(tx, key.as_ref())?.is_some();
        tx.remove(self.map(), key)?;
        Ok(alive)
    }

    /// Replaces the value and the life of a key in a transaction if it is alive there; returns `false` if it is not.
    ///
    /// # Errors
    ///
    /// Those of [`get_in`](Expiring::get_in).
    pub fn update_in<M: Media>(
        &self,
        tx: &mut Transaction<'_, M>,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        life: Option<Duration>,
    ) -> Result<bool, Error> {
        let alive = self.contains_in(tx, key.as_ref())?;
        if alive {
            self.upsert_in(tx, key, value, life)?;
        }
        Ok(alive)
    }

    /// Replaces the life of a key in a transaction, from now on, or makes it permanent; returns `false` if the key is
    /// not alive there.
    ///
    /// # Errors
    ///
    /// Those of [`get_in`](Expiring::get_in).
    pub fn touch_in<M: Media>(
        &self,
        tx: &mut Transaction<'_, M>,
        key: impl AsRef<[u8]>,
        life: Option<Duration>,
    ) -> Result<bool, Error> {
        let found = self.get_in(tx, key.as_ref())?;
        if let Some((value, _)) = &found {
            self.upsert_in(tx, key, value, life)?;
        }
        Ok(found.is_some())
    }

    /// Replaces a key's value and remaining life in a transaction by the closure's result, and returns the new ones.
    /// The closure gets `None` if the key is not alive there; if it returns `None`, the key is removed. Counts as a
    /// read.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// let db = wollemi::Db::anonymous()?;
    /// let (requests, log) = (wollemi::Expiring::new(db.map("requests")?), db.map("log")?);
    /// let count = db.transact(|tx| {
    ///     tx.upsert(&log, "alice", "asked")?;
    ///     requests.edit_with_in(tx, "alice", |current| match current {
    ///         Some((count, left)) => Some((vec![count[0].saturating_add(1)], left)),
    ///         None => Some((vec![1], Some(Duration::from_secs(60)))),
    ///     })
    /// })?;
    /// assert!(count.is_some_and(|(count, left)| count == [1] && left.is_some()));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`get_in`](Expiring::get_in): the key is unchanged.
    pub fn edit_with_in<M: Media>(
        &self,
        tx: &mut Transaction<'_, M>,
        key: impl AsRef<[u8]>,
        function: impl FnOnce(Option<(&[u8], Option<Duration>)>) -> Option<WithLife>,
    ) -> Result<Option<WithLife>, Error> {
        let key = key.as_ref();
        let bytes = tx.get(self.map(), key)?;
        let found = bytes.as_deref().map(|bytes| split(self.map().name(), bytes));
        let now = now();
        let alive = found.transpose()?.filter(|(end, _)| !is_over(*end, now));
        let new = function(alive.map(|(end, value)| (value, life_of(end, now))));
        match &new {
            Some((value, life)) => {
                let mut put = Vec::new();
                fill(&mut put, end_of(*life, now), value);
                tx.upsert(self.map(), key, put)?;
            }
            None => drop(tx.remove(self.map(), key)?),
        }
        Ok(new)
    }

    /// Returns the live entry with the smallest key, as a transaction sees it; `None` if it sees none. Reads past
    /// expired entries. These, the entry and the gaps before it count as read.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`Transaction::first`].
    pub fn first_in<M: Media>(&self, tx: &Transaction<'_, M>) -> Result<Option<Entry>, Error> {
        self.over(tx.rest(self.map())?).next().transpose()
    }

    /// Returns the live entry with the largest key, as a transaction sees it, like [`first_in`](Expiring::first_in).
    ///
    /// # Errors
    ///
    /// Those of [`first_in`](Expiring::first_in).
    pub fn last_in<M: Media>(&self, tx: &Transaction<'_, M>) -> Result<Option<Entry>, Error> {
        self.over(tx.rest(self.map())?).next_back().transpose()
    }

    /// Removes the live entry with the smallest key in a transaction and returns it; `None` if the transaction sees
    /// none. Removes the expired entries before it, too, so that no later call reads them: they are among the
    /// transaction's changes.
    ///
    /// # Errors
    ///
    /// Those of [`first_in`](Expiring::first_in). An entry without an expiry header remains.
    pub fn pop_first_in<M: Media>(&self, tx: &mut Transaction<'_, M>) -> Result<Option<Entry>, Error> {
        while let Some(entry) = tx.first(self.map())? {
            let alive = self.alive(Ok(entry.clone())).transpose()?;
            tx.pop(self.map(), Some(entry), Direction::Forward);
            if alive.is_some() {
                return Ok(alive);
            }
        }
        Ok(None)
    }

    /// Removes the live entry with the largest key in a transaction and returns it, as
    /// [`pop_first_in`](Expiring::pop_first_in) does with the smallest.
    ///
    /// # Errors
    ///
    /// Those of [`pop_first_in`](Expiring::pop_first_in).
    pub fn pop_last_in<M: Media>(&self, tx: &mut Transaction<'_, M>) -> Result<Option<Entry>, Error> {
        while let Some(entry) = tx.last(self.map())? {
            let alive = self.alive(Ok(entry.clone())).transpose()?;
            tx.pop(self.map(), Some(entry), Direction::Reverse);
            if alive.is_some() {
                return Ok(alive);
            }
        }
        Ok(None)
    }

    /// Iterates in key order over the entries between two bounds that are alive when the iterator reaches them, as a
    /// transaction sees them. The iterator borrows the transaction alone, not the map and the bounds.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::range`].
    pub fn range_in<'t, M: Media>(
        &self,
        tx: &'t Transaction<'_, M>,
        keys: impl KeyRange,
    ) -> Result<ExpiringIter<TransactionRange<'t>>, Error> {
        Ok(self.over(tx.range(self.map(), keys)?))
    }

    /// Iterates over the entries whose keys start with `prefix`, like [`range_in`](Expiring::range_in).
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::prefix`].
    pub fn prefix_in<'t, M: Media>(
        &self,
        tx: &'t Transaction<'_, M>,
        prefix: impl AsRef<[u8]>,
    ) -> Result<ExpiringIter<TransactionRange<'t>>, Error> {
        Ok(self.over(tx.prefix(self.map(), prefix)?))
    }
}
