//! The database: one pool, its heap, and the maps in it.

use crate::report::{Check, HeapCheck, MapCheck, Recovery, RecoveryState, Stats};
use crate::store::Store;
use crate::{Error, Hardware, MAX_NAME, Map, Media, Options};
use index::{Faults, Index};
use pmem::Pool;
use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

/// A database: a pool of named maps. A clone is another handle to the same database.
///
/// The pool is closed, and marked so, when the last handle to it and to its maps is gone.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("a.pool");
/// {
///     let db = wollemi::Db::open(&path)?;
///     db.map("letters")?.upsert("a", "alpha")?;
/// }
/// let db = wollemi::Db::open(&path)?; // takes no longer with a hundred million keys
/// assert_eq!(db.map("letters")?.get("a")?, Some(b"alpha".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Db<M: Media = Hardware> {
    inner: Arc<Inner<M>>,
}

struct Inner<M: Media> {
    store: Store<M>,
    /// The maps that somebody holds: two handles to one map share its index.
    held: Mutex<HashMap<String, Weak<dyn Index>>>,
    opened_in: f64,
}

impl Db {
    /// Opens the database at `path` with the default [`Options`]; it is created if it is not there.
    pub fn open(path: impl AsRef<Path>) -> Result<Db, Error> {
        Options::new().open(path)
    }

    /// A database in anonymous memory, which goes with its last handle.
    pub fn anonymous() -> Result<Db, Error> {
        Options::new().anonymous()
    }
}

impl<M: Media> Db<M> {
    pub(crate) fn start(pool: Pool<M>, recovery_threads: usize, started: Instant) -> Result<Db<M>, Error> {
        let store = Store::start(pool, recovery_threads)?;
        let opened_in = started.elapsed().as_secs_f64();
        let held = Mutex::default();
        Ok(Db {
            inner: Arc::new(Inner {
                store,
                held,
                opened_in,
            }),
        })
    }

    /// The map of this name; it is created if it is not there.
    ///
    /// # Errors
    ///
    /// [`Error::MapName`] for a name that is empty or longer than [`MAX_NAME`] bytes, [`Error::OtherKind`] for a map
    /// held by an index that this version does not know, [`Error::Heap`] if the pool is full or damaged.
    pub fn map(&self, name: &str) -> Result<Map, Error> {
        let mut held = self.held();
        if let Some(map) = self.find(name, &mut held)? {
            return Ok(map);
        }
        let index = self.inner.store.create(name)?;
        held.insert(name.to_owned(), Arc::downgrade(&index));
        Ok(Map::new(name, index))
    }

    /// The map of this name, if there is one.
    pub fn find_map(&self, name: &str) -> Result<Option<Map>, Error> {
        self.find(name, &mut self.held())
    }

    fn find(&self, name: &str, held: &mut HashMap<String, Weak<dyn Index>>) -> Result<Option<Map>, Error> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(Error::MapName(name.len()));
        }
        if let Some(index) = held.get(name).and_then(Weak::upgrade) {
            return Ok(Some(Map::new(name, index)));
        }
        let found = self.inner.store.open(name)?;
        Ok(found.map(|index| {
            held.insert(name.to_owned(), Arc::downgrade(&index));
            Map::new(name, index)
        }))
    }

    /// The names of all maps, in order.
    pub fn maps(&self) -> Result<Vec<String>, Error> {
        Ok(self.inner.store.maps()?.into_iter().map(|map| map.name).collect())
    }

    /// Removes a map and all that it holds; `false` if there is no such map. The map is gone by one durable store:
    /// a crash leaves all of it or nothing. Giving back its space takes time in proportion to its size.
    ///
    /// # Errors
    ///
    /// [`Error::MapInUse`] while anybody holds a handle to the map.
    pub fn drop_map(&self, name: &str) -> Result<bool, Error> {
        let mut held = self.held();
        if let Some(map) = held.get(name) {
            if map.strong_count() > 0 {
                return Err(Error::MapInUse(name.to_owned()));
            }
            held.remove(name);
        }
        self.inner.store.remove(name)
    }

    /// What there is to say without walking the maps.
    pub fn stats(&self) -> Result<Stats, Error> {
        self.inner.store.stats(self.inner.opened_in)
    }

    /// How far recovery has come. It starts when the database is opened and runs beside every operation.
    pub fn recovery_progress(&self) -> Recovery {
        self.inner.store.recovery()
    }

    /// Waits until recovery has ended, and returns how. Returns at once if it was never started.
    pub fn wait_recovered(&self) -> Recovery {
        self.inner.store.wait_recovered();
        self.recovery_progress()
    }

    /// Walks everything and reports what does not fit: the structure of each map, chunks in use that nothing leads
    /// to, and chunks to which two links lead. Waits for recovery first. Nobody may write meanwhile, or the report
    /// may name faults that are none.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// db.map("letters")?.upsert("a", "alpha")?;
    /// let check = db.check()?;
    /// assert!(check.is_clean());
    /// assert_eq!(check.maps[0].keys, 1);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Heap`] if the directory of the maps cannot be read. What is wrong below it is in the report.
    pub fn check(&self) -> Result<Check, Error> {
        let maps = self
            .maps()?
            .into_iter()
            .map(|name| self.check_map(name))
            .collect();
        // Does nothing if recovery is under way, or was.
        self.inner.store.recover(1)?;
        let heap = match self.wait_recovered().state {
            RecoveryState::Done => self.inner.store.audit(),
            state => HeapCheck::fault(format!("no account to compare with: recovery is {state}")),
        };
        Ok(Check { maps, heap })
    }

    fn check_map(&self, name: String) -> MapCheck {
        let found = self
            .find_map(&name)
            .and_then(|map| Ok(map.map(|map| map.index().check()).transpose()?));
        match found {
            Ok(faults) => MapCheck::new(name, faults.unwrap_or_default()),
            Err(error) => MapCheck::new(
                name,
                Faults {
                    found: vec![error.to_string()],
                    ..Faults::default()
                },
            ),
        }
    }

    fn held(&self) -> MutexGuard<'_, HashMap<String, Weak<dyn Index>>> {
        // A panic elsewhere cannot leave the table half changed: each change is one insert or remove.
        self.inner.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Media> Clone for Db<M> {
    fn clone(&self) -> Self {
        Db {
            inner: self.inner.clone(),
        }
    }
}

impl<M: Media> std::fmt::Debug for Db<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").finish_non_exhaustive()
    }
}
