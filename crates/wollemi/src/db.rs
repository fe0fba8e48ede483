//! The database: one pool, its heap, and the maps in it. Durability: `durable`.

mod durable;

use crate::report::{
    Check, Checkpoint, HeapCheck, LogStats, MapCheck, MapInfo, Recovery, RecoveryState, Stats,
};
use crate::write::roots::Unlinked;
use crate::write::store::Store;
use crate::write::traffic::{Alive, MapIndex};
use crate::write::walked::Walked;
use crate::{Error, Hardware, IndexKind, MAX_NAME, Map, Media};
use index::{Faults, Merges};
use log::{Disk, Log, Lsn};
use pmem::Pool;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Turns of a wait for a map that is being closed, between two looks at the table of maps.
const TURNS: u32 = 1000;

/// A database: a pool of named maps. A clone is another handle to the same database.
///
/// The pool is closed, and marked so, when the last handle to it and to its maps is gone; [`Db::close`] does it and tells
/// of errors.
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
    maps: Maps<M>,
    /// The index of new maps.
    index: IndexKind,
    opened_in: f64,
    /// Changes of commits that the opening has carried out.
    carried_out: usize,
    /// The keeper of a database of level `disk`. Every [`Map`] has it, too.
    keeper: Option<Arc<dyn Keeper>>,
}

/// What looks after the log and the checkpoints of a database.
pub(crate) trait Keeper: Alive {
    /// Takes a checkpoint: of all, or of what is less.
    fn checkpoint(&self, full: bool) -> Result<Checkpoint, Error>;

    /// Has a thread take a checkpoint.
    fn ask_for_checkpoint(&self);

    /// How it stands.
    fn stats(&self) -> LogStats;

    /// Sets the time within which all writes become durable; `None` leaves it to the operating system.
    fn set_sync_within(&self, time: Option<Duration>);

    /// What removes its files, when it and the pool are closed.
    fn removal(&self) -> Box<dyn FnOnce() -> Result<(), Error>>;
}

/// The maps of a database, also for owners without a handle of it.
pub(crate) struct Maps<M: Media> {
    pub store: Store<M>,
    held: Arc<Mutex<Held>>,
    /// Held by statistics while they have handles of the maps, which are no use of a map, and by a drop. Before `held`.
    looks: Arc<Mutex<()>>,
    pub walked: Arc<Walked>,
}

impl<M: Media> Clone for Maps<M> {
    fn clone(&self) -> Self {
        Maps {
            store: self.store.clone(),
            held: self.held.clone(),
            looks: self.looks.clone(),
            walked: self.walked.clone(),
        }
    }
}

/// The maps that are open, or being built.
#[derive(Default)]
pub(crate) struct Held {
    /// Two handles to one map share its index.
    maps: HashMap<String, (IndexKind, Weak<dyn MapIndex>)>,
    /// Names of maps that are not there before they are built.
    pub(crate) building: HashSet<String>,
}

impl Held {
    /// A map that was not open before.
    pub fn hold(&mut self, name: &str, kind: IndexKind, index: &Arc<dyn MapIndex>) {
        self.maps.insert(name.to_owned(), (kind, Arc::downgrade(index)));
    }
}

/// What a map was opened as, and its index.
type Found = (IndexKind, Arc<dyn MapIndex>);

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

    /// A database with a log.
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

    /// The map of this name; it is created if it is not there, with the index that the
    /// [options](crate::Options::index) name.
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
        let Store { heap, traffic, .. } = self.store();
        let make = || heap.with_room(|| self.try_find_or_create(name, wanted));
        let map = traffic.with_log_room(make)?;
        // It may have been made just now.
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

    /// Makes a map, unless there is one of this name.
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
        if held.building.contains(name) {
            return Err(Error::MapExists(name.to_owned()));
        }
        // Pinned, so that the heap does not wait for recovery, which may wait for a guard of a thread that waits for
        // the table.
        let _guard = heap::pin();
        let index = self.store().create(name, kind)?;
        held.hold(name, kind, &index);
        Ok(self.handle((kind, index)))
    }

    /// The map of this name, if there is one.
    pub fn find_map(&self, name: &str) -> Result<Option<Map>, Error> {
        let found = self.inner.maps.find(name, None)?;
        // It may have been made or dropped just now.
        self.store().traffic.settle_all()?;
        Ok(found.map(|found| self.handle(found)))
    }

    /// All maps, by name, and what holds them.
    pub fn maps(&self) -> Result<Vec<MapInfo>, Error> {
        let maps = self.store().maps()?;
        self.store().traffic.settle_all()?;
        Ok(maps)
    }

    /// Removes a map and all that it holds; `false` if there is no such map. The map is gone by one durable store:
    /// a crash leaves all of it or nothing. Giving back its space takes time in proportion to its size, and memory: 10
    /// to 20 bytes for each of its objects. Meanwhile other maps can be used, and a new one of this name can be made.
    ///
    /// # Errors
    ///
    /// [`Error::MapInUse`] while there is a handle to the map, or any snapshot. An error about damage comes after the
    /// map is gone: the next recovery then finds the space that was not given back.
    pub fn drop_map(&self, name: &str) -> Result<bool, Error> {
        let traffic = &self.store().traffic;
        let unlinked = traffic.with_log_room(|| self.try_unlink(name))?;
        let Some((removed, tracer)) = unlinked else {
            // It may have been dropped just now.
            traffic.settle_all()?;
            return Ok(false);
        };
        let settled = traffic.settle_all();
        removed.retire(&*tracer)?;
        Ok(settled.map(|()| true)?)
    }

    /// Unlinks a map that is to be dropped. Holds nothing when it returns, so that a checkpoint may make room for
    /// another try.
    fn try_unlink(&self, name: &str) -> Result<Option<Unlinked<'_, M>>, Error> {
        loop {
            let closing = {
                let _kept_away = self.inner.maps.walked.keep_away(name);
                let _no_looks = self.inner.maps.looks();
                let mut held = self.inner.maps.held();
                if held.building.contains(name) {
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
            // Closing may take long, since the threads of the index end. Other maps are used meanwhile. Now and then the
            // table is looked at again: the map may have been opened once more.
            let heap = &self.store().heap;
            for turn in 0..TURNS {
                if !heap.is_attached(closing) {
                    break;
                }
                heap.media().wait(turn);
            }
        }
    }

    /// The index of maps that are made without a word about it.
    pub(crate) fn new_maps(&self) -> IndexKind {
        self.inner.index
    }

    pub(crate) fn store(&self) -> &Store<M> {
        &self.inner.maps.store
    }

    /// What there is to say without walking the maps.
    pub fn stats(&self) -> Result<Stats, Error> {
        Ok(Stats {
            merges: self.inner.maps.merges(),
            log: self.log_stats(),
            ..self.store().stats(self.inner.opened_in)?
        })
    }

    /// How many changes the opening has made of a batch that was committed before it, and that a crash had interrupted.
    pub fn carried_out(&self) -> usize {
        self.inner.carried_out
    }

    /// Recovery's progress. It starts when the database is opened and runs beside every operation.
    pub fn recovery_progress(&self) -> Recovery {
        self.store().recovery()
    }

    /// Recovers in the calling thread, and returns how it ended: for programs that open with [no thread for
    /// it](crate::Options::recovery_threads) and choose the time. Where recovery was started before, waits. A thread that
    /// holds a [`Reader`](crate::Reader), for which recovery waits, gets its present state at once.
    pub fn recover(&self) -> Recovery {
        self.store().recover_here();
        self.recovery_progress()
    }

    /// Waits until recovery has ended, and returns how. Returns at once if it was never started, and to a thread that
    /// holds a [`Reader`](crate::Reader), for which recovery waits.
    pub fn wait_recovered(&self) -> Recovery {
        self.store().wait_recovered();
        self.recovery_progress()
    }

    /// Gives the file's free pages back to its file system; returns how many bytes these were. Maps may be used
    /// meanwhile. The pages are given blocks again when they are needed, which fails like any growth where there are
    /// none. Waits for recovery first. Where the pool has much more free space than it will need soon, writes do the
    /// same by themselves, a piece at a time.
    ///
    /// # Errors
    ///
    /// [`Error::Pool`] where the file system fails; [`Error::HoldsReader`] to a thread that holds a
    /// [`Reader`](crate::Reader) before recovery has ended.
    pub fn give_back(&self) -> Result<u64, Error> {
        self.store().give_back()
    }

    /// Walks everything and reports what does not fit: the structure of each map, chunks in use that nothing leads to,
    /// and chunks to which two links lead. Waits for recovery first. No thread may write meanwhile, or the report may
    /// name faults that are none.
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
    /// [`Error::Heap`] if the directory of the maps cannot be read; [`Error::HoldsReader`] to a thread that holds a
    /// [`Reader`](crate::Reader) before recovery has ended. What is wrong below the directory is in the report.
    pub fn check(&self) -> Result<Check, Error> {
        self.store().refuse_if_pinned()?;
        let names = self.maps()?;
        let maps = names.iter().map(|map| self.check_map(map.clone())).collect();
        // Does nothing if recovery is under way, or was.
        self.store().recover(1)?;
        let heap = match self.wait_recovered().state {
            RecoveryState::Done => {
                // Objects that a merge has made and not linked yet would count as lost.
                let maps = names.iter().filter_map(|map| self.find_map(&map.name).ok()?);
                let indexes: Vec<_> = maps.map(|map| map.index()).collect();
                let _quiesced: Vec<_> = indexes.iter().map(|index| index.quiesce()).collect();
                self.store().audit()
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
        self.inner.maps.held().hold(name, kind, index);
        self.handle((kind, index.clone()))
    }
}

impl<M: Media> Maps<M> {
    pub fn new(store: Store<M>) -> Maps<M> {
        Maps {
            store,
            held: Arc::default(),
            looks: Arc::default(),
            walked: Arc::default(),
        }
    }

    /// The log's end at a moment at which no write is under way, and no map is being made: all of the log up to there
    /// is in the pool.
    pub fn end_at_rest<D: Disk>(&self, log: &Log<D>) -> Result<Lsn, Error> {
        self.at_rest(|_| Ok(log.appended()))
    }

    /// Notes in the pool up to where all of the log is in it, and durable.
    pub fn note_position<D: Disk>(&self, log: &Log<D>) -> Result<(), Error> {
        self.at_rest(|pool| Ok(pool.set_log_position(Some(log.durable().0))?))
    }

    /// Looks when no write is under way, and no map is being made.
    fn at_rest<T>(&self, look: impl FnOnce(&Pool<M>) -> Result<T, Error>) -> Result<T, Error> {
        let Store { heap, traffic, .. } = &self.store;
        // A thread that makes a map is behind no gate, but holds the table between the record and the root.
        let _held = self.held();
        let _closed = traffic.gate.close(heap.media())?;
        look(heap.pool())
    }

    /// The map of this name, shared with its other handles.
    pub fn find(&self, name: &str, wanted: Option<IndexKind>) -> Result<Option<Found>, Error> {
        self.find_in(&mut self.held(), name, wanted)
    }

    pub fn find_in(
        &self,
        held: &mut Held,
        name: &str,
        wanted: Option<IndexKind>,
    ) -> Result<Option<Found>, Error> {
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
                _ => Ok(Some((kind, index))),
            };
        }
        let found = self.store.open(name, wanted)?;
        Ok(found.inspect(|(kind, index)| held.hold(name, *kind, index)))
    }

    /// The merges of each open map.
    fn merges(&self) -> BTreeMap<String, Merges> {
        let _look = self.looks();
        let open =
            |(name, (_, index)): (&String, &(_, Weak<dyn MapIndex>))| Some((name.clone(), index.upgrade()?));
        // The handles go when the table is not locked, since the last of a map ends its threads.
        let open: Vec<_> = self.held().maps.iter().filter_map(open).collect();
        let merges = open
            .iter()
            .filter_map(|(name, index)| Some((name.clone(), index.merges()?)));
        merges.collect()
    }

    fn looks(&self) -> MutexGuard<'_, ()> {
        self.looks.lock().unwrap_or_else(PoisonError::into_inner)
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
