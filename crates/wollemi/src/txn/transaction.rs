//! Optimistic transactions: reads and changes of any keys, committed together if everything they read is unchanged.
//!
//! A running transaction holds no locks: it records its reads (`reads`) and buffers its changes
//! ([`overlay`](crate::txn::overlay)). [`commit`](crate::write::commit) explains the commit, and why it is
//! serializable.

use crate::txn::overlay::Overlay;
use crate::txn::range::TransactionRange;
use crate::write::journal::Durability;
use crate::write::map_index::{KeyState, Plan};
use crate::write::reads::Reads;
use crate::write::retry::Retry;
use crate::write::store::Store;
use crate::{Db, Error, Hardware, KeyRange, Map, Media};
use std::cell::RefCell;
use std::ops::Deref;

/// Reads and changes of any of a database's maps that happen together, atomically, or not at all.
///
/// * **Isolation**: transactions, [batches](crate::Batch), [snapshots](crate::Snapshot) and writes of single keys are
///   strictly serializable: each takes effect at one moment between its beginning and its end. The commit checks
///   everything that the transaction has read, including absent keys and ranges. If any of it has changed, the commit
///   fails with [`Error::Conflict`] and changes nothing.
/// * **Crashes**: after one, either all changes are there or none is. Changes that [`commit`](Transaction::commit) has
///   acknowledged are there.
/// * **Waiting**: no thread waits for a running transaction. A commit and another write wait for each other only if
///   they change the same key, or keys with the same of 4,096 hashes; so does a transaction that reads a key while it
///   is being changed. A commit of a few keys rarely meets others so; one of 1,000 keys has a fifth of the hashes.
///   Readers of maps never wait; they may see some changes of a commit in progress before the others, as with a
///   [`Batch`](crate::Batch).
/// * **Until it commits**, a transaction may have read some keys before another writer changed them and others after
///   that. Its results are then discarded, but until then the closure must tolerate inconsistent values.
///
/// It sees its own changes. It keeps a copy of everything it reads and changes in memory, and handles to the maps it
/// has used, which cannot be dropped meanwhile. Dropping it discards it. [`Db::transact`] runs a transaction again
/// after a conflict.
#[must_use = "a transaction changes nothing before it is committed"]
pub struct Transaction<'d, M: Media = Hardware> {
    pub(super) store: Held<'d, M>,
    pub(super) reads: RefCell<Reads>,
    pub(super) changes: Overlay,
    durability: Option<Durability>,
    /// Whether writes of other keys must not fail the commit, because an earlier attempt met a conflict.
    announces_points: bool,
}

/// The database's store, borrowed or owned.
pub(super) enum Held<'d, M: Media> {
    Borrowed(&'d Store<M>),
    Owned(Db<M>),
}

impl<M: Media> Deref for Held<'_, M> {
    type Target = Store<M>;
    fn deref(&self) -> &Store<M> {
        match self {
            Held::Borrowed(store) => store,
            Held::Owned(db) => db.store(),
        }
    }
}

impl<M: Media> Db<M> {
    /// Runs a transaction and commits it. If a key it has read was changed meanwhile, runs it again, as the default
    /// [`Retry`] says.
    ///
    /// ```
    /// use wollemi::{Db, Error};
    ///
    /// let db = Db::anonymous()?;
    /// let accounts = db.map("accounts")?;
    /// accounts.load([("alice", "10"), ("bob", "0")])?;
    ///
    /// let amount = |bytes: Option<Vec<u8>>| -> i64 {
    ///     bytes.and_then(|bytes| String::from_utf8(bytes).ok()?.parse().ok()).unwrap_or(0)
    /// };
    /// let left = db.transact(|tx| {
    ///     let alice = amount(tx.get(&accounts, "alice")?) - 3;
    ///     let bob = amount(tx.get(&accounts, "bob")?) + 3;
    ///     tx.upsert(&accounts, "alice", alice.to_string())?;
    ///     tx.upsert(&accounts, "bob", bob.to_string())?;
    ///     Ok::<_, Error>(alice)
    /// })?;
    /// assert_eq!(left, 7);
    /// assert_eq!(accounts.get("bob")?, Some(b"3".to_vec()));
    ///
    /// // An error abandons the transaction. It can be any type that implements `From<Error>`.
    /// #[derive(Debug)]
    /// enum Refused {
    ///     TooLittle,
    ///     Failed(Error),
    /// }
    /// impl From<Error> for Refused {
    ///     fn from(error: Error) -> Refused {
    ///         Refused::Failed(error)
    ///     }
    /// }
    /// let refused = db.transact(|tx| {
    ///     tx.upsert(&accounts, "alice", "0")?;
    ///     Err::<(), _>(Refused::TooLittle)
    /// });
    /// assert!(matches!(refused, Err(Refused::TooLittle)));
    /// assert_eq!(accounts.get("alice")?, Some(b"7".to_vec()));
    /// # Ok::<(), Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The closure's own error, if everything it read is still valid; then nothing was changed. (If not, the closure
    /// runs again, since its error may result from inconsistent reads.) [`Error::Conflict`] after the last attempt, and
    /// the errors of [`Transaction::commit`].
    pub fn transact<R, E: From<Error>>(
        &self,
        run: impl FnMut(&mut Transaction<'_, M>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.transact_with(&Retry::default(), run)
    }

    /// Like [`transact`](Db::transact), with retries as `retry` says.
    ///
    /// # Errors
    ///
    /// Those of [`transact`](Db::transact).
    pub fn transact_with<R, E: From<Error>>(
        &self,
        retry: &Retry,
        run: impl FnMut(&mut Transaction<'_, M>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.run(retry, || self.begin(), run)
    }

    /// Like [`transact_with`](Db::transact_with), with transactions that [own](Db::begin_owned) a handle to the
    /// database.
    ///
    /// # Errors
    ///
    /// Those of [`transact`](Db::transact).
    pub fn transact_owned<R, E: From<Error>>(
        &self,
        retry: &Retry,
        run: impl FnMut(&mut Transaction<'static, M>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.run(retry, || self.begin_owned(), run)
    }

    fn run<'d, R, E: From<Error>>(
        &self,
        retry: &Retry,
        begin: impl Fn() -> Transaction<'d, M>,
        mut run: impl FnMut(&mut Transaction<'d, M>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.store().retry(retry, |is_again| {
            let mut transaction = begin();
            transaction.set_again(is_again);
            match run(&mut transaction) {
                Ok(result) => (transaction.commit(), Ok(result)),
                Err(error) => (transaction.check(), Err(error)),
            }
        })
    }

    /// Begins a transaction; its [`commit`](Transaction::commit) commits it.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let map = db.map("seats")?;
    /// let mut tx = db.begin();
    /// if !tx.contains(&map, "7a")? {
    ///     tx.upsert(&map, "7a", "alice")?;
    /// }
    /// map.upsert("7a", "bob")?; // another thread is faster
    /// let conflict = tx.commit().expect_err("seat 7a is not free any more");
    /// assert!(matches!(conflict, wollemi::Error::Conflict { key, .. } if key == b"7a"));
    /// assert_eq!(map.get("7a")?, Some(b"bob".to_vec()));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn begin(&self) -> Transaction<'_, M> {
        Transaction::on(Held::Borrowed(self.store()))
    }

    /// Like [`begin`](Db::begin), for a transaction that owns a handle to the database instead of borrowing it, for
    /// objects of another language.
    ///
    /// ```
    /// # let db = wollemi::Db::anonymous()?;
    /// # let map = db.map("seats")?;
    /// let mut tx: wollemi::Transaction<'static> = db.begin_owned();
    /// drop(db);
    /// tx.upsert(&map, "7a", "alice")?;
    /// tx.commit()?;
    /// assert!(map.contains("7a")?);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn begin_owned(&self) -> Transaction<'static, M> {
        Transaction::on(Held::Owned(self.clone()))
    }
}

impl<'d, M: Media> Transaction<'d, M> {
    fn on(store: Held<'d, M>) -> Transaction<'d, M> {
        Transaction {
            store,
            reads: RefCell::default(),
            changes: Overlay::default(),
            durability: None,
            announces_points: false,
        }
    }
}

impl<M: Media> Transaction<'_, M> {
    /// Returns the key's value.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDatabase`]. [`Error::Conflict`] if it is already certain that the transaction cannot commit.
    /// [`Error::Index`] if the key is too long or the pool is damaged.
    pub fn get(&self, map: &Map, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        let key = key.as_ref();
        self.store.refuse_if_foreign(&*map.index)?;
        if let Some(changed) = self.changes.get(map, key) {
            return Ok(changed.clone());
        }
        let (traffic, media) = (&self.store.traffic, self.store.heap.media());
        let id = map.index.stripe_of(key);
        let version = traffic.stripes.version(id, &traffic.gate, media)?;
        // The commit waits until the values read are durable.
        let value = map
            .index
            .bare()
            .get(key, &heap::pin())?
            .map(|value| value.to_vec());
        let read = KeyState::new(&map.index, key, value.as_deref());
        self.reads.borrow_mut().note(id, version, read)?;
        Ok(value)
    }

    /// Returns whether the key is present.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Transaction::get).
    pub fn contains(&self, map: &Map, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.get(map, key)?.is_some())
    }

    /// Sets the key's value, whether or not the key is present.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDatabase`]. A key or a value that is too long fails the commit.
    pub fn upsert(&mut self, map: &Map, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.store.refuse_if_foreign(&*map.index)?;
        self.changes.set(map, key.as_ref(), Some(value.as_ref()));
        Ok(())
    }

    /// Adds the key if it is absent; returns `false` if it is present. Counts as a read.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Transaction::get).
    pub fn insert(
        &mut self,
        map: &Map,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        let absent = !self.contains(map, key.as_ref())?;
        if absent {
            self.changes.set(map, key.as_ref(), Some(value.as_ref()));
        }
        Ok(absent)
    }

    /// Removes the key; returns `false` if it is absent. Counts as a read.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Transaction::get).
    pub fn remove(&mut self, map: &Map, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let present = self.contains(map, key.as_ref())?;
        if present {
            self.changes.set(map, key.as_ref(), None);
        }
        Ok(present)
    }

    /// Iterates over the entries between two bounds, in key order from either end, with the transaction's own changes.
    /// Crossed bounds are an empty range. Yielded entries and the gaps between them count as read; later entries do
    /// not.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let jobs = db.map("jobs")?;
    /// jobs.load([("1", "sweep"), ("2", "mop")])?;
    ///
    /// // Two threads that each take the first job do not get the same one.
    /// let first = db.transact(|tx| {
    ///     let first = tx.range(&jobs, ..)?.next().transpose()?;
    ///     if let Some((key, _)) = &first {
    ///         tx.remove(&jobs, key)?;
    ///     }
    ///     Ok::<_, wollemi::Error>(first)
    /// })?;
    /// assert_eq!(first, Some((b"1".to_vec(), b"sweep".to_vec())));
    /// assert_eq!(jobs.count()?, 1);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OtherDatabase`]; [`Error::Index`] if the map's index has [no order](crate::IndexKind::is_ordered).
    pub fn range(&self, map: &Map, keys: impl KeyRange) -> Result<TransactionRange<'_>, Error> {
        self.store.refuse_if_foreign(&*map.index)?;
        map.index.order().require_keys()?;
        let (lower, upper) = keys.bounds();
        let changes = self.changes.of(map);
        Ok(TransactionRange::new(map, lower, upper, changes, &self.reads))
    }

    /// Iterates over the entries whose keys start with `prefix`, like [`range`](Transaction::range).
    ///
    /// # Errors
    ///
    /// Those of [`range`](Transaction::range).
    pub fn prefix(&self, map: &Map, prefix: impl AsRef<[u8]>) -> Result<TransactionRange<'_>, Error> {
        self.range(map, index::prefix_bounds(prefix.as_ref()))
    }

    /// Sets the transaction's durability, in a database of level [`Disk`](crate::Level::Disk). Default: that of the
    /// database's writes.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = Some(durability);
    }

    /// Sets whether it runs again what has met a conflict before. If so, writes of other keys cannot fail its commit;
    /// otherwise they may, if they come during the check of a long range. For callers with their own retry loop;
    /// [`Db::transact`] does this.
    ///
    /// ```
    /// use wollemi::Error;
    ///
    /// let db = wollemi::Db::anonymous()?;
    /// let map = db.map("counts")?;
    /// let mut is_again = false;
    /// loop {
    ///     let mut tx = db.begin();
    ///     tx.set_again(is_again);
    ///     let count = tx.range(&map, ..)?.count();
    ///     tx.upsert(&map, "entries", count.to_string())?;
    ///     match tx.commit() {
    ///         Err(Error::Conflict { .. }) => is_again = true,
    ///         committed => break committed?,
    ///     }
    /// }
    /// assert_eq!(map.get("entries")?, Some(b"0".to_vec()));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn set_again(&mut self, is_again: bool) {
        self.announces_points = is_again;
    }

    /// Returns the number of keys it has changed.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns whether it has changed nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Commits it, if everything it read is unchanged; it is durable when this returns.
    ///
    /// Costs two loads of a word for each key read, two scans of the ranges read, and the writes of its changes; for
    /// several changes also three fences and the persists of a copy of them. At most 16 multi-change commits run at a
    /// time; further ones wait.
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if a key that it has read was changed, or is about to be changed by another commit; a key or
    /// a value that is too long; a pool that is full or damaged. Nothing was changed then. [`Error::Unfinished`]: it is
    /// committed, and the next opening of the database completes it.
    pub fn commit(self) -> Result<(), Error> {
        let (points, ranges) = self.reads.into_inner().into_parts()?;
        let plan = Plan {
            changes: self.changes.into_changes(),
            points,
            ranges,
            durability: self.durability,
            announces_points: self.announces_points,
            ..Plan::default()
        };
        self.store.commit(&plan).map(drop)
    }

    /// Returns what it has read so far.
    #[cfg(test)]
    pub(crate) fn into_reads(self) -> Reads {
        self.reads.into_inner()
    }

    /// Checks that everything it read is unchanged, and discards it. For callers with their own retry loop, such as
    /// [`Db::transact`]: an error inside a transaction may result from inconsistent reads.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let map = db.map("seats")?;
    /// let tx = db.begin();
    /// let seat = tx.get(&map, "7a")?;
    /// map.upsert("7a", "bob")?; // another thread is faster
    /// assert_eq!(seat, None);
    /// assert!(matches!(tx.check(), Err(wollemi::Error::Conflict { .. })));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Conflict`] if a key that it has read was changed, or is about to be changed by another commit.
    pub fn check(self) -> Result<(), Error> {
        let (points, ranges) = self.reads.into_inner().into_parts()?;
        self.store.check(&Plan {
            points,
            ranges,
            announces_points: self.announces_points,
            ..Plan::default()
        })
    }
}

impl<M: Media> std::fmt::Debug for Transaction<'_, M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transaction")
            .field("changes", &self.changes.len())
            .finish_non_exhaustive()
    }
}
