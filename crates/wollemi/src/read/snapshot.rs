//! Snapshots: all maps as they were at one moment, while other threads write.
//!
//! Taking one copies nothing. While it lives, the first change of a key records the key's before-image in memory
//! (`before_images`); a reader of the snapshot reads the index and then the images, which take precedence.

use crate::entry::Entry;
use crate::read::merge::{self, Read};
use crate::write::before_images::Images;
use crate::write::traffic::Traffic;
use crate::{Db, Error, Hardware, IndexKind, KeyRange, Map, MapInfo, Media};
use index::{Direction, ReadAhead, Refill};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// All maps of a database as they were when it was taken. It may be read from many threads.
///
/// It shows every write that was acknowledged before, none that began after, and each batch whole or not at all.
///
/// While it lives, the first change of each key makes a copy of what the key held (key, value and some 80 bytes), in
/// memory and for each snapshot that has none, up to the bound of [`Db::snapshot_within`]; dropping the snapshot and
/// its views frees these copies. A writer waits for its readers for at most as long as it takes to read 512 of the
/// copies, or a megabyte of them. Taking a snapshot waits for the writes that are under way. No map can be dropped
/// before the snapshot is.
///
/// ```
/// let db = wollemi::Db::anonymous()?;
/// let map = db.map("letters")?;
/// map.load([("a", "1"), ("b", "2")])?;
///
/// let snapshot = db.snapshot()?;
/// map.upsert("a", "one")?;
/// map.remove("b")?;
/// map.upsert("c", "three")?;
///
/// let then = snapshot.view(&map)?;
/// assert_eq!(then.get("a")?, Some(b"1".to_vec()));
/// let keys = then.iter().map(|entry| Ok(entry?.0)).collect::<Result<Vec<_>, wollemi::Error>>()?;
/// assert_eq!(keys, [b"a", b"b"]);
/// # Ok::<(), wollemi::Error>(())
/// ```
pub struct Snapshot<M: Media = Hardware> {
    db: Db<M>,
    moment: Arc<Moment>,
    maps: Vec<MapInfo>,
}

/// A snapshot's before-images. They are recorded until the snapshot and all its views are gone.
#[derive(Debug)]
struct Moment {
    traffic: Arc<Traffic>,
    images: Arc<Images>,
}

impl Drop for Moment {
    fn drop(&mut self) {
        self.traffic.before_images.end(&self.images);
    }
}

impl<M: Media> Db<M> {
    /// All maps as they are now, to be read while others write.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] where an [unfinished](Error::Unfinished) batch has stopped all writing.
    pub fn snapshot(&self) -> Result<Snapshot<M>, Error> {
        self.snapshot_within(u64::MAX)
    }

    /// As [`snapshot`](Db::snapshot), of a snapshot that takes at most `max` bytes of memory for what is changed while
    /// it lives ([`Snapshot::memory`]). When it would need more, writers go on, and its readers get
    /// [`Error::SnapshotOutgrown`].
    ///
    /// # Errors
    ///
    /// As [`snapshot`](Db::snapshot).
    pub fn snapshot_within(&self, max: u64) -> Result<Snapshot<M>, Error> {
        Snapshot::new(self.clone(), max)
    }
}

impl<M: Media> Snapshot<M> {
    fn new(db: Db<M>, max: u64) -> Result<Snapshot<M>, Error> {
        let store = db.store();
        let closed = store.traffic.gate.close(store.heap.media())?;
        let maps = store.maps()?;
        let moment = Arc::new(Moment {
            traffic: store.traffic.clone(),
            images: store.traffic.before_images.begin(max),
        });
        drop(closed);
        // Everything that it shows is durable from the beginning, so its readers do not wait.
        store.traffic.settle_all()?;
        Ok(Snapshot {
            moment,
            maps,
            db: db.clone(),
        })
    }

    /// The maps that there were, by name.
    pub fn maps(&self) -> &[MapInfo] {
        &self.maps
    }

    /// A map as it was. A map that was made since is empty.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDatabase`]
    pub fn view(&self, map: &Map) -> Result<View, Error> {
        if !Arc::ptr_eq(map.index.traffic(), &self.moment.traffic) {
            return Err(Error::OtherDatabase(map.name().to_owned()));
        }
        Ok(View {
            map: map.clone(),
            made_since: self.maps.iter().all(|info| info.name != map.name()),
            moment: self.moment.clone(),
        })
    }

    /// The map of this name as it was; `None` if there is no such map.
    ///
    /// # Errors
    ///
    /// As [`Db::map`].
    pub fn find_view(&self, name: &str) -> Result<Option<View>, Error> {
        let map = self.db.find_map(name)?;
        map.map(|map| self.view(&map)).transpose()
    }

    /// The pool's file.
    pub(crate) fn pool_path(&self) -> Option<&Path> {
        self.db.store().heap.pool().path()
    }

    /// Bytes of memory that the snapshot takes for what was changed since, roughly.
    pub fn memory(&self) -> u64 {
        self.moment.images.bytes()
    }
}

impl<M: Media> std::fmt::Debug for Snapshot<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshot")
            .field("maps", &self.maps)
            .finish_non_exhaustive()
    }
}

/// One map as it was when a snapshot was taken. It may be sent to another thread, and outlive the [`Snapshot`].
#[derive(Clone, Debug)]
pub struct View {
    map: Map,
    /// Whether the map did not exist yet. The view is empty then, whatever the images say: the map may have been built
    /// with content.
    made_since: bool,
    moment: Arc<Moment>,
}

impl View {
    /// The map's name.
    pub fn name(&self) -> &str {
        self.map.name()
    }

    /// Which index holds the map.
    pub fn index_kind(&self) -> IndexKind {
        self.map.index_kind()
    }

    /// What the key held, copied.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        if self.made_since {
            return Ok(None);
        }
        let key = key.as_ref();
        // In this order: see `before_images`.
        let guard = heap::pin();
        let now = self
            .map
            .index
            .bare()
            .get(key, &guard)?
            .map(|value| value.to_vec());
        let place = self.map.index.order().place(key);
        let image = self.moment.images.of(self.map.name(), &place);
        self.moment.images.is_whole()?;
        Ok(match image {
            Some(before) => before.map(|bytes| bytes.to_vec()),
            None => now,
        })
    }

    /// Whether the key was present.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.get(key)?.is_some())
    }

    /// All entries, in key order, or in that of an index [without one](IndexKind::is_ordered).
    pub fn iter(&self) -> ViewIter {
        self.range(..)
    }

    /// The entries between two bounds. Bounds that cross are an empty range. The first one is an error where the index
    /// has [no order](IndexKind::is_ordered).
    pub fn range(&self, keys: impl KeyRange) -> ViewIter {
        let (lower, upper) = keys.bounds();
        ViewIter {
            view: self.clone(),
            ahead: ReadAhead::new(self.map.index.order(), lower, upper),
            outgrown: false,
        }
    }

    /// The entries whose keys start with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> ViewIter {
        self.range(index::prefix_bounds(prefix.as_ref()))
    }

    /// Reads the next entries as they were, from one end; returns whether it stopped before the other. It yields no
    /// entry only if none is left.
    fn fill(&self, batch: Refill<'_, Vec<u8>, Vec<u8>>, direction: Direction) -> Result<bool, index::Error> {
        let Refill {
            lower,
            upper,
            limit,
            entries,
        } = batch;
        if self.made_since {
            return Ok(false);
        }
        let (mut lower, mut upper) = (lower.map(<[u8]>::to_vec), upper.map(<[u8]>::to_vec));
        let order = self.map.index.order();
        loop {
            let bounds = (
                lower.as_ref().map(Vec::as_slice),
                upper.as_ref().map(Vec::as_slice),
            );
            if !order.has_between(bounds.0, bounds.1) {
                return Ok(false);
            }
            let mut read = Read::some(self.map.index.bare(), bounds, direction, limit)?;
            let covered = read.covered(bounds, direction)?;
            let places = (
                covered.0.map(|key| order.place(key)),
                covered.1.map(|key| order.place(key)),
            );
            let (images, more) = self.moment.images.some(self.map.name(), places, direction);
            let mut reached = read.reached();
            if let Some((last, _)) = images.last().filter(|_| more) {
                // Keys behind the last of these images are read again, with the images there.
                let found = &mut read.entries;
                found.truncate(found.partition_point(|(key, _)| !order.comes_first(last, key, direction)));
                reached = Some(last.clone());
            }
            merge::merge(read.entries, images, order, direction, entries);
            match (reached, direction) {
                (None, _) => return Ok(false),
                (Some(_), _) if !entries.is_empty() => return Ok(true),
                (Some(key), Direction::Forward) => lower = Bound::Excluded(key),
                (Some(key), Direction::Reverse) => upper = Bound::Excluded(key),
            }
        }
    }
}

/// A double-ended iterator over a [`View`]'s entries in key order, which owns what it yields.
///
/// An error ends the iteration after it has been yielded once.
#[derive(Debug)]
pub struct ViewIter {
    view: View,
    ahead: ReadAhead<Vec<u8>, Vec<u8>>,
    /// Whether it has yielded that the snapshot is outgrown.
    outgrown: bool,
}

impl ViewIter {
    fn step(&mut self, direction: Direction) -> Option<Result<Entry, Error>> {
        let view = &self.view;
        let entry = self.ahead.next(direction, |batch| view.fill(batch, direction));
        match view.moment.images.is_whole() {
            Ok(()) => entry.map(|entry| Ok(entry?)),
            Err(_) if std::mem::replace(&mut self.outgrown, true) => None,
            Err(outgrown) => Some(Err(outgrown)),
        }
    }
}

impl Iterator for ViewIter {
    type Item = Result<Entry, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        self.step(Direction::Forward)
    }
}

impl DoubleEndedIterator for ViewIter {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.step(Direction::Reverse)
    }
}

impl std::iter::FusedIterator for ViewIter {}
