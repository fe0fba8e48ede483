//! Batches: commits without reads.
//!
//! [`commit`](crate::write::commit) implements their commit.

use crate::write::journal::Durability;
use crate::write::map_index::{KeyState, Plan};
use crate::{Db, Error, Hardware, Map, Media};
use std::collections::HashSet;

/// Changes applied together: all of them or, whenever a crash comes, none.
///
/// * **Crashes**: after one, either every change is there or none is. A batch that [`commit`](Batch::commit) has
///   acknowledged is there.
/// * **Writers**: batches, [transactions](crate::Transaction) and all other writes of the database behave as if they
///   ran one after the other. A writer waits for a committing batch if they share a key, or the hash of one (of 4,096),
///   and never for a batch that is still being filled.
/// * **Snapshots** show a batch as a whole or not at all.
/// * **Readers** do not wait. While a batch is being applied, they may see some of its changes before the others; what
///   they see is durable, and the others follow. Each key changes directly from its value before the batch to its value
///   after it. Read a [`Snapshot`](crate::Snapshot) if several keys must be consistent.
///
/// Of several changes to one key, only the last is applied. A batch holds a handle to its database and may be sent to
/// another thread.
///
/// ```
/// let db = wollemi::Db::anonymous()?;
/// let (stock, orders) = (db.map("stock")?, db.map("orders")?);
/// stock.upsert("apples", "12")?;
///
/// let mut batch = db.batch();
/// batch.expect(&stock, "apples", Some("12")).expect(&orders, "1", None::<&str>);
/// batch.upsert(&stock, "apples", "10").upsert(&orders, "1", "2 apples");
/// assert!(batch.commit()?);
/// assert_eq!(stock.get("apples")?, Some(b"10".to_vec()));
///
/// let mut batch = db.batch();
/// batch.expect(&stock, "apples", Some("12")).remove(&stock, "apples");
/// assert!(!batch.commit()?); // 10 are left: nothing was changed
/// assert!(stock.contains("apples")?);
/// # Ok::<(), wollemi::Error>(())
/// ```
#[must_use = "a batch does nothing before it is committed"]
pub struct Batch<M: Media = Hardware> {
    db: Db<M>,
    changes: Vec<KeyState>,
    expected: Vec<KeyState>,
    durability: Option<Durability>,
}

impl<M: Media> Db<M> {
    /// Creates a batch of changes to any of the maps. All of them happen or none, whenever a crash comes.
    pub fn batch(&self) -> Batch<M> {
        Batch::new(self.clone())
    }
}

impl<M: Media> Batch<M> {
    pub(crate) fn new(db: Db<M>) -> Batch<M> {
        Batch {
            db,
            changes: Vec::new(),
            expected: Vec::new(),
            durability: None,
        }
    }

    /// Sets the key's value, whether or not the key is present.
    pub fn upsert(&mut self, map: &Map, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.changes
            .push(KeyState::new(&map.index, key.as_ref(), Some(value.as_ref())));
        self
    }

    /// Removes the key, if it is present.
    pub fn remove(&mut self, map: &Map, key: impl AsRef<[u8]>) -> &mut Self {
        self.changes.push(KeyState::new(&map.index, key.as_ref(), None));
        self
    }

    /// Makes the commit conditional on the key having this value before it; `None`: on its absence.
    pub fn expect<V: AsRef<[u8]>>(
        &mut self,
        map: &Map,
        key: impl AsRef<[u8]>,
        value: Option<V>,
    ) -> &mut Self {
        let value = value.as_ref().map(V::as_ref);
        self.expected.push(KeyState::new(&map.index, key.as_ref(), value));
        self
    }

    /// Returns the number of changes.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Returns whether it has no changes.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Sets the batch's durability, in a database of level [`Disk`](crate::Level::Disk). Default: that of the
    /// database's writes.
    pub fn durability(&mut self, durability: Durability) -> &mut Batch<M> {
        self.durability = Some(durability);
        self
    }

    /// Commits the batch, which is durable when this returns. Returns `false`, with nothing changed, if an
    /// [expectation](Batch::expect) does not hold.
    ///
    /// Costs the writes of its changes and, for several changes, three fences and the persists of a copy of them. At
    /// most 16 multi-change commits run at a time; further ones wait.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDatabase`], a key or a value that is too long, or a pool that is full or damaged: nothing was
    /// changed. [`Error::Unfinished`]: the batch is committed, and the next opening of the database completes it.
    pub fn commit(mut self) -> Result<bool, Error> {
        self.keep_last_changes();
        self.db.store().commit(&Plan {
            changes: self.changes.into(),
            expected: self.expected,
            durability: self.durability,
            ..Plan::default()
        })
    }

    /// Drops each change that a later change to the same key replaces: no reader or watch may see a value that the key
    /// has neither before nor after the batch.
    fn keep_last_changes(&mut self) {
        let mut later = HashSet::with_capacity(self.changes.len());
        let changes = self.changes.iter().rev();
        // A map of another database may have the same name; the commit refuses it.
        let mut kept: Vec<bool> = changes
            .map(|entry| {
                let database = std::ptr::from_ref(entry.map.gate());
                later.insert((database, entry.map.name(), &*entry.key))
            })
            .collect();
        drop(later);
        self.changes.retain(|_| kept.pop() != Some(false));
    }
}

impl<M: Media> std::fmt::Debug for Batch<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("changes", &self.changes.len())
            .field("expected", &self.expected.len())
            .finish_non_exhaustive()
    }
}
