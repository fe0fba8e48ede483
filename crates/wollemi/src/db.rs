//! The database: one pool, its heap, and the maps in it. Durability is in `durable`.

mod durable;

use crate::report::{
    Check, Checkpoint, HeapCheck, LogStats, MapCheck, MapInfo, Recovery, RecoveryState, Stats,
};
use crate::write::map_index::MapIndex;
use crate::write::roots::{Opened, Unlinked, text_of};
use crate::write::store::Store;
use crate::write::traffic::Alive;
use crate::write::walked::Walked;
use crate::{Error, Hardware, IndexKind, MAX_NAME, Map, Media};
use index::{Faults, Merges};
use log::{Disk, Log, Lsn};
use pmem::Pool;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Turns of waiting for a map to close before the table of maps is checked again.
const TURNS: u32 = 1000;

/// A database: a pool of named maps. A clone is another handle to the same database.
///
/// The pool is closed, and marked so, when the last handle to it and to its maps is dropped. [`Db::close`] does the
/// same and reports errors.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// # let path = dir.path().join("a.pool");
/// {
///     let db = wollemi::Db::open(&path)?;
///     db.map("letters")?.upsert("a", "alpha")?;
/// }
/// let db = wollemi::Db::open(&path)?; // with the default index, as fast with 100 million keys
/// assert_eq!(db.map("letters")?.get("a")?, Some(b"alpha".to_vec()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Db<M: Media = Hardware> {
    inner: Arc<Inner<M>>,
}

struct Inner<M: Media> {
    maps: Maps<M>,
    /// The index for new maps.
    index: IndexKind,
    opened_in: f64,
    /// Changes of interrupted commits that the opening completed.
    carried_out: usize,
    /// The keeper of a database of level `disk`, shared with every [`Map`].
    keeper: Option<Arc<dyn Keeper>>,
}

/// Maintains the log and the checkpoints of a database.
pub(crate) trait Keeper: Alive {
    /// Takes a checkpoint: a full one, or whichever kind is smaller.
    fn checkpoint(&self, full: bool) -> Result<Checkpoint, Error>;

    /// Requests a checkpoint from a thread.
    fn request_checkpoint(&self);

    /// Returns statistics.
    fn stats(&self) -> LogStats;

    /// Sets the time within which all writes become durable; `None` leaves it to the operating system.
    fn set_sync_within(&self, time: Option<Duration>);

    /// Returns a closure that removes the keeper's files once the keeper and the pool are closed.
    fn removal(&self) -> Box<dyn FnOnce() -> Result<(), Error>>;
}

/// The maps of a database, also for owners that have no handle to it.
pub(crate) struct Maps<M: Media> {
    pub store: Store<M>,
    held: Arc<Mutex<Held>>,
    /// Names of maps that are being built and do not exist yet. Its lock is held for moments only.
    building: Arc<Mutex<HashSet<String>>>,
    /// Locked by statistics while they hold handles of the maps, and by a drop, so that the drop does not take these
    /// handles for uses of a map. Taken before `held`.
    looks: Arc<Mutex<()>>,
    pub walked: Arc<Walked>,
}

impl<M: Media> Clone for Maps<M> {
    fn clone(&self) -> Self {
        Maps {
            store: self.store.clone(),
            held: self.held.clone(),
            building: self.building.clone(),
            looks: self.looks.clone(),
            walked: self.walked.clone(),
        }
    }
}

/// The maps that are open.
#[derive(Default)]
pub(crate) struct Held {
    /// All handles to one map share its index.
    maps: HashMap<String, (IndexKind, Weak<dyn MapIndex>)>,
}

impl Held {
    /// Enters a map that was not open before.
    pub fn hold(&mut self, name: &str, kind: IndexKind, index: &Arc<dyn MapIndex>) {
        self.maps.insert(name.to_owned(), (kind, Arc::downgrade(index)));
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
        Ok(Db::of(Maps::new(store), index, carried_out, started, None))
    }

    /// Wraps a database that has a log.
    pub(crate) fn kept(
        maps: Maps<M>,
        index: IndexKind,
        carried_out: usize,
        started: Instant,
        keeper: Arc<dyn Keeper>,
    ) -> Db<M> {
        Db::of(maps, index, carried_out, started, Some(keeper))
    }

    fn of(
        maps: Maps<M>,
        index: IndexKind,
        carried_out: usize,
        started: Instant,
        keeper: Option<Arc<dyn Keeper>>,
    ) -> Db<M> {
        Db {
            inner: Arc::new(Inner {
                maps,
                index,
                opened_in: started.elapsed().as_secs_f64(),
                carried_out,
                keeper,
            }),
        }
    }

    pub(crate) fn maps_held(&self) -> &Maps<M> {
        &self.inner.maps
    }

    pub(crate) fn handle(&self, (kind, index): (IndexKind, Arc<dyn MapIndex>)) -> Map {
        Map::new(
            kind,
            index,
            self.inner.keeper.clone().map(|keeper| keeper as Arc<dyn Alive>),
        )
    }

    /// Returns the map of this name. Creates it if it does not exist, with the index that the
    /// [options](crate::Options::index) name.
    ///
    /// # Errors
    ///
    /// [`Error::MapName`] if the name is empty or longer than [`MAX_NAME`] bytes, [`Error::OtherKind`] if the map's
    /// index is unknown to this version, [`Error::LeftOut`] if this program is built without it, [`Error::MapExists`]
    /// while the map is being [built](Db::build_map), [`Error::Index`] if it does not exist and the database is opened
    /// read-only, [`Error::Heap`] if the pool is full or damaged.
    pub fn map(&self, name: &str) -> Result<Map, Error> {
        self.find_or_create(name, None)
    }

    /// Returns the map of this name, held by this index. Creates it if it does not exist.
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
    /// [`Error::OtherIndex`] if another index holds the map, and those of [`map`](Db::map).
    pub fn map_with(&self, name: &str, index: IndexKind) -> Result<Map, Error> {
        self.find_or_create(name, Some(index))
    }

    fn find_or_create(&self, name: &str, wanted: Option<IndexKind>) -> Result<Map, Error> {
        let Store { heap, traffic, .. } = self.store();
        let make = || heap.with_room(|| self.try_find_or_create(name, wanted));
        let map = traffic.with_log_room(make)?;
        // Another thread may have just created it.
        traffic.settle_all()?;
        Ok(map)
    }

    fn try_find_or_create(&self, name: &str, wanted: Option<IndexKind>) -> Result<Map, Error> {
        let mut held = self.inner.maps.held();
        if let Some(found) = self.inner.maps.find_in(&mut held, name, wanted)? {
            return Ok(self.handle(found));
        }
        self.create_in(&mut held, name, wanted.unwrap_or(self.inner.index))
    }

    /// Creates a map, unless one of this name exists.
    pub(crate) fn create_map(&self, name: &str, kind: IndexKind) -> Result<Map, Error> {
        let Store { heap, traffic, .. } = self.store();
        let make = || {
            let mut held = self.inner.maps.held();
            match self.inner.maps.find_in(&mut held, name, None)? {
                Some(_) => Err(Error::MapExists(name.to_owned())),
                None => self.create_in(&mut held, name, kind),
            }
        };
        traffic.with_log_room(|| heap.with_room(make))
    }

    fn create_in(&self, held: &mut Held, name: &str, kind: IndexKind) -> Result<Map, Error> {
        if self.inner.maps.building().contains(name) {
            return Err(Error::MapExists(name.to_owned()));
        }
        // Pinned, so that the heap does not wait for recovery: recovery may wait for the guard of a thread that waits
        // for the table.
        let _guard = heap::pin();
        let index = self.store().create(name, kind)?;
        held.hold(name, kind, &index);
        Ok(self.handle((kind, index)))
    }

    /// Returns the map of this name, if it exists.
    pub fn find_map(&self, name: &str) -> Result<Option<Map>, Error> {
        let found = self.inner.maps.find(name, None)?;
        // Another thread may have just created or dropped it.
        self.store().traffic.settle_all()?;
        Ok(found.map(|found| self.handle(found)))
    }

    /// Lists all maps by name, each with the index that holds it.
    pub fn maps(&self) -> Result<Vec<MapInfo>, Error> {
        let maps = self.existing_maps()?;
        self.store().traffic.settle_all()?;
        Ok(maps)
    }

    fn existing_maps(&self) -> Result<Vec<MapInfo>, Error> {
        let mut maps = self.store().maps()?;
        self.maps_held().leave_out_built(&mut maps, |map| map);
        Ok(maps)
    }

    /// Removes a map and everything in it; returns `false` if it does not exist. One durable store removes the map, so
    /// a crash leaves all of it or nothing. Freeing its space takes time in proportion to its size, and 10 to 20 bytes
    /// of memory per object. Meanwhile other maps are usable, and a new map of this name can be created.
    ///
    /// # Errors
    ///
    /// [`Error::MapInUse`] while a handle to the map, or any snapshot or view of one, exists. An error about damage is
    /// returned after the map is gone: the next recovery finds the space that was not freed.
    pub fn drop_map(&self, name: &str) -> Result<bool, Error> {
        let traffic = &self.store().traffic;
        let unlinked = traffic.with_log_room(|| self.try_unlink(name))?;
        let Some((removed, tracer)) = unlinked else {
            // Another thread may have just dropped it.
            traffic.settle_all()?;
            return Ok(false);
        };
        let settled = traffic.settle_all();
        removed.retire(&*tracer)?;
        Ok(settled.map(|()| true)?)
    }

    /// Unlinks a map that is to be dropped. Holds no lock when it returns, so that a checkpoint can make room for a
    /// retry.
    fn try_unlink(&self, name: &str) -> Result<Option<Unlinked<'_, M>>, Error> {
        loop {
            let closing = {
                let _kept_away = self.inner.maps.walked.keep_away(name);
                let _no_looks = self.inner.maps.looks();
                let mut held = self.inner.maps.held();
                if self.inner.maps.building().contains(name) {
                    return Ok(None);
                }
                if let Some((_, index)) = held.maps.get(name) {
                    if index.strong_count() > 0 {
                        return Err(Error::MapInUse(name.to_owned()));
                    }
                    held.maps.remove(name);
                }
                match self.store().closing_root(name)? {
                    Some(root) => root,
                    None => return self.store().unlink(name),
                }
            };
            // Closing may take long, since the threads of the index end. Other maps are usable meanwhile. The table is
            // checked again from time to time: the map may have been reopened.
            let heap = &self.store().heap;
            for turn in 0..TURNS {
                if !heap.is_attached(closing) {
                    break;
                }
                heap.media().wait(turn);
            }
        }
    }

    /// Returns the index for new maps that name none.
    pub(crate) fn new_maps(&self) -> IndexKind {
        self.inner.index
    }

    pub(crate) fn store(&self) -> &Store<M> {
        &self.inner.maps.store
    }

    /// Returns statistics that need no walk of the maps.
    pub fn stats(&self) -> Result<Stats, Error> {
        Ok(Stats {
            merges: self.inner.maps.merges(),
            log: self.log_stats(),
            ..self.store().stats(self.inner.opened_in, self.existing_maps()?)?
        })
    }

    /// Returns the number of changes that this opening completed, of commits that a crash had interrupted.
    pub fn carried_out(&self) -> usize {
        self.inner.carried_out
    }

    /// Returns recovery's progress. Recovery starts when the database is opened and runs beside every operation.
    pub fn recovery_progress(&self) -> Recovery {
        self.store().recovery()
    }

    /// Runs recovery in the calling thread and returns its outcome, for programs that open with [no recovery
    /// thread](crate::Options::recovery_threads) and choose the time themselves. If recovery has already started, waits
    /// for it. If the calling thread holds a [`Reader`](crate::Reader), for which recovery would wait, returns its
    /// present state at once.
    pub fn recover(&self) -> Recovery {
        self.store().recover_here();
        self.recovery_progress()
    }

    /// Waits until recovery has ended, and returns its outcome. Returns at once if recovery was never started, or if
    /// the calling thread holds a [`Reader`](crate::Reader), for which recovery would wait.
    pub fn wait_recovered(&self) -> Recovery {
        self.store().wait_recovered();
        self.recovery_progress()
    }

    /// Returns the file's free pages to the file system, and returns their number of bytes. Maps are usable meanwhile.
    /// The file system allocates blocks for the pages again when they are needed, which can fail for lack of space like
    /// any growth. Waits for recovery first, and starts it if it was never started. Writes do the same by themselves,
    /// piece by piece, when the pool has much more free space than it will soon need.
    ///
    /// # Errors
    ///
    /// [`Error::Pool`] if the file system fails; [`Error::Index`] if the database is opened read-only;
    /// [`Error::HoldsReader`] if the calling thread holds a [`Reader`](crate::Reader) and recovery has not ended.
    pub fn give_back(&self) -> Result<u64, Error> {
        self.store().give_back()
    }

    /// Walks the whole pool and reports inconsistencies: in the structure of each map, chunks in use that nothing links
    /// to, and chunks with two links. Waits for recovery first, and starts it if it was never started. No thread may
    /// write meanwhile, or the report may contain false faults.
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
    /// [`Error::Heap`] if the directory of the maps cannot be read; [`Error::HoldsReader`] if the calling thread holds
    /// a [`Reader`](crate::Reader) and recovery has not ended. Faults below the directory are in the report.
    pub fn check(&self) -> Result<Check, Error> {
        self.store().refuse_if_pinned()?;
        let mut names = self.store().named_maps()?;
        self.maps_held().leave_out_built(&mut names, |(_, map)| map);
        self.store().traffic.settle_all()?;
        let maps = names
            .iter()
            .map(|(name, map)| self.check_map(name, map.clone()))
            .collect();
        // No effect if recovery is running or has run.
        self.store().recover(1)?;
        let heap = match self.wait_recovered().state {
            RecoveryState::Done => {
                // Otherwise objects that a merge has allocated but not linked yet would count as lost.
                let maps = names.iter().filter_map(|(_, map)| self.find_map(&map.name).ok()?);
                let indexes: Vec<_> = maps.map(|map| map.index()).collect();
                let _quiesced: Vec<_> = indexes.iter().map(|index| index.quiesce()).collect();
                self.store().audit()
            }
            state => HeapCheck::fault(format!("no account to compare with: recovery is {state}")),
        };
        Ok(Check { maps, heap })
    }

    /// Checks the map whose root has this name.
    fn check_map(&self, name: &[u8], map: MapInfo) -> MapCheck {
        let found = text_of(name)
            .and_then(|name| self.find_map(name))
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

    /// Returns a map of this name held by the given index.
    #[cfg(feature = "doubles")]
    pub(crate) fn enter(&self, name: &str, index: &Arc<dyn MapIndex>) -> Map {
        let kind = self.inner.index;
        self.inner.maps.held().hold(name, kind, index);
        self.handle((kind, index.clone()))
    }
}

impl<M: Media> Maps<M> {
    pub fn new(store: Store<M>) -> Maps<M> {
        Maps {
            store,
            held: Arc::default(),
            building: Arc::default(),
            looks: Arc::default(),
            walked: Arc::default(),
        }
    }

    /// Leaves out the maps that are being built. Such a map does not exist yet, though it may have its root already.
    /// The caller has listed the roots before: a build that ends in between counts as ended then.
    pub fn leave_out_built<T>(&self, maps: &mut Vec<T>, info: impl Fn(&T) -> &MapInfo) {
        let building = self.building();
        maps.retain(|map| !building.contains(&info(map).name));
    }

    /// Returns the log's end at a moment when no write is in progress and no map is being created: the pool contains
    /// all of the log up to there.
    pub fn end_at_rest<D: Disk>(&self, log: &Log<D>) -> Result<Lsn, Error> {
        self.at_rest(|_| Ok(log.appended()))
    }

    /// Records in the pool the log position up to which the pool contains all of the log, durably.
    pub fn note_position<D: Disk>(&self, log: &Log<D>) -> Result<(), Error> {
        self.at_rest(|pool| Ok(pool.set_log_position(Some(log.durable().0))?))
    }

    /// Runs `look` while no write is in progress and no map is being created.
    fn at_rest<T>(&self, look: impl FnOnce(&Pool<M>) -> Result<T, Error>) -> Result<T, Error> {
        let Store { heap, traffic, .. } = &self.store;
        // A thread that creates a map does not pass the gate, but holds the table from the log record to the root.
        let _held = self.held();
        let _closed = traffic.gate.close(heap.media())?;
        look(heap.pool())
    }

    /// Returns the map of this name, shared with its other handles.
    pub fn find(&self, name: &str, wanted: Option<IndexKind>) -> Result<Option<Opened>, Error> {
        self.find_in(&mut self.held(), name, wanted)
    }

    pub fn find_in(
        &self,
        held: &mut Held,
        name: &str,
        wanted: Option<IndexKind>,
    ) -> Result<Option<Opened>, Error> {
        if name.is_empty() || name.len() > MAX_NAME {
            return Err(Error::MapName(name.len()));
        }
        if self.building().contains(name) {
            return Ok(None);
        }
        let shared = held
            .maps
            .get(name)
            .and_then(|(kind, index)| Some((*kind, index.upgrade()?)));
        if let Some((kind, index)) = shared {
            return match wanted {
                Some(wanted) if wanted != kind => Err(Error::other_index(name, kind, wanted)),
                _ => Ok(Some((kind, index))),
            };
        }
        let found = self.store.open(name, wanted)?;
        Ok(found.inspect(|(kind, index)| held.hold(name, *kind, index)))
    }

    /// Returns the merge counters of each open map.
    fn merges(&self) -> BTreeMap<String, Merges> {
        let _look = self.looks();
        let open =
            |(name, (_, index)): (&String, &(_, Weak<dyn MapIndex>))| Some((name.clone(), index.upgrade()?));
        // The handles are dropped after the table is unlocked, since dropping a map's last handle ends its threads.
        let open: Vec<_> = self.held().maps.iter().filter_map(open).collect();
        let merges = open
            .iter()
            .filter_map(|(name, index)| Some((name.clone(), index.merges()?)));
        merges.collect()
    }

    fn looks(&self) -> MutexGuard<'_, ()> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the names of the maps that are being built. Nothing else is waited for while it is locked.
    pub(crate) fn building(&self) -> MutexGuard<'_, HashSet<String>> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn held(&self) -> MutexGuard<'_, Held> {
        // A panic elsewhere cannot leave the table half changed: each change is one insert or remove.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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
