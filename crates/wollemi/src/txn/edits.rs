//! The remaining operations of a map on keys, in transactions.

use crate::txn::transaction::Transaction;
use crate::write::map_index::KeyState;
use crate::{Error, Map, Media};

impl<M: Media> Transaction<'_, M> {
    /// Returns the values of many keys, in the keys' order. Faster than single [`get`](Transaction::get)s, because the
    /// keys' cache misses overlap.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Transaction::get).
    pub fn multi_get<K: AsRef<[u8]>>(&self, map: &Map, keys: &[K]) -> Result<Vec<Option<Vec<u8>>>, Error> {
        self.store.refuse_if_foreign(&*map.index)?;
        let (traffic, media) = (&self.store.traffic, self.store.heap.media());
        let mut values: Vec<Option<Vec<u8>>> = vec![None; keys.len()];
        let mut unchanged = Vec::new();
        for (i, key) in keys.iter().enumerate() {
            let key = key.as_ref();
            match self.changes.get(map, key) {
                Some(changed) => values[i].clone_from(changed),
                None => {
                    let id = map.index.stripe_of(key);
                    let version = traffic.stripes.version(id, &traffic.gate, media)?;
                    unchanged.push((i, key, id, version));
                }
            }
        }
        // All versions have been noted before the first key is read.
        let read: Vec<&[u8]> = unchanged.iter().map(|(_, key, ..)| *key).collect();
        map.index
            .bare()
            .multi_get(&read, &heap::pin(), &mut |at, value| {
                values[unchanged[at].0] = value.map(|value| value.to_vec());
            })?;
        let mut reads = self.reads.borrow_mut();
        for (i, key, id, version) in unchanged {
            let read = KeyState::new(&map.index, key, values[i].as_deref());
            reads.note(id, version, read)?;
        }
        Ok(values)
    }

    /// Replaces the value of a key that is present; returns `false` if it is absent. Counts as a read.
    ///
    /// # Errors
    ///
    /// Those of [`get`](Transaction::get).
    pub fn update(
        &mut self,
        map: &Map,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
    ) -> Result<bool, Error> {
        let present = self.contains(map, key.as_ref())?;
        if present {
            self.changes.set(map, key.as_ref(), Some(value.as_ref()));
        }
        Ok(present)
    }

    /// Replaces the key's value by the closure's result and returns the new value. The closure gets the current value,
    /// or `None` if the key is absent; if it returns `None`, the key is removed. Counts as a read.
    ///
    /// ```
    /// let db = wollemi::Db::anonymous()?;
    /// let map = db.map("letters")?;
    /// map.upsert("a", "1")?;
    /// let new = db.transact(|tx| {
    ///     tx.edit_with(&map, "a", |old| old.map(|old| [old, b"1"].concat()))
    /// })?;
    /// assert_eq!(new, Some(b"11".to_vec()));
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Those of [`get`](Transaction::get).
    pub fn edit_with(
        &mut self,
        map: &Map,
        key: impl AsRef<[u8]>,
        function: impl FnOnce(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let old = self.get(map, key.as_ref())?;
        let new = function(old.as_deref());
        if old.is_some() || new.is_some() {
            self.changes.set(map, key.as_ref(), new.as_deref());
        }
        Ok(new)
    }
}
