//! Maps that are built of sorted pairs.

use crate::write::journal::Durability;
use crate::{Db, Error, IndexKind, Map, Media};
use index::{Parts, Sorted, Upsert};

/// The name of a map that is being built, until this is dropped.
struct Building<'d, M: Media> {
    db: &'d Db<M>,
    name: &'d str,
}

impl<'d, M: Media> Building<'d, M> {
    /// Takes the name.
    fn begin(db: &'d Db<M>, name: &'d str) -> Result<Self, Error> {
        let maps = db.maps_held();
        let mut held = maps.held();
        let there = maps.find_in(&mut held, name, None)?.is_some();
        if there || !held.building.insert(name.to_owned()) {
            return Err(Error::MapExists(name.to_owned()));
        }
        Ok(Building { db, name })
    }
}

impl<M: Media> Drop for Building<'_, M> {
    fn drop(&mut self) {
        self.db.maps_held().held().building.remove(self.name);
    }
}

impl<M: Media> Db<M> {
    /// Makes a map of pairs that ascend by their keys, each key once. The map is there, durable, when this returns, and
    /// not before: a crash leaves all of it or nothing. An index with a builder of its own neither searches for its
    /// keys nor persists them one by one, and packs them as densely as it can.
    ///
    /// Until then others find no map of this name, and cannot make one. A snapshot that was taken before shows the map
    /// empty.
    ///
    /// Not so at level [`Disk`](crate::Level::Disk), where the log is to have the pairs: the map is made first, and the
    /// pairs are written one by one. All are durable when this returns; others see the map meanwhile and may write to it,
    /// and a crash or an error leaves the map with what had been written.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let squares = db.build_map("squares", (0..1000u64).map(|i| (i.to_be_bytes(), (i * i).to_le_bytes())))?;
    /// assert_eq!(squares.count()?, 1000);
    /// let error = db.build_map("letters", [("b", "2"), ("a", "1")]).expect_err("out of order");
    /// assert!(matches!(error, wollemi::Error::Index(wollemi::IndexError::OutOfOrder)));
    /// assert!(db.find_map("letters")?.is_none());
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::MapExists`] for a map that is there, or being built; [`Error::MapName`]; [`Error::Index`] with
    /// [`OutOfOrder`](crate::IndexError::OutOfOrder) where keys do not ascend, where a key or a value is too long, or
    /// the pool is full. Nothing is left of the map then, nor where `pairs` panics, except at level
    /// [`Disk`](crate::Level::Disk).
    pub fn build_map<K, V>(&self, name: &str, pairs: impl IntoIterator<Item = (K, V)>) -> Result<Map, Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.build_map_with(name, self.new_maps(), Parts::new(&mut Sorted::new(pairs)))
    }

    /// As [`build_map`](Db::build_map), of a map held by this index, from one source of pairs or several that are read
    /// by a thread each.
    ///
    /// ```
    /// use wollemi::{IndexKind, Parts, Sorted};
    ///
    /// let db = wollemi::Db::anonymous()?;
    /// let mut lower = Sorted::new([("a", "1"), ("b", "2")]);
    /// let mut upper = Sorted::new([("m", "3"), ("z", "4")]);
    /// let parts = Parts::new(&mut lower).and(b"m", &mut upper);
    /// assert_eq!(db.build_map_with("letters", IndexKind::Roart, parts)?.count()?, 4);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`build_map`](Db::build_map), and what a source fails with.
    pub fn build_map_with(&self, name: &str, index: IndexKind, parts: Parts<'_>) -> Result<Map, Error> {
        if self.store().traffic.journal.get().is_some() {
            return self.write_map(name, index, parts);
        }
        let building = Building::begin(self, name)?;
        let built = parts.catch_panics(|parts| self.store().build(name, index, parts))?;
        let mut held = self.maps_held().held();
        held.building.remove(name);
        held.hold(name, index, &built);
        drop(held);
        drop(building);
        Ok(self.handle((index, built)))
    }

    /// Makes a map of pairs by writes that the log has, in a database that has one. They are durable together.
    fn write_map(&self, name: &str, kind: IndexKind, parts: Parts<'_>) -> Result<Map, Error> {
        let map = self.create_map(name, kind)?;
        let target = &map.index;
        let mut last: Option<Vec<u8>> = None;
        let written = parts.each(|(key, value)| {
            if kind.is_ordered() && last.as_deref().is_some_and(|last| last >= key) {
                return Err(index::Error::OutOfOrder);
            }
            last = Some(key.to_vec());
            let edit = &mut Upsert(value);
            let written = target.write_durably(key, edit, Some(Durability::Eventual));
            written.map(drop)
        });
        // Where that has failed, the map stays: others may have written to it.
        written?;
        self.sync()?;
        Ok(map)
    }
}
