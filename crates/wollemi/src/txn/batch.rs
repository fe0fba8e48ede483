//! Batches: commits without reads.
//!
//! How they are carried out: [`commit`](crate::write::commit).

use crate::write::commit::Plan;
use crate::write::journal::Durability;
use crate::write::key_state::KeyState;
use crate::{Db, Error, Hardware, Map, Media};
use std::collections::HashSet;
use std::sync::Arc;

/// Changes to be made together: all of them or, whatever crash comes, none.
///
/// * **Crashes**: after one, either every change is there or none is. A batch that [`commit`](Batch::commit) has
///   acknowledged is there.
/// * **Writers**: batches, [transactions](crate::Transaction) and all other writes of the database happen as if one
///   after the other. A writer waits for a batch that is carried out if they share a key (or, rarely, the hash of one),
///   and for none that is being put together.
/// * **Snapshots** show a batch whole or not at all.
/// * **Readers** do not wait. While a batch is carried out they may see some of its changes and not yet others; what
///   they see is durable, and the others follow. Each key goes from what it held before the batch to what it holds
///   after it, and holds nothing else in between. Read a [`Snapshot`](crate::Snapshot) where several keys matter.
///
/// Only the last of several changes to one key is made. A batch holds a handle of its database and may be sent to
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
/// assert!(!batch.commit()?); // there are 10 by now: nothing was changed
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
    /// A batch of changes to any of the maps, all of which happen or none, whatever crash comes.
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

    /// The key shall have this value, whether it is there or not.
    pub fn upsert(&mut self, map: &Map, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> &mut Self {
        self.changes
            .push(KeyState::new(&map.index, key.as_ref(), Some(value.as_ref())));
        self
    }

    /// The key shall be absent.
    pub fn remove(&mut self, map: &Map, key: impl AsRef<[u8]>) -> &mut Self {
        self.changes.push(KeyState::new(&map.index, key.as_ref(), None));
        self
    }

    /// The batch is carried out only if, before it, the key has this value; `None`: only if it is absent.
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

    /// How many changes it has.
    pub fn len(&self) -> usize {
        self.changes.len()
    }

    /// Whether it has no change.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// When it is durable, in a database of level [`Disk`](crate::Level::Disk); else as the database's writes are.
    pub fn durability(&mut self, durability: Durability) -> &mut Batch<M> {
        self.durability = Some(durability);
        self
    }

    /// Carries the batch out: it is durable when this returns. `false`, and nothing was changed, if something is not as
    /// it was [expected](Batch::expect).
    ///
    /// Costs the writes of its changes and, if there are several, three fences and the persists of a copy of them. Of
    /// batches and transactions with several changes sixteen at a time are carried out; others wait.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDatabase`], a key or a value that is too long, a pool that is full or damaged: nothing was
    /// changed. [`Error::Unfinished`]: it is committed, and the next opening of the database completes it.
    pub fn commit(mut self) -> Result<bool, Error> {
        self.keep_last_changes();
        self.db.store().commit(&Plan {
            changes: self.changes.into(),
            expected: self.expected,
            durability: self.durability,
            ..Plan::default()
        })
    }

    /// Drops each change that a later change to the same key replaces: a reader, or a watch, must not see a value that
    /// the key holds neither before the batch nor after it.
    fn keep_last_changes(&mut self) {
        let mut later = HashSet::with_capacity(self.changes.len());
        let changes = self.changes.iter().rev();
        // A map of another database may have the name too; the commit refuses it.
        let mut kept: Vec<bool> = changes
            .map(|entry| {
                let database = Arc::as_ptr(entry.map.traffic());
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
