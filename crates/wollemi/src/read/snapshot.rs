//! Snapshots: all maps as they were at one moment, while other threads write.
//!
//! Taking one copies nothing. While it exists, the first change of a key records the key's before-image in memory
//! (`before_images`). A reader of the snapshot reads the index and then the images, which take precedence.

use crate::entry::Entry;
use crate::read::merge::{self, Read};
use crate::write::before_images::Images;
use crate::write::traffic::Traffic;
use crate::{Db, Error, Hardware, IndexKind, KeyRange, Map, MapInfo, Media};
use index::{Direction, ReadAhead, Refill};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

/// All maps of a database at the moment the snapshot was taken. Many threads may read it.
///
/// It shows every write acknowledged before that moment, none that began after it, and each batch as a whole or not at
/// all.
///
/// While it exists, the first change of each key copies the key's old state (key, value and some 80 bytes) into memory,
/// for each snapshot that lacks it, up to the bound of [`Db::snapshot_within`]. Dropping the snapshot and its views
/// frees these copies. A writer waits for a snapshot's readers at most as long as they take to read 512 copies, or a
/// megabyte of them. Taking a snapshot waits for the writes in progress. No map can be dropped while a snapshot exists.
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

/// A snapshot's before-images. They are recorded until the snapshot and all its views are dropped.
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
    /// Takes a snapshot of all maps, readable while other threads write.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if an [unfinished](Error::Unfinished) batch has stopped all writing.
    pub fn snapshot(&self) -> Result<Snapshot<M>, Error> {
        self.snapshot_within(u64::MAX)
    }

    /// Like [`snapshot`](Db::snapshot), with a limit of `max` bytes on the memory for changes made while it exists
    /// ([`Snapshot::memory`]). When it would need more, writers continue, and its readers get
    /// [`Error::SnapshotOutgrown`].
    ///
    /// # Errors
    ///
    /// Those of [`snapshot`](Db::snapshot).
    pub fn snapshot_within(&self, max: u64) -> Result<Snapshot<M>, Error> {
        Snapshot::new(self.clone(), max)
    }
}

impl<M: Media> Snapshot<M> {
    fn new(db: Db<M>, max: u64) -> Result<Snapshot<M>, Error> {
        let store = db.store();
        let closed = store.traffic.gate.close(store.heap.media())?;
        let mut maps = store.maps()?;
        let moment = Arc::new(Moment {
            traffic: store.traffic.clone(),
            images: store.traffic.before_images.begin(max),
        });
        drop(closed);
        // A build that has not ended yet comes after the snapshot, even if the map has its root already.
        db.maps_held().leave_out_built(&mut maps, |map| map);
        // Everything it shows is durable from the start, so its readers do not wait.
        store.traffic.settle_all()?;
        Ok(Snapshot {
            moment,
            maps,
            db: db.clone(),
        })
    }

    /// Refuses to copy the maps if one is not found by its name.
    pub(crate) fn refuse_non_utf8_names(&self) -> Result<(), Error> {
        self.db.store().refuse_non_utf8_names()
    }

    /// Returns the maps that existed at that moment, by name.
    pub fn maps(&self) -> &[MapInfo] {
        &self.maps
    }

    /// Returns a map as it was. A map created later is empty.
    ///
    /// # Errors
    ///
    /// [`Error::OtherDatabase`]
    pub fn view(&self, map: &Map) -> Result<View, Error> {
        if !std::ptr::eq(map.index.gate(), &self.moment.traffic.gate) {
            return Err(Error::OtherDatabase(map.name().to_owned()));
        }
        Ok(View {
            map: map.clone(),
            made_since: self.maps.iter().all(|info| info.name != map.name()),
            moment: self.moment.clone(),
        })
    }

    /// Returns the map of this name as it was; `None` if no such map exists.
    ///
    /// # Errors
    ///
    /// Those of [`Db::map`].
    pub fn find_view(&self, name: &str) -> Result<Option<View>, Error> {
        let map = self.db.find_map(name)?;
        map.map(|map| self.view(&map)).transpose()
    }

    /// Returns the path of the pool's file.
    pub(crate) fn pool_path(&self) -> Option<&Path> {
        self.db.store().heap.pool().path()
    }

    /// Returns the approximate memory, in bytes, that the snapshot uses for later changes.
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

/// One map as it was when a snapshot was taken. It may be sent to another thread, and may outlive the [`Snapshot`].
#[derive(Clone, Debug)]
pub struct View {
    pub(super) map: Map,
    /// Whether the map did not exist yet. Then the view is empty, whatever the images contain: the map may have been
    /// built with content.
    made_since: bool,
    moment: Arc<Moment>,
}

impl View {
    /// Returns the map's name.
    pub fn name(&self) -> &str {
        self.map.name()
    }

    /// Returns the kind of the index that holds the map.
    pub fn index_kind(&self) -> IndexKind {
        self.map.index_kind()
    }

    /// Returns a copy of the value that the key had.
    ///
    /// # Errors
    ///
    /// [`Error::SnapshotOutgrown`]. [`Error::Index`] if the key is too long or the pool is damaged.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        if self.made_since {
            return Ok(None);
        }
        let key = key.as_ref();
        // The index before the images: see `before_images`.
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

    /// Returns copies of the values that many keys had, in the keys' order. Faster than single [`get`](View::get)s,
    /// because the keys' cache misses overlap.
    ///
    /// # Errors
    ///
    /// Those of [`get`](View::get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let mut values = vec![None; keys.len()];
        if self.made_since {
            return Ok(values);
        }
        let keys: Vec<&[u8]> = keys.iter().map(K::as_ref).collect();
        // The index before the images: see `before_images`.
        self.map
            .index
            .bare()
            .multi_get(&keys, &heap::pin(), &mut |i, value| {
                values[i] = value.map(|value| value.to_vec());
            })?;
        for (key, value) in keys.iter().zip(&mut values) {
            let place = self.map.index.order().place(key);
            if let Some(before) = self.moment.images.of(self.map.name(), &place) {
                *value = before.map(|bytes| bytes.to_vec());
            }
        }
        self.moment.images.is_whole()?;
        Ok(values)
    }

    /// Returns whether the key was present.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.get(key)?.is_some())
    }

    /// Iterates over all entries, in key order or, [without one](IndexKind::is_ordered), in the index's own order.
    pub fn iter(&self) -> ViewIter {
        self.range(..)
    }

    /// Iterates over the entries between two bounds. Crossed bounds are an empty range. The first item is an error if
    /// the index has [no order](IndexKind::is_ordered), unless both bounds are open (`..`).
    pub fn range(&self, keys: impl KeyRange) -> ViewIter {
        let (lower, upper) = keys.bounds();
        ViewIter {
            view: self.clone(),
            ahead: ReadAhead::new(self.map.index.order(), lower, upper),
            has_ended: false,
        }
    }

    /// Iterates over the entries whose keys start with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> ViewIter {
        self.range(index::prefix_bounds(prefix.as_ref()))
    }

    /// Reads the next entries as they were, from one end; returns whether it stopped before the other end. It yields no
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
            let mut read = Read::batch(self.map.index.bare(), bounds, direction, limit)?;
            let covered = read.covered(bounds, direction)?;
            let places = (
                covered.0.map(|key| order.place(key)),
                covered.1.map(|key| order.place(key)),
            );
            let (images, more) = self.moment.images.batch(self.map.name(), places, direction);
            let mut reached = read.reached();
            if let Some((last, _)) = images.last().filter(|_| more) {
                // Keys after the last of these images are read again, with their images.
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
/// After it has yielded an error, it ends.
#[derive(Debug)]
pub struct ViewIter {
    view: View,
    ahead: ReadAhead<Vec<u8>, Vec<u8>>,
    /// Whether it has yielded an error or its last entry.
    has_ended: bool,
}

impl ViewIter {
    fn step(&mut self, direction: Direction) -> Option<Result<Entry, Error>> {
        if self.has_ended {
            return None;
        }
        let view = &self.view;
        let entry = self.ahead.next(direction, |batch| view.fill(batch, direction));
        let entry = match view.moment.images.is_whole() {
            Ok(()) => entry.map(|entry| Ok(entry?)),
            Err(outgrown) => Some(Err(outgrown)),
        };
        self.has_ended = !matches!(entry, Some(Ok(_)));
        entry
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
