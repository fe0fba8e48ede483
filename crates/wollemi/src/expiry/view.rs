//! Views of expiring maps in snapshots.

use crate::expiry::expiring::{Expiring, WithLife};
use crate::expiry::iter::ExpiringIter;
use crate::{Entry, Error, KeyRange, Media, Snapshot, View, ViewIter};

/// An [`Expiring`] map as it was when a snapshot was taken. See [`Expiring::view`].
///
/// Lives continue to run: an entry that has expired since that moment is absent, and a remaining life is that of the
/// moment of the read.
#[derive(Clone, Debug)]
pub struct ExpiringView {
    map: Expiring,
    view: View,
}

impl Expiring {
    /// Returns the map as it was when the snapshot was taken, without the entries that have expired since.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let sessions = wollemi::Expiring::new(db.map("sessions")?);
    /// sessions.upsert("alice", "token", None)?;
    /// let snapshot = db.snapshot()?;
    /// sessions.remove("alice")?;
    /// assert_eq!(sessions.view(&snapshot)?.get("alice")?, Some(b"token".to_vec()));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Snapshot::view`].
    pub fn view<M: Media>(&self, snapshot: &Snapshot<M>) -> Result<ExpiringView, Error> {
        Ok(ExpiringView {
            map: self.clone(),
            view: snapshot.view(self.map())?,
        })
    }
}

impl ExpiringView {
    /// Returns a copy of the value that a live key had.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`View::get`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.get_with_life(key)?.map(|(value, _)| value))
    }

    /// Returns a copy of the value that a live key had, and its remaining life; `None`: it never expires.
    ///
    /// # Errors
    ///
    /// Those of [`get`](ExpiringView::get).
    pub fn get_with_life(&self, key: impl AsRef<[u8]>) -> Result<Option<WithLife>, Error> {
        match self.view.get(key)? {
            Some(bytes) => self.map.read(&bytes),
            None => Ok(None),
        }
    }

    /// Returns whether the key was present and is alive.
    ///
    /// # Errors
    ///
    /// Those of [`get`](ExpiringView::get).
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.get_with_life(key)?.is_some())
    }

    /// Returns copies of the values that many keys had, in the keys' order, like [`View::multi_get`]; `None` for a key
    /// that is not alive.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`View::multi_get`].
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.map.values(self.view.multi_get(keys)?)
    }

    /// Iterates over all live entries, like [`range`](ExpiringView::range); in the index's own order if it has [no key
    /// order](crate::IndexKind::is_ordered).
    pub fn iter(&self) -> ExpiringIter<ViewIter> {
        self.map.over(self.view.iter())
    }

    /// Iterates in key order over the entries between two bounds that are alive when the iterator reaches them, like
    /// [`View::range`].
    pub fn range(&self, keys: impl KeyRange) -> ExpiringIter<ViewIter> {
        self.map.over(self.view.range(keys))
    }

    /// Iterates over the live entries whose keys start with `prefix`, like [`range`](ExpiringView::range).
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> ExpiringIter<ViewIter> {
        self.map.over(self.view.prefix(prefix))
    }

    /// Returns a copy of the live entry that had the smallest key; `None` if there is none. Reads past expired entries.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`View::first`].
    pub fn first(&self) -> Result<Option<Entry>, Error> {
        self.map.map().index.order().require_keys()?;
        self.iter().next().transpose()
    }

    /// Returns a copy of the live entry that had the largest key, like [`first`](ExpiringView::first).
    ///
    /// # Errors
    ///
    /// Those of [`first`](ExpiringView::first).
    pub fn last(&self) -> Result<Option<Entry>, Error> {
        self.map.map().index.order().require_keys()?;
        self.iter().next_back().transpose()
    }

    /// Returns the number of live entries, by visiting each entry that the map had.
    ///
    /// # Errors
    ///
    /// [`Error::NotExpiring`], and those of [`View::len`].
    pub fn len(&self) -> Result<u64, Error> {
        self.iter().try_fold(0, |count, entry| entry.map(|_| count + 1))
    }

    /// Returns whether no entry is alive.
    ///
    /// # Errors
    ///
    /// Those of [`len`](ExpiringView::len).
    pub fn is_empty(&self) -> Result<bool, Error> {
        Ok(self.iter().next().transpose()?.is_none())
    }
}

impl IntoIterator for &ExpiringView {
    type Item = Result<Entry, Error>;
    type IntoIter = ExpiringIter<ViewIter>;
    fn into_iter(self) -> ExpiringIter<ViewIter> {
        self.iter()
    }
}
