//! Iteration over the live entries of an expiring map.

use crate::expiry::expiring::Expiring;
use crate::{Entry, Error, Iter, KeyRange};
use std::iter::FusedIterator;

impl Expiring {
    /// Iterates over all live entries, like [`range`](Expiring::range); in the index's own order if it has [no key
    /// order](crate::IndexKind::is_ordered).
    pub fn iter(&self) -> ExpiringIter {
        self.range(..)
    }

    /// Iterates in key order over the entries between two bounds that are alive when the iterator reaches them. The
    /// first item is an error if the index has [no order](crate::IndexKind::is_ordered), unless both bounds are open
    /// (`..`).
    pub fn range(&self, keys: impl KeyRange) -> ExpiringIter {
        self.over(self.map().range(keys))
    }

    /// Iterates over the live entries whose keys start with `prefix`, like [`range`](Expiring::range).
    ///
    /// ```
    /// let sessions = wollemi::Expiring::new(wollemi::Db::anonymous()?.map("sessions")?);
    /// sessions.upsert("alice/1", "token", None)?;
    /// sessions.upsert("alice/2", "token", Some(std::time::Duration::ZERO))?;
    /// sessions.upsert("bob/1", "token", None)?;
    /// assert_eq!(sessions.prefix("alice/").count(), 1);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> ExpiringIter {
        self.over(self.map().prefix(prefix))
    }

    pub(super) fn over<I>(&self, entries: I) -> ExpiringIter<I> {
        ExpiringIter {
            map: self.clone(),
            entries,
        }
    }

    /// Returns a copy of the live entry with the smallest key; `None` if there is none. Reads past expired entries.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`Map::first`](crate::Map::first).
    pub fn first(&self) -> Result<Option<Entry>, Error> {
        self.map().index.order().require_keys()?;
        self.iter().next().transpose()
    }

    /// Returns a copy of the live entry with the largest key, like [`first`](Expiring::first).
    ///
    /// # Errors
    ///
    /// Those of [`first`](Expiring::first).
    pub fn last(&self) -> Result<Option<Entry>, Error> {
        self.map().index.order().require_keys()?;
        self.iter().next_back().transpose()
    }

    /// Returns the number of live entries, by visiting each entry. [`is_empty`](Expiring::is_empty) stops at the first
    /// live one.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`Map::len`](crate::Map::len).
    pub fn len(&self) -> Result<u64, Error> {
        self.iter().try_fold(0, |count, entry| entry.map(|_| count + 1))
    }

    /// Returns whether no entry is alive.
    ///
    /// # Errors
    ///
    /// Those of [`len`](Expiring::len).
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.iter().next().transpose()?.is_none())
    }
}

impl IntoIterator for &Expiring {
    type Item = Result<Entry, Error>;
    type IntoIter = ExpiringIter;
    fn into_iter(self) -> ExpiringIter {
        self.iter()
    }
}

/// A double-ended iterator over an [`Expiring`] map's live entries in key order, which owns what it yields and a handle
/// to the map. `I` is the iterator over the underlying bytes: [`Iter`] of a map, [`ViewIter`](crate::ViewIter) of a
/// view, or [`TransactionRange`](crate::TransactionRange), which borrows the transaction.
///
/// A value without an expiry header is an error, after which the iteration continues.
#[derive(Debug)]
pub struct ExpiringIter<I = Iter> {
    map: Expiring,
    entries: I,
}

impl<I: Iterator<Item = Result<Entry, Error>>> Iterator for ExpiringIter<I> {
    type Item = Result<Entry, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        let map = &self.map;
        self.entries.by_ref().find_map(|entry| map.alive(entry))
    }
}

impl<I: DoubleEndedIterator<Item = Result<Entry, Error>>> DoubleEndedIterator for ExpiringIter<I> {
    fn next_back(&mut self) -> Option<Self::Item> {
        let map = &self.map;
        self.entries.by_ref().rev().find_map(|entry| map.alive(entry))
    }
}

impl<I: FusedIterator<Item = Result<Entry, Error>>> FusedIterator for ExpiringIter<I> {}
