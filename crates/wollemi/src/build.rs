//! Building maps from sorted pairs.

use crate::write::journal::Durability;
use crate::{Db, Error, IndexKind, Map, Media};
use index::{Parts, Sorted, Upsert};

/// Reserves, while it lives, the name of a map that is being built.
struct Building<'d, M: Media> {
    db: &'d Db<M>,
    name: &'d str,
}

impl<'d, M: Media> Building<'d, M> {
    /// Reserves the name.
    fn begin(db: &'d Db<M>, name: &'d str) -> Result<Self, Error> {
        let maps = db.maps_held();
        let mut held = maps.held();
        let there = maps.find_in(&mut held, name, None)?.is_some();
        if there || !maps.building().insert(name.to_owned()) {
            return Err(Error::MapExists(name.to_owned()));
        }
        Ok(Building { db, name })
    }
}

impl<M: Media> Drop for Building<'_, M> {
    fn drop(&mut self) {
        self.db.maps_held().building().remove(self.name);
    }
}

impl<M: Media> Db<M> {
    /// Creates a map from pairs that ascend by key, each key once. The map appears, durable, when this returns, and not
    /// before: after a crash all of it is there or nothing. An index with a builder of its own neither searches for its
    /// keys nor persists them one by one, and packs them as densely as it can.
    ///
    /// Until then other threads find no map of this name, and cannot create one. A snapshot taken earlier shows the map
    /// as empty.
    ///
    /// Level [`Disk`](crate::Level::Disk) differs, because the log must contain the pairs: the map is created first,
    /// and the pairs are written one by one. All are durable when this returns. Until then other threads see the map
    /// and may write to it, and after a crash or an error the map holds the pairs written so far. Of equal keys an
    /// index without an order of keys keeps the last pair, where other levels return an error.
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
    /// [`Error::MapExists`] if the map exists or is being built; [`Error::MapName`]; [`Error::Index`] if keys do not
    /// ascend ([`OutOfOrder`](crate::IndexError::OutOfOrder)), if a key or a value is too long, or if the pool is full
    /// or opened read-only. On an error, or if `pairs` panics, nothing of the map remains, except at level
    /// [`Disk`](crate::Level::Disk).
    pub fn build_map<K, V>(&self, name: &str, pairs: impl IntoIterator<Item = (K, V)>) -> Result<Map, Error>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.build_map_with(name, self.new_maps(), Parts::new(&mut Sorted::new(pairs)))
    }

    /// Like [`build_map`](Db::build_map), for a map held by the given index. Reads one source of pairs, or several with
    /// one thread each.
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
    /// Those of [`build_map`](Db::build_map), and the error of a source that fails.
    pub fn build_map_with(&self, name: &str, index: IndexKind, parts: Parts<'_>) -> Result<Map, Error> {
        if self.store().traffic.journal.get().is_some() {
            return self.write_map(name, index, parts);
        }
        let building = Building::begin(self, name)?;
        let built = parts.catch_panics(|parts| self.store().build(name, index, parts))?;
        let mut held = self.maps_held().held();
        self.maps_held().building().remove(name);
        held.hold(name, index, &built);
        drop(held);
        drop(building);
        Ok(self.handle((index, built)))
    }

    /// Creates a map by logged writes, in a database that has a log. The pairs become durable together.
    fn write_map(&self, name: &str, kind: IndexKind, parts: Parts<'_>) -> Result<Map, Error> {
        let map = self.create_map(name, kind)?;
        let target = &map.index;
        let written = parts.read_in_turn(kind.order(), |mut reading| {
            while let Some((key, value)) = reading.next()? {
                target.write_durably(key, &mut Upsert(value), Some(Durability::Eventual))?;
            }
            Ok(())
        });
        // On failure the map stays: others may have written to it.
        written?;
        self.sync()?;
        Ok(map)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A map whose root a build has just created does not exist before the build has ended.
    #[test]
    fn a_map_being_built_is_not_listed() -> Result<(), Error> {
        let db: Db = Db::anonymous()?;
        drop(db.build_map("map", [("a", "1")])?);
        let listed = |db: &Db| {
            let (check, snapshot, stats) = (db.check()?, db.snapshot()?, db.stats()?);
            let lists = [&db.maps()?, snapshot.maps(), &stats.maps].map(<[_]>::len);
            Ok::<_, Error>((lists, check.maps.len()))
        };
        db.maps_held().building().insert("map".into());
        assert_eq!(listed(&db)?, ([0; 3], 0));
        db.maps_held().building().remove("map");
        assert_eq!(listed(&db)?, ([1; 3], 1));
        Ok(())
    }
}
