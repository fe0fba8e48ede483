//! Maps: the named collections of a database.

use crate::write::journal::Durability;
use crate::write::map_index::MapIndex;
use crate::write::traffic::Alive;
use crate::write::turn::{PausedTurn, Turn};
use crate::{Error, IndexKind};
use index::{Action, CompareAndSwap, Edit, Edits, Index, Insert, Remove, Update, Upsert};
use std::ops::ControlFlow;
use std::sync::Arc;

/// A map from keys to values, both arbitrary bytes: keys of 0 to 65,535 bytes, values of up to 64 MiB. It is ordered by
/// the keys' bytes, unless a hash table holds it ([`IndexKind::is_ordered`]).
///
/// Many threads may use a map at once; a clone is another handle to the same map. Every operation is atomic, and
/// durable at the pool's level when it returns: its result, a read's included, survives a crash. A handle keeps its
/// pool open.
///
/// ```
/// let db = wollemi::Db::anonymous()?;
/// let map = db.map("stock")?;
///
/// assert!(map.insert("apples", "12")?);
/// assert!(!map.insert("apples", "13")?); // already present
/// map.upsert("pears", "7")?;
/// assert!(map.compare_and_swap("pears", Some("7"), Some("6"))?);
/// assert_eq!(map.get("pears")?, Some(b"6".to_vec()));
/// assert!(map.remove("apples")?);
/// # Ok::<(), wollemi::Error>(())
/// ```
#[derive(Clone)]
pub struct Map {
    kind: IndexKind,
    pub(crate) index: Arc<dyn MapIndex>,
    /// Keeps the database's threads alive as long as this handle or an index that it has handed out exists.
    alive: Option<Arc<dyn Alive>>,
    pub(crate) durability: Option<Durability>,
}

impl Map {
    pub(crate) fn new(kind: IndexKind, index: Arc<dyn MapIndex>, alive: Option<Arc<dyn Alive>>) -> Map {
        Map {
            kind,
            index,
            alive,
            durability: None,
        }
    }

    /// Returns a handle whose writes have this durability, in a database of level [`Disk`](crate::Level::Disk).
    ///
    /// ```
    /// use wollemi::Durability;
    ///
    /// # let db = wollemi::Db::anonymous()?;
    /// let clicks = db.map("clicks")?.with_durability(Durability::Eventual);
    /// clicks.upsert("page", "1")?; // durable within a second
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn with_durability(&self, durability: Durability) -> Map {
        Map {
            durability: Some(durability),
            ..self.clone()
        }
    }

    /// Waits until all results of this thread's newest turn so far are durable, like
    /// [`Db::settle_turn`](crate::Db::settle_turn), for code that has no handle to the database.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if it is not known whether they are durable.
    pub fn settle_turn(&self) -> Result<(), Error> {
        match self.index.journal() {
            Some(journal) => Ok(journal.settle_turn()?),
            None => Ok(()),
        }
    }

    /// Returns the map's name.
    pub fn name(&self) -> &str {
        self.index.name()
    }

    /// Returns the kind of the index that holds the map.
    pub fn index_kind(&self) -> IndexKind {
        self.kind
    }

    /// Returns the index itself, for callers that use its contract (a server, a benchmark). Like a handle, it keeps its
    /// pool open.
    pub fn index(&self) -> Arc<dyn Index> {
        match &self.alive {
            Some(alive) => Arc::new(KeptIndex {
                index: self.index.clone(),
                _alive: alive.clone(),
            }),
            None => self.index.clone(),
        }
    }

    fn write(&self, key: impl AsRef<[u8]>, edit: &mut dyn Edit) -> Result<Action, Error> {
        Ok(self.index.write_durably(key.as_ref(), edit, self.durability)?)
    }

    /// Adds the key if it is absent; returns `false` if it is present.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.write(key, &mut Insert(value.as_ref()))? == Action::Put)
    }

    /// Sets the key's value, whether or not the key is present.
    pub fn upsert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        self.write(key, &mut Upsert(value.as_ref())).map(drop)
    }

    /// Replaces the value of a key that is present; returns `false` if it is absent.
    pub fn update(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.write(key, &mut Update(value.as_ref()))? == Action::Put)
    }

    /// Removes the key; returns `false` if it is absent.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.write(key, &mut Remove)? == Action::Remove)
    }

    /// Replaces `expected` by `new`, each of which may be `None` for an absent key. Returns `false`, with nothing
    /// changed, if the key's value differs from `expected`. If both are `None`, it changes nothing, and tells in its turn
    /// among the key's writers and commits whether the key is absent.
    pub fn compare_and_swap<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<V>,
        new: Option<V>,
    ) -> Result<bool, Error> {
        let expected = expected.as_ref().map(V::as_ref);
        let new = new.as_ref().map(V::as_ref);
        if expected.is_none() && new.is_none() {
            let mut absence = Absence(false);
            self.write(key, &mut absence)?;
            return Ok(absence.0);
        }
        Ok(self.write(key, &mut CompareAndSwap { expected, new })? != Action::Keep)
    }

    /// Reads, decides and writes one key atomically; returns what the edit decided.
    ///
    /// ```
    /// use wollemi::{Action, Edit};
    ///
    /// /// Counts to a hundred, then removes the key.
    /// struct Count(Vec<u8>);
    /// impl Edit for Count {
    ///     fn decide(&mut self, current: Option<&[u8]>) -> Action {
    ///         let old = current.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
    ///         self.0 = (old + 1).to_le_bytes().to_vec();
    ///         if old + 1 == 100 { Action::Remove } else { Action::Put }
    ///     }
    ///     fn value(&self) -> &[u8] {
    ///         &self.0
    ///     }
    /// }
    ///
    /// let map = wollemi::Db::anonymous()?.map("counts")?;
    /// assert_eq!(map.edit("visits", &mut Count(Vec::new()))?, Action::Put);
    /// assert_eq!(map.get("visits")?, Some(1u64.to_le_bytes().to_vec()));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn edit(&self, key: impl AsRef<[u8]>, edit: &mut dyn Edit) -> Result<Action, Error> {
        self.write(key, edit)
    }

    /// Replaces the key's value by the closure's result, atomically, and returns the new value. The closure gets the
    /// current value, or `None` if the key is absent; if it returns `None`, the key is removed. [`edit`](Map::edit) can
    /// also leave the key unchanged, and needs no allocation.
    ///
    /// The closure runs under the lock on the key. Keep it short, and do not use the database in it: that could wait
    /// forever for the same lock. It runs again if the pool was full and room has been made since, so it should have no
    /// side effects; only its last result counts.
    ///
    /// ```
    /// let map = wollemi::Db::anonymous()?.map("visits")?;
    /// let count_up = |current: Option<&[u8]>| {
    ///     let old = current.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
    ///     Some((old + 1).to_le_bytes().to_vec())
    /// };
    /// map.edit_with("alice", count_up)?;
    /// assert_eq!(map.edit_with("alice", count_up)?, Some(2u64.to_le_bytes().to_vec()));
    ///
    /// assert_eq!(map.edit_with("alice", |_| None)?, None);
    /// assert!(!map.contains("alice")?);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if a key or a value is too long, or if the pool is full, damaged or opened read-only.
    pub fn edit_with(
        &self,
        key: impl AsRef<[u8]>,
        function: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let mut edit = Function { function, new: None };
        self.edit(key, &mut edit)?;
        Ok(edit.new)
    }

    /// Upserts many entries in order and returns their number. All are durable when it returns. If one fails, the
    /// entries before it are in the map and those after it are not. Fastest in key order.
    ///
    /// Collects up to 64 entries and writes them [together](Index::write_many), so that their cache misses overlap and
    /// ROART persists them together. So a crash during the call may leave some of the last 64 entries without earlier
    /// ones, and the iterator cannot read from the map what it has just produced. At level
    /// [`Disk`](crate::Level::Disk) the entries are written one by one, and those of a group wait for one sync.
    ///
    /// ```
    /// let map = wollemi::Db::anonymous()?.map("squares")?;
    /// let loaded = map.load((0..1000u64).map(|i| (i.to_be_bytes(), (i * i).to_le_bytes())))?;
    /// assert_eq!(loaded, 1000);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn load<K, V>(&self, entries: impl IntoIterator<Item = (K, V)>) -> Result<u64, Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let mut entries = entries.into_iter();
        let mut loaded = 0;
        let mut group = Vec::with_capacity(LOADED_AT_ONCE);
        loop {
            let mut bytes = 0;
            while group.len() < LOADED_AT_ONCE
                && bytes < BYTES_AT_ONCE
                && let Some((key, value)) = entries.next()
            {
                bytes += value.as_ref().len();
                group.push((key, value));
            }
            if group.is_empty() {
                return Ok(loaded);
            }
            // At level `disk` the entries of a group wait for one sync.
            let turn = Turn::resume(self.index.journal(), PausedTurn::default());
            let put = match self.durability {
                Some(_) => group.iter().try_for_each(|(key, value)| self.upsert(key, value)),
                None => self.put_group(&group),
            };
            let durable = turn.end();
            put?;
            durable?;
            loaded += group.len() as u64;
            group.clear();
        }
    }

    fn put_group<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, group: &[(K, V)]) -> Result<(), Error> {
        let keys: Vec<&[u8]> = group.iter().map(|(key, _)| key.as_ref()).collect();
        let mut upserts = Upserts {
            values: group.iter().map(|(_, value)| Upsert(value.as_ref())).collect(),
            failed: None,
        };
        self.index.write_many(&keys, &mut upserts);
        Ok(upserts.failed.map_or(Ok(()), Err)?)
    }
}

/// A map's index for a caller without a handle. It keeps the database's threads alive, if there are any: without them
/// no thread syncs eventual writes, and the pool could be closed with data that is not durable in the log.
struct KeptIndex {
    index: Arc<dyn MapIndex>,
    _alive: Arc<dyn Alive>,
}

impl Index for KeptIndex {
    index::delegate!(index: get, multi_get, prefetch, write, write_many, order, walk, scan, check, settle, quiesce, merges, maintain);
}

/// Maximum number of entries that [`Map::load`] writes together.
const LOADED_AT_ONCE: usize = 64;

/// Bytes of values beyond which a group takes no more entries.
const BYTES_AT_ONCE: usize = 64 << 10;

/// A group of upserts that ends with the first failure.
struct Upserts<'v> {
    values: Vec<Upsert<'v>>,
    failed: Option<index::Error>,
}

impl Edits for Upserts<'_> {
    fn edit(&mut self, i: usize) -> &mut dyn Edit {
        &mut self.values[i]
    }

    fn done(&mut self, _: usize, done: Result<Action, index::Error>) -> ControlFlow<()> {
        match done {
            Ok(_) => ControlFlow::Continue(()),
            Err(error) => {
                self.failed = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Map")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// An edit that changes nothing and tells whether the key is absent.
struct Absence(bool);

impl Edit for Absence {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.0 = current.is_none();
        Action::Keep
    }

    fn value(&self) -> &[u8] {
        &[]
    }
}

/// An edit by a closure from the current value to the new one; `None`: absent.
struct Function<F> {
    function: F,
    new: Option<Vec<u8>>,
}

impl<F: FnMut(Option<&[u8]>) -> Option<Vec<u8>>> Edit for Function<F> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.new = (self.function)(current);
        match (&self.new, current) {
            (Some(_), _) => Action::Put,
            (None, Some(_)) => Action::Remove,
            (None, None) => Action::Keep,
        }
    }

    fn value(&self) -> &[u8] {
        self.new.as_deref().unwrap_or_default()
    }
}
