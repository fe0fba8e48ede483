//! Reads that borrow from the pool.
//!
//! A [`Reader`] pins an epoch: nothing it has read can be reused before it is dropped. Keep it for a request or a
//! batch, not for minutes, because it delays the reuse of everything removed meanwhile.

use crate::{Error, KeyRange};
use index::{Direction, Guard, Index, Value};
use std::iter::FusedIterator;
use std::ops::ControlFlow;

/// A pinned view of a map, for reads without copies.
///
/// It is not a snapshot: each read sees the latest value.
///
/// ```
/// let db = wollemi::Db::anonymous()?;
/// let map = db.map("fruit")?;
/// map.upsert("apple", "a long description of the apple")?;
///
/// let reader = map.reader();
/// let value = reader.get("apple")?.expect("just written");
/// assert!(value.starts_with(b"a long")); // no byte was copied
/// # Ok::<(), wollemi::Error>(())
/// ```
///
/// # Threads
///
/// A reader stays on its thread, because the pin is the thread's: it is an entry that the thread has made in the table
/// of epochs. An owned reader that moves would have to pin again at its destination, and that is what a clone of the
/// [`Map`](crate::Map) does there, at the same cost. So move a clone into the thread and make the reader there. To read
/// one moment in several threads, move a [`View`](crate::View) of a [`Snapshot`](crate::Snapshot) into each. Owned
/// iterators ([`Iter`](crate::Iter)), batches and [owned transactions](crate::Db::begin_owned) move as they are.
///
/// ```
/// let db = wollemi::Db::anonymous()?;
/// let map = db.map("fruit")?;
/// map.load([("apple", "red"), ("banana", "yellow"), ("cherry", "red")])?;
///
/// // The latest values:
/// let handle = map.clone();
/// let red = std::thread::spawn(move || {
///     let reader = handle.reader();
///     let mut red = 0;
///     for entry in reader.iter() {
///         red += usize::from(&*entry?.1 == b"red");
///     }
///     Ok::<_, wollemi::Error>(red)
/// });
/// assert_eq!(red.join().expect("no panic")?, 2);
///
/// // One moment:
/// let view = db.snapshot()?.view(&map)?;
/// map.remove("apple")?;
/// let count = std::thread::spawn(move || view.len());
/// assert_eq!(count.join().expect("no panic")?, 3);
/// # Ok::<(), wollemi::Error>(())
/// ```
pub struct Reader<'m> {
    index: &'m dyn Index,
    guard: Guard,
}

impl<'m> Reader<'m> {
    pub(crate) fn new(index: &'m dyn Index) -> Reader<'m> {
        Reader {
            index,
            guard: heap::pin(),
        }
    }

    /// Returns the key's value.
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Value<'_>>, Error> {
        Ok(self.index.get(key.as_ref(), &self.guard)?)
    }

    /// Returns the values of many keys, in the keys' order; their cache misses overlap.
    pub fn multi_get<K: AsRef<[u8]>>(&self, keys: &[K]) -> Result<Vec<Option<Value<'_>>>, Error> {
        let keys: Vec<&[u8]> = keys.iter().map(K::as_ref).collect();
        let mut values = vec![None; keys.len()];
        self.index
            .multi_get(&keys, &self.guard, &mut |i, value| values[i] = value)?;
        Ok(values)
    }

    /// Iterates over all entries in key order; in the index's own order if it has [no key
    /// order](crate::IndexKind::is_ordered).
    pub fn iter(&self) -> Range<'_> {
        self.range(..)
    }

    /// Iterates over the entries between two bounds. Crossed bounds are an empty range. The first item is an error if
    /// the index has [no order](crate::IndexKind::is_ordered), unless both bounds are open (`..`).
    pub fn range(&self, keys: impl KeyRange) -> Range<'_> {
        let (lower, upper) = keys.bounds();
        Range(index::Range::new(self.index, lower, upper, &self.guard))
    }

    /// Iterates over the entries whose keys start with `prefix`.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Range<'_> {
        Range(index::Range::with_prefix(
            self.index,
            prefix.as_ref(),
            &self.guard,
        ))
    }

    /// Calls `visit` for each entry between two bounds in key order until it breaks: the fastest way to read many
    /// entries. An index without order accepts `..` only.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// let map = wollemi::Db::anonymous()?.map("letters")?;
    /// map.load([("a", "1"), ("b", "22"), ("c", "333")])?;
    /// let mut bytes = 0;
    /// map.reader().visit(.., |_, value| {
    ///     bytes += value.len();
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert_eq!(bytes, 6);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    pub fn visit<'r>(
        &'r self,
        keys: impl KeyRange,
        mut visit: impl FnMut(&'r [u8], Value<'r>) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let (lower, upper) = keys.bounds();
        self.index.order().take_range(lower, upper)?;
        Ok(self
            .index
            .walk(lower, upper, Direction::Forward, &self.guard, &mut visit)?)
    }

    /// Releases what was read so far and pins again, for a reader that is kept over many requests.
    pub fn repin(&mut self) {
        self.guard.repin();
    }
}

impl std::fmt::Debug for Reader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reader").finish_non_exhaustive()
    }
}

/// A double-ended iterator over entries borrowed from the pool, in key order.
///
/// It yields each key that is present throughout exactly once, and no key twice. After it has yielded an error, it
/// ends.
#[derive(Debug)]
pub struct Range<'r>(index::Range<'r>);

impl<'r> Iterator for Range<'r> {
    type Item = Result<(&'r [u8], Value<'r>), Error>;
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next().map(|entry| entry.map_err(Error::from))
    }
}

impl DoubleEndedIterator for Range<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.0.next_back().map(|entry| entry.map_err(Error::from))
    }
}

impl FusedIterator for Range<'_> {}
