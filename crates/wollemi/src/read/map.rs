//! Reading a map as it is.

use crate::bounds::KeyRange;
use crate::read::iter::Iter;
use crate::read::reader::Reader;
use crate::write::watch::Watch;
use crate::{Error, Map};
use std::ops::{Bound, ControlFlow};

impl Map {
    /// Returns a copy of the key's value. [`reader`](Map::reader) reads without a copy.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Vec<u8>>, Error> {
        let guard = heap::pin();
        Ok(self.index.get(key.as_ref(), &guard)?.map(|value| value.to_vec()))
    }

    /// Returns whether the key is present.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> Result<bool, Error> {
        let guard = heap::pin();
        Ok(self.index.get(key.as_ref(), &guard)?.is_some())
    }

    /// Returns copies of the values of many keys, in the keys' order. Faster than single [`get`](Map::get)s, because
    /// the keys' cache misses overlap.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        let values = self.reader();
        let values = values.multi_get(keys)?;
        Ok(values
            .into_iter()
            .map(|value| value.map(|bytes| bytes.to_vec()))
            .collect())
    }

    /// Returns a reader whose reads borrow from the pool, under one pin.
    pub fn reader(&self) -> Reader<'_> {
        Reader::new(&*self.index)
    }

    /// Returns a stream of the changes to keys that start with `prefix`, for writes that begin from now on. Buffers up
    /// to `capacity` undelivered events, at least one. Writers do not wait for it.
    ///
    /// # Errors
    ///
    /// [`Error::Index`] if an [unfinished](Error::Unfinished) batch has stopped all writing.
    pub fn watch(&self, prefix: impl AsRef<[u8]>, capacity: usize) -> Result<Watch, Error> {
        let _closed = self.index.close_gate()?;
        let watches = self.index.watches();
        Ok(Watch::new(watches, self.name(), prefix.as_ref(), capacity))
    }

    /// Iterates over all entries in key order, copied a batch at a time; in the index's own order if it has [no key
    /// order](crate::IndexKind::is_ordered).
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// Iterates over the entries between two bounds, copied a batch at a time. Crossed bounds are an empty range. The
    /// first item is an error if the index has [no order](crate::IndexKind::is_ordered), unless both bounds are open
    /// (`..`).
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

    /// Iterates over the entries whose keys start with `prefix`, copied a batch at a time.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.range(index::prefix_bounds(prefix.as_ref()))
    }

    /// Counts the entries by visiting each, in batches, so that no pin is held for long. Exact if no thread writes
    /// meanwhile.
    ///
    /// # Errors
    ///
    /// [`Error::Index`], including when the keys of a damaged pool are so disordered that the count would not end.
    pub fn count(&self) -> Result<u64, Error> {
        const BATCH: u64 = 4096;
        let mut from: Bound<Vec<u8>> = Bound::Unbounded;
        let mut total = 0;
        loop {
            let (mut batch, mut last) = (0, Vec::new());
            let lower = from.as_ref().map(Vec::as_slice);
            let guard = heap::pin();
            self.index.walk(
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
            from = index::behind(self.index.order(), &last, lower, index::Direction::Forward)?;
        }
    }

    /// Returns whether the map has no entries.
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

#[cfg(test)]
mod tests {
    use crate::damaged::Damaged;

    /// Counting ends with an error, whatever the damage to the pool.
    #[test]
    fn keys_out_of_order_end_a_count() {
        assert!(Damaged::endless().map().count().is_err());
    }
}
