//! Maps that are built of sorted pairs.

use crate::{Db, Error, IndexKind, Map, Media};
use index::{Parts, Sorted};

/// The name of a map that is being built, until this is dropped.
struct Building<'d, M: Media> {
    db: &'d Db<M>,
    name: &'d str,
}

impl<'d, M: Media> Building<'d, M> {
    /// Takes the name.
    fn begin(db: &'d Db<M>, name: &'d str) -> Result<Self, Error> {
        let mut held = db.held();
        let there = db.find(name, None, &mut held)?.is_some();
        if there || !held.building.insert(name.to_owned()) {
            return Err(Error::MapExists(name.to_owned()));
        }
        Ok(Building { db, name })
    }
}

impl<M: Media> Drop for Building<'_, M> {
    fn drop(&mut self) {
        self.db.held().building.remove(self.name);
    }
}

impl<M: Media> Db<M> {
    /// Makes a map of pairs that ascend by their keys, each key once. The map is there, durable, when this returns, and not
    /// before: a crash leaves all of it or nothing. Several times as fast as writing the pairs one by one, and packed as
    /// densely as the index can be.
    ///
    /// Until then others find no map of this name, and cannot make one. A snapshot that was taken before shows the map
    /// empty.
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
    /// [`OutOfOrder`](crate::IndexError::OutOfOrder) where keys do not ascend, where a key or a value is too long, or the
    /// pool is full. Nothing is left of the map then.
    pub fn build_map<K, V>(&self, name: &str, pairs: impl IntoIterator<Item = (K, V)>) -> Result<Map, Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.build_map_with(name, self.new_maps(), Parts::new(&mut Sorted::new(pairs)))
    }

    /// As [`build_map`](Db::build_map), of a map held by this index, from one source of pairs or several that are read by a
    /// thread each.
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
        let building = Building::begin(self, name)?;
        let built = self.store().build(name, index, parts)?;
        let mut held = self.held();
        held.building.remove(name);
        let map = held.hold(name, index, built);
        drop(held);
        drop(building);
        Ok(map)
    }
}
