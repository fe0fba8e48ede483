//! Expiring entries in transactions.

use crate::expiry::expiring::{Expiring, WithLife};
use crate::txn::transaction::Transaction;
use crate::{Error, KeyRange, Media};
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

    /// Iterates in key order over the entries between two bounds that are alive when the iterator reaches them, as a
    /// transaction sees them.
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::range`].
    pub fn range_in<'t, M: Media>(
        &'t self,
        tx: &'t Transaction<'_, M>,
        keys: impl KeyRange,
    ) -> Result<impl DoubleEndedIterator<Item = Result<crate::Entry, Error>> + 't, Error> {
        let entries = tx.range(self.map(), keys)?;
        Ok(entries.filter_map(|entry| self.alive(entry)))
    }

    /// Iterates over the entries whose keys start with `prefix`, like [`range_in`](Expiring::range_in).
    ///
    /// # Errors
    ///
    /// Those of [`Transaction::prefix`].
    pub fn prefix_in<'t, M: Media>(
        &'t self,
        tx: &'t Transaction<'_, M>,
        prefix: impl AsRef<[u8]>,
    ) -> Result<impl DoubleEndedIterator<Item = Result<crate::Entry, Error>> + 't, Error> {
        self.range_in(tx, index::prefix_bounds(prefix.as_ref()))
    }
}
