//! Maps: the named, ordered collections of a database.

use crate::bounds::KeyRange;
use crate::write::traffic::MapIndex;
use crate::{Error, IndexKind, Iter, Reader, Watch};
use index::{Action, Edit, Index};
use std::ops::{Bound, ControlFlow};
use std::sync::Arc;

/// An ordered map from keys to values, both any bytes: keys of 0 to 65,535 bytes, values up to 64 MiB.
///
/// A map may be used from many threads at once; a clone is another handle to the same map. Every operation is
/// atomic, and durable at the pool's level when it returns: what it has acknowledged, reads included, survives a
/// crash. A handle keeps its pool open.
///
/// ```
/// let db = wollemi::Db::anonymous()?;
/// let map = db.map("stock")?;
///
/// assert!(map.insert("apples", "12")?);
/// assert!(!map.insert("apples", "13")?); // present already
/// map.upsert("pears", "7")?;
/// assert!(map.compare_and_swap("pears", Some("7"), Some("6"))?);
/// assert_eq!(map.get("pears")?, Some(b"6".to_vec()));
/// assert!(map.remove("apples")?);
/// # Ok::<(), wollemi::Error>(())
/// ```
#[derive(Clone)]
pub struct Map {
    name: Arc<str>,
    kind: IndexKind,
    pub(crate) index: Arc<dyn MapIndex>,
}

impl Map {
    pub(crate) fn new(name: &str, kind: IndexKind, index: Arc<dyn MapIndex>) -> Map {
        Map {
            name: name.into(),
            kind,
            index,
        }
    }

    /// The map's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which index holds the map.
    pub fn index_kind(&self) -> IndexKind {
        self.kind
    }

    /// The index itself, for callers who speak its contract (a server, a benchmark).
    pub fn index(&self) -> Arc<dyn Index> {
        self.index.clone()
    }

    /// The key's value, copied. [`reader`](Map::reader) reads without a copy.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        let guard = heap::pin();
        Ok(self.index.get(key.as_ref(), &guard)?.map(|value| value.to_vec()))
    }

    /// Whether the key is present.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let guard = heap::pin();
        Ok(self.index.get(key.as_ref(), &guard)?.is_some())
    }

    /// The values of many keys, copied, in the keys' order. Faster than as many [`get`](Map::get)s: the keys' cache
    /// misses overlap.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let values = self.reader();
        let values = values.multi_get(keys)?;
        Ok(values
            .into_iter()
            .map(|value| value.map(|bytes| bytes.to_vec()))
            .collect())
    }

    /// Reads that borrow from the pool, under one pin.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&*self.index)
    }

    /// Adds the key if it is absent; `false` if it is present.
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.index.insert(key.as_ref(), value.as_ref())?)
    }

    /// Gives the key this value, whether it is there or not.
    pub fn upsert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<(), Error> {
        Ok(self.index.upsert(key.as_ref(), value.as_ref())?)
    }

    /// Changes the value of a key that is present; `false` if it is absent.
    pub fn update(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.index.update(key.as_ref(), value.as_ref())?)
    }

    /// Removes the key; `false` if it is absent.
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        Ok(self.index.remove(key.as_ref())?)
    }

    /// Replaces `expected` by `new`, either of which may be absent (`None`); `false`, and nothing changed, if the
    /// key holds something else.
    pub fn compare_and_swap<V: AsRef<[u8]>>(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<V>,
        new: Option<V>,
    ) -> Result<bool, Error> {
        let expected = expected.as_ref().map(V::as_ref);
        let new = new.as_ref().map(V::as_ref);
        Ok(self.index.compare_and_swap(key.as_ref(), expected, new)?)
    }

    /// Reads, decides and writes one key atomically; returns what the edit decided.
    ///
    /// ```
    /// use wollemi::{Action, Edit};
    ///
    /// /// Counts up, and forgets the key at a hundred.
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
        Ok(self.index.write(key.as_ref(), edit)?)
    }

    /// Tells of each change of the keys that start with `prefix` that is begun from now on; keeps up to `capacity` that
    /// were not taken yet, at least one. Writers do not wait for it.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] where an [unfinished](Error::Unfinished) batch has stopped all writing.
    pub fn watch(&self, prefix: impl AsRef<[u8]>, capacity: usize) -> Result<Watch, Error> {
        let _closed = self.index.close_gate()?;
        let traffic = self.index.traffic();
        Ok(Watch::new(
            &traffic.watches,
            self.name(),
            prefix.as_ref(),
            capacity,
        ))
    }

    /// Upserts many entries and returns how many there were. Each is durable on its own: when one fails, those
    /// before it are there. Fastest in key order.
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
        let mut loaded = 0;
        for (key, value) in entries {
            self.upsert(key, value)?;
            loaded += 1;
        }
        Ok(loaded)
    }

    /// All entries in key order, copied a batch at a time.
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// The entries between two bounds, copied a batch at a time. Bounds that cross are an empty range.
    ///
    /// ```
    /// let map = wollemi::Db::anonymous()?.map("letters")?;
    /// map.load([("a", "1"), ("b", "2"), ("c", "3")])?;
    ///
    /// let keys = map.range("b"..).map(|entry| Ok(entry?.0)).collect::<Result<Vec<_>, wollemi::Error>>()?;
    /// assert_eq!(keys, [b"b", b"c"]);
    ///
    /// let (last, _) = map.iter().next_back().expect("not empty")?;
    /// assert_eq!(last, b"c");
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn range(&self, keys: impl KeyRange) -> Iter {
        let (lower, upper) = keys.bounds();
        Iter::new(self.index.clone(), lower, upper)
    }

    /// The entries whose keys start with `prefix`, copied a batch at a time.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.range(index::prefix_bounds(prefix.as_ref()))
    }

    /// Counts the entries by visiting each of them, in batches, so that no pin is held for long. Exact if nobody
    /// writes meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Index`], also where the keys of a damaged pool are so out of order that it would not end.
    pub fn count(&self) -> Result<u64, Error> {
        const BATCH: u64 = 4096;
        let mut from: Bound<Vec<u8>> = Bound::Unbounded;
        let mut total = 0;
        loop {
            let (mut batch, mut last) = (0, Vec::new());
            let lower = from.as_ref().map(Vec::as_slice);
            let guard = heap::pin();
            self.index.scan(
                lower,
                Bound::Unbounded,
                index::Direction::Forward,
                &guard,
                &mut |key, _| {
                    batch += 1;
                    if batch < BATCH {
                        return ControlFlow::Continue(());
                    }
                    last = key.to_vec();
                    ControlFlow::Break(())
                },
            )?;
            total += batch;
            if batch < BATCH {
                return Ok(total);
            }
            from = index::behind(&last, lower, index::Direction::Forward)?;
        }
    }

    /// Whether the map holds no key.
    pub fn is_empty(&self) -> Result<bool, Error> {
        self.iter().next().transpose().map(|entry| entry.is_none())
    }
}

impl IntoIterator for &Map {
    type Item = Result<crate::Entry, Error>;
    type IntoIter = Iter;
    fn into_iter(self) -> Iter {
        self.iter()
    }
}

impl std::fmt::Debug for Map {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Map")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use crate::damaged::Damaged;

    /// Counting ends, with an error, however the pool is damaged.
    #[test]
    fn keys_out_of_order_end_a_count() {
        assert!(Damaged::endless().map().count().is_err());
    }
}
