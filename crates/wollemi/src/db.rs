//! The database: one pool, its heap, and the maps in it.

use crate::report::{Check, HeapCheck, MapCheck, MapInfo, Recovery, RecoveryState, Stats};
use crate::write::store::Store;
use crate::write::traffic::MapIndex;
use crate::{Error, Hardware, IndexKind, MAX_NAME, Map, Media};
use index::Faults;
use pmem::Pool;
use std::collections::{HashMap, HashSet};
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
/// let db = wollemi::Db::open(&path)?; // with the default index, no longer with 100 million keys
/// assert_eq!(db.map("letters")?.get("a")?, Some(b"alpha".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Db<M: Media = Hardware> {
    inner: Arc<Inner<M>>,
}

struct Inner<M: Media> {
    store: Store<M>,
    /// The index of new maps.
    index: IndexKind,
    held: Mutex<Held>,
    opened_in: f64,
    /// Changes of commits that the opening has carried out.
    carried_out: usize,
}

/// The maps that somebody holds, or builds.
#[derive(Default)]
pub(crate) struct Held {
    /// Two handles to one map share its index.
    maps: HashMap<String, (IndexKind, Weak<dyn MapIndex>)>,
    /// Names of maps that are not there before they are built.
    pub(crate) building: HashSet<String>,
}

impl Held {
    /// A handle to a map that nobody holds yet.
    pub(crate) fn hold(&mut self, name: &str, kind: IndexKind, index: Arc<dyn MapIndex>) -> Map {
        self.maps.insert(name.to_owned(), (kind, Arc::downgrade(&index)));
        Map::new(kind, index)
    }
}

impl<M: Media> Db<M> {
    pub(crate) fn start(
        pool: Pool<M>,
        index: IndexKind,
        recovery_threads: usize,
        started: Instant,
    ) -> Result<Db<M>, Error> {
        let (store, carried_out) = Store::start(pool, recovery_threads)?;
        let opened_in = started.elapsed().as_secs_f64();
        Ok(Db {
            inner: Arc::new(Inner {
                store,
                index,
                held: Mutex::default(),
                opened_in,
                carried_out,
            }),
        })
    }

    /// The map of this name; it is created if it is not there, with the index that the
    /// [options](Options::index) name.
    ///
    /// # Errors
    ///
    /// [`Error::MapName`] for a name that is empty or longer than [`MAX_NAME`] bytes, [`Error::OtherKind`] for a map
    /// held by an index that this version does not know, [`Error::LeftOut`] for one that it is built without,
    /// [`Error::Heap`] if the pool is full or damaged.
    pub fn map(&self, name: &str) -> Result<Map, Error> {
        self.find_or_create(name, None)
    }

    /// The map of this name, held by this index; it is created so if it is not there.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// db.map_with("letters", wollemi::IndexKind::Roart)?.upsert("a", "alpha")?;
    /// let error = db.map_with("letters", wollemi::IndexKind::DpTree).expect_err("another index");
    /// assert_eq!(error.to_string(), "map 'letters': held by the index 'roart', not by 'dptree'");
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::OtherIndex`] for a map held by another index, and as [`map`](Db::map).
    pub fn map_with(&self, name: &str, index: IndexKind) -> Result<Map, Error> {
        self.find_or_create(name, Some(index))
    }

    fn find_or_create(&self, name: &str, wanted: Option<IndexKind>) -> Result<Map, Error> {
        let heap = &self.inner.store.heap;
        heap.with_room(|| self.try_find_or_create(name, wanted))
    }

    fn try_find_or_create(&self, name: &str, wanted: Option<IndexKind>) -> Result<Map, Error> {
        let mut held = self.held();
        if let Some(map) = self.find(name, wanted, &mut held)? {
            return Ok(map);
        }
        if held.building.contains(name) {
            return Err(Error::MapExists(name.to_owned()));
        }
        let kind = wanted.unwrap_or(self.inner.index);
        // Pinned, so that the heap does not wait for recovery, which may wait for a guard of who waits for the table.
        let _guard = heap::pin();
        let index = self.inner.store.create(name, kind)?;
        Ok(held.hold(name, kind, index))
    }

    /// The map of this name, if there is one.
    pub fn find_map(&self, name: &str) -> Result<Option<Map>, Error> {
        self.find(name, None, &mut self.held())
    }

    pub(crate) fn find(
        &self,
        name: &str,
        wanted: Option<IndexKind>,
        held: &mut Held,
    ) -> Result<Option<Map>, Error> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(Error::MapName(name.len()));
        }
        if held.building.contains(name) {
            return Ok(None);
        }
        let shared = held
            .maps
            .get(name)
            .and_then(|(kind, index)| Some((*kind, index.upgrade()?)));
        if let Some((kind, index)) = shared {
            return match wanted {
                Some(wanted) if wanted != kind => Err(Error::other_index(name, kind, wanted)),
                _ => Ok(Some(Map::new(kind, index))),
            };
        }
        let found = self.inner.store.open(name, wanted)?;
        Ok(found.map(|(kind, index)| held.hold(name, kind, index)))
    }

    /// All maps, by name, and what holds them.
    pub fn maps(&self) -> Result<Vec<MapInfo>, Error> {
        self.inner.store.maps()
    }

    /// Removes a map and all that it holds; `false` if there is no such map. The map is gone by one durable store:
    /// a crash leaves all of it or nothing. Giving back its space takes time in proportion to its size, and memory: 10
    /// to 20 bytes for each of its objects. Meanwhile other maps can be used, and a new one of this name can be made.
    ///
    /// # Errors
    ///
    /// [`Error::MapInUse`] while anybody holds a handle to the map, or any snapshot. An error that tells of damage
    /// comes when the map is gone: what was not given back until then, the next recovery finds.
    pub fn drop_map(&self, name: &str) -> Result<bool, Error> {
        let unlinked = {
            let mut held = self.held();
            if held.building.contains(name) {
                return Ok(false);
            }
            if let Some((_, index)) = held.maps.get(name) {
                if index.strong_count() > 0 {
                    return Err(Error::MapInUse(name.to_owned()));
                }
                held.maps.remove(name);
            }
            self.inner.store.unlink(name)?
        };
        let Some((removed, tracer)) = unlinked else {
            return Ok(false);
        };
        removed.retire(&*tracer)?;
        Ok(true)
    }

    /// The index of maps that are made without a word about it.
    pub(crate) fn new_maps(&self) -> IndexKind {
        self.inner.index
    }

    pub(crate) fn store(&self) -> &Store<M> {
        &self.inner.store
    }

    /// What there is to say without walking the maps.
    pub fn stats(&self) -> Result<Stats, Error> {
        let held: Vec<_> = self
            .held()
            .maps
            .iter()
            .filter_map(|(name, (_, index))| Some((name.clone(), index.upgrade()?)))
            .collect();
        // The handles go when nothing is locked, since the last of a map ends its threads.
        let merges = held
            .iter()
            .filter_map(|(name, index)| Some((name.clone(), index.merges()?)))
            .collect();
        Ok(Stats {
            merges,
            ..self.inner.store.stats(self.inner.opened_in)?
        })
    }

    /// How many changes the opening has made of a batch that was committed before it, and that a crash had interrupted.
    pub fn carried_out(&self) -> usize {
        self.inner.carried_out
    }

    /// How far recovery has come. It starts when the database is opened and runs beside every operation.
    pub fn recovery_progress(&self) -> Recovery {
        self.inner.store.recovery()
    }

    /// Recovers in the calling thread, which holds no reader meanwhile, and returns how it ended: for who opens with
    /// [no thread for it](Options::recovery_threads) and chooses the time. Where recovery was started before, waits.
    pub fn recover(&self) -> Recovery {
        self.inner.store.recover_here();
        self.recovery_progress()
    }

    /// Waits until recovery has ended, and returns how. Returns at once if it was never started.
    pub fn wait_recovered(&self) -> Recovery {
        self.inner.store.wait_recovered();
        self.recovery_progress()
    }

    /// Gives the file's free pages back to its file system; how many bytes these were. Maps may be used meanwhile. The
    /// pages are given blocks again when they are needed, which fails like any growth where there are none. Waits for
    /// recovery first. Where the pool has much more free space than it will need soon, writes do the same by
    /// themselves, a piece at a time.
    ///
    /// # Errors
    ///
    /// [`Error::Pool`] where the file system fails.
    pub fn give_back(&self) -> Result<u64, Error> {
        self.inner.store.give_back()
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
        let names = self.maps()?;
        let maps = names.iter().map(|map| self.check_map(map.clone())).collect();
        // Does nothing if recovery is under way, or was.
        self.inner.store.recover(1)?;
        let heap = match self.wait_recovered().state {
            RecoveryState::Done => {
                // What a merge has made and not linked yet would count as lost.
                let maps = names.iter().filter_map(|map| self.find_map(&map.name).ok()?);
                let indexes: Vec<_> = maps.map(|map| map.index()).collect();
                let _still: Vec<_> = indexes.iter().map(|index| index.hold_still()).collect();
                self.inner.store.audit()
            }
            state => HeapCheck::fault(format!("no account to compare with: recovery is {state}")),
        };
        Ok(Check { maps, heap })
    }

    fn check_map(&self, map: MapInfo) -> MapCheck {
        let found = self
            .find_map(&map.name)
            .and_then(|map| Ok(map.map(|map| map.index().check()).transpose()?));
        match found {
            Ok(faults) => MapCheck::new(map, faults.unwrap_or_default()),
            Err(error) => MapCheck::new(
                map,
                Faults {
                    found: vec![error.to_string()],
                    ..Faults::default()
                },
            ),
        }
    }

    /// A map of this name that this index holds.
    #[cfg(feature = "doubles")]
    pub(crate) fn enter(&self, name: &str, index: &Arc<dyn MapIndex>) -> Map {
        let kind = self.inner.index;
        self.held().hold(name, kind, index.clone())
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
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
