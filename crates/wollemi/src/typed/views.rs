//! Views of typed maps in snapshots, and watches of their changes.

use super::{Key, KeyBytes, TypedIter, TypedMap, bounds, bytes_of, part_of, read_key, read_value};
use crate::{Error, Event, Media, Snapshot, View, ViewIter, Watch};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::borrow::Borrow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::time::Duration;

/// A typed map as it was when a snapshot was taken. See [`TypedMap::view`].
pub struct TypedView<K, V> {
    pub(super) map: TypedMap<K, V>,
    pub(super) view: View,
}

/// A double-ended iterator over a [`TypedView`]'s entries in key order.
pub type TypedViewIter<K, V> = TypedIter<K, V, ViewIter>;

/// A stream of the changes of a typed map, from [`TypedMap::watch`]. As an iterator it waits for the next event, like a
/// [`Watch`], and ends when the last handle to the map's database is dropped. A key or a value that does not decode is
/// an error, after which the watch continues.
pub struct TypedWatch<K, V> {
    /// The map's name. A handle to the map would keep the database open, and the watch would never end.
    map: String,
    watch: Watch,
    types: PhantomData<fn() -> (K, V)>,
}

impl<K: Key, V: Serialize + DeserializeOwned> TypedMap<K, V> {
    /// Returns the map as it was when the snapshot was taken.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let stock = wollemi::TypedMap::<String, u32>::new(db.map("stock")?);
    /// stock.upsert(&"apples".to_owned(), &12)?;
    /// let snapshot = db.snapshot()?;
    /// stock.remove("apples")?;
    /// assert_eq!(stock.view(&snapshot)?.get("apples")?, Some(12));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Snapshot::view`].
    pub fn view<M: Media>(&self, snapshot: &Snapshot<M>) -> Result<TypedView<K, V>, Error> {
        Ok(TypedView {
            map: self.clone(),
            view: snapshot.view(self.map())?,
        })
    }

    /// Returns a stream of the changes to all keys, for writes that begin from now on, like
    /// [`Map::watch`](crate::Map::watch).
    ///
    /// ```
    /// use wollemi::Event;
    ///
    /// let db = wollemi::Db::anonymous()?;
    /// let stock = wollemi::TypedMap::<String, u32>::new(db.map("stock")?);
    /// let mut watch = stock.watch(100)?;
    /// stock.upsert(&"apples".to_owned(), &12)?;
    /// let event = watch.next().expect("the database is open")?;
    /// assert_eq!(event, Event::Changed { key: "apples".to_owned(), value: Some(12) });
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`Map::watch`](crate::Map::watch).
    pub fn watch(&self, capacity: usize) -> Result<TypedWatch<K, V>, Error> {
        self.watch_bytes(&[], capacity)
    }

    /// Returns a stream of the changes to keys, text or bytes, that begin with `prefix`, like
    /// [`watch`](TypedMap::watch).
    ///
    /// # Errors
    ///
    /// Those of [`Map::watch`](crate::Map::watch).
    pub fn watch_prefix<Q: KeyBytes + ?Sized>(
        &self,
        prefix: &Q,
        capacity: usize,
    ) -> Result<TypedWatch<K, V>, Error>
    where
        K: Borrow<Q>,
    {
        self.watch_bytes(&bytes_of(prefix), capacity)
    }

    fn watch_bytes(&self, prefix: &[u8], capacity: usize) -> Result<TypedWatch<K, V>, Error> {
        Ok(TypedWatch {
            map: self.map().name().to_owned(),
            watch: self.map().watch(prefix, capacity)?,
            types: PhantomData,
        })
    }
}

impl<K: Key, V: Serialize + DeserializeOwned> TypedView<K, V> {
    /// Returns the value that the key had.
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`View::get`].
    pub fn get<Q: KeyBytes + ?Sized>(&self, key: &Q) -> Result<Option<V>, Error>
    where
        K: Borrow<Q>,
    {
        let bytes = self.view.get(bytes_of(key))?;
        bytes.map(|bytes| self.map.read(&bytes)).transpose()
    }

    /// Looks up many keys together and returns the values that they had, like [`View::multi_get`].
    ///
    /// # Errors
    ///
    /// [`Error::Value`], and those of [`View::multi_get`].
    pub fn multi_get<'q, Q: KeyBytes + ?Sized + 'q>(
        &self,
        keys: impl IntoIterator<Item = &'q Q>,
    ) -> Result<Vec<Option<V>>, Error>
    where
        K: Borrow<Q>,
    {
        let keys: Vec<_> = keys.into_iter().map(bytes_of).collect();
        self.map.read_all(self.view.multi_get(&keys)?)
    }

    /// Returns whether the key was present.
    ///
    /// # Errors
    ///
    /// Those of [`View::get`].
    pub fn contains<Q: KeyBytes + ?Sized>(&self, key: &Q) -> Result<bool, Error>
    where
        K: Borrow<Q>,
    {
        self.view.contains(bytes_of(key))
    }

    /// Iterates over all entries in key order, like [`View::iter`].
    pub fn iter(&self) -> TypedViewIter<K, V> {
        self.range::<K>(..)
    }

    /// Iterates over the entries between two bounds, in key order.
    pub fn range<Q: KeyBytes + ?Sized>(&self, keys: impl RangeBounds<Q>) -> TypedViewIter<K, V>
    where
        K: Borrow<Q>,
    {
        self.map.over(self.view.range(bounds(keys)))
    }

    /// Iterates in key order over the entries whose keys, text or bytes, begin with `prefix`.
    pub fn prefix<Q: KeyBytes + ?Sized>(&self, prefix: &Q) -> TypedViewIter<K, V>
    where
        K: Borrow<Q>,
    {
        self.map.over(self.view.prefix(bytes_of(prefix)))
    }

    /// Iterates in key order over the entries whose keys are tuples that begin with this element, like
    /// [`TypedMap::with_first`].
    pub fn with_first(&self, first: &impl Key) -> TypedViewIter<K, V> {
        self.map.over(self.view.prefix(part_of(first)))
    }
}

impl<K: Key, V: Serialize + DeserializeOwned> IntoIterator for &TypedView<K, V> {
    type Item = Result<(K, V), Error>;
    type IntoIter = TypedViewIter<K, V>;
    fn into_iter(self) -> TypedViewIter<K, V> {
        self.iter()
    }
}

impl<K: Key, V: Serialize + DeserializeOwned> TypedWatch<K, V> {
    /// Returns the next event, if there is one.
    ///
    /// # Errors
    ///
    /// [`Error::Value`]; the next call returns the next event.
    pub fn try_next(&mut self) -> Result<Option<Event<K, V>>, Error> {
        let event = self.watch.try_next();
        event.map(|event| self.read(event)).transpose()
    }

    /// Waits at most this time for the next event. Returns `None` if there was none.
    ///
    /// # Errors
    ///
    /// Those of [`try_next`](TypedWatch::try_next).
    pub fn next_within(&mut self, patience: Duration) -> Result<Option<Event<K, V>>, Error> {
        let event = self.watch.next_within(patience);
        event.map(|event| self.read(event)).transpose()
    }
}

impl<K: Key, V: Serialize + DeserializeOwned> Iterator for TypedWatch<K, V> {
    type Item = Result<Event<K, V>, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        self.watch.next().map(|event| self.read(event))
    }
}

impl<K: Key, V: Serialize + DeserializeOwned> TypedWatch<K, V> {
    fn read(&self, event: Event) -> Result<Event<K, V>, Error> {
        Ok(match event {
            Event::Changed { key, value } => Event::Changed {
                key: read_key(&self.map, &key)?,
                value: value.map(|bytes| read_value(&self.map, &bytes)).transpose()?,
            },
            Event::Missed(count) => Event::Missed(count),
        })
    }
}

impl<K, V> fmt::Debug for TypedView<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedView").field(&self.map).finish()
    }
}

impl<K, V> fmt::Debug for TypedWatch<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TypedWatch").field(&self.map).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A view shows the old entries, in both directions, whatever has changed since.
    #[test]
    fn views_show_what_was_there() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let words = TypedMap::<String, u8>::new(db.map("words")?);
        for (i, word) in ["a", "b", "c"].into_iter().enumerate() {
            words.upsert(&word.to_owned(), &(i as u8))?;
        }
        let snapshot = db.snapshot()?;
        words.remove("b")?;
        words.upsert(&"d".to_owned(), &9)?;
        let view = words.view(&snapshot)?;
        assert!(view.contains("b")? && !view.contains("d")?);
        let all: Vec<_> = view.iter().rev().collect::<Result<_, _>>()?;
        let expected = [("c", 2), ("b", 1), ("a", 0)].map(|(word, i)| (word.to_owned(), i));
        assert_eq!(all, expected);
        assert_eq!(view.range("b".to_owned()..).count(), 2);
        assert_eq!((view.prefix("b").count(), view.prefix("d").count()), (1, 0));
        assert_eq!((&view).into_iter().count(), 3);
        assert_eq!(view.first()?, Some(("a".to_owned(), 0)));
        assert_eq!(view.last()?, Some(("c".to_owned(), 2)));
        assert_eq!((view.len()?, view.is_empty()?), (3, false));
        assert_eq!(view.multi_get(["d", "b"])?, [None, Some(1)]);
        Ok(())
    }

    /// A view finds keys by the first part of a tuple, as the map did.
    #[test]
    fn views_find_tuples_by_their_first_part() -> Result<(), Error> {
        let db = crate::Db::anonymous()?;
        let visits = TypedMap::<(String, u8), u8>::new(db.map("visits")?);
        let [alice, alicia] = ["alice", "alicia"].map(str::to_owned);
        visits.load([
            (&(alice.clone(), 1), &1),
            (&(alice.clone(), 2), &2),
            (&(alicia, 1), &3),
        ])?;
        let snapshot = db.snapshot()?;
        visits.remove(&(alice.clone(), 2))?;
        assert_eq!(visits.view(&snapshot)?.with_first(&alice).count(), 2);
        assert_eq!(visits.with_first(&alice).count(), 1);
        Ok(())
    }

    /// A watch ends when the last handle to the database is dropped: it holds none itself.
    #[test]
    fn a_watch_ends_with_the_database() -> Result<(), Error> {
        let words = TypedMap::<String, u8>::new(crate::Db::anonymous()?.map("words")?);
        let watch = words.watch(10)?;
        words.upsert(&"a".to_owned(), &1)?;
        drop(words);
        let (counted, count) = std::sync::mpsc::channel();
        std::thread::spawn(move || counted.send(watch.count()));
        // Upper bound; beyond it the watch counts as hung.
        assert_eq!(count.recv_timeout(Duration::from_secs(60)), Ok(1));
        Ok(())
    }

    /// A watch of a prefix reports changes to no other key.
    #[test]
    fn a_watch_may_be_of_a_prefix() -> Result<(), Error> {
        let words = TypedMap::<String, u8>::new(crate::Db::anonymous()?.map("words")?);
        let mut watch = words.watch_prefix("ap", 10)?;
        for word in ["banana", "apple"] {
            words.upsert(&word.to_owned(), &1)?;
        }
        let (key, value) = ("apple".to_owned(), Some(1));
        assert_eq!(watch.try_next()?, Some(Event::Changed { key, value }));
        assert_eq!(watch.try_next()?, None);
        assert_eq!(watch.next_within(Duration::ZERO)?, None);
        words.upsert(&"apricot".to_owned(), &2)?;
        let (key, value) = ("apricot".to_owned(), Some(2));
        let event = watch.next_within(Duration::from_secs(60))?;
        assert_eq!(event, Some(Event::Changed { key, value }));
        Ok(())
    }

    /// An event that does not decode is an error; later events still arrive.
    #[test]
    fn watches_go_on_behind_an_error() -> Result<(), Error> {
        let map = crate::Db::anonymous()?.map("m")?;
        let numbers = TypedMap::<u8, u8>::new(map.clone());
        let mut watch = numbers.watch(10)?;
        map.upsert("longer than a number", [1])?;
        numbers.upsert(&1, &2)?;
        numbers.remove(&1)?;
        assert!(watch.try_next().is_err());
        let (key, changed) = (1, |key, value| Some(Event::Changed { key, value }));
        assert_eq!(watch.try_next()?, changed(key, Some(2)));
        assert_eq!(watch.try_next()?, changed(key, None));
        assert_eq!(watch.try_next()?, None);
        Ok(())
    }
}
