//! Edits by closures.

use crate::{Error, Map};
use index::{Action, Edit};

/// The edit that a closure is: from the current value to the one to put; `None`: absent.
struct Function<F> {
    function: F,
    new: Option<Vec<u8>>,
}

impl<F: FnMut(Option<&[u8]>) -> Option<Vec<u8>>> Edit for Function<F> {
    fn decide(&mut self, current: Option<&[u8]>) -> Action {
        self.new = (self.function)(current);
        match (&self.new, current) {
            (Some(_), _) => Action::Put,
            (None, Some(_)) => Action::Remove,
            (None, None) => Action::Keep,
        }
    }

    fn value(&self) -> &[u8] {
        self.new.as_deref().unwrap_or_default()
    }
}

impl Map {
    /// Replaces the key's value by what the closure makes of it, atomically, and returns the new value. The closure is
    /// given the current value, `None` if the key is absent; the key is removed where it returns `None`.
    /// [`edit`](Map::edit) can also leave the key as it is, and needs no allocation.
    ///
    /// The closure runs under the lock on the key: keep it short, and do not use the database in it, which may wait for
    /// that lock for ever. It runs again where the pool was full and room has been made since, so it should have no
    /// effect but its result; only the last result counts.
    ///
    /// ```
    /// let map = wollemi::Db::anonymous()?.map("visits")?;
    /// let count_up = |current: Option<&[u8]>| {
    ///     let old = current.and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
    ///     Some((old + 1).to_le_bytes().to_vec())
    /// };
    /// map.edit_with("alice", count_up)?;
    /// assert_eq!(map.edit_with("alice", count_up)?, Some(2u64.to_le_bytes().to_vec()));
    ///
    /// assert_eq!(map.edit_with("alice", |_| None)?, None);
    /// assert!(!map.contains("alice")?);
    /// # Ok::<(), wollemi::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::Index`] for a key or a value that is too long, and for a pool that is full, damaged or opened to be read.
    pub fn edit_with(
        &self,
        key: impl AsRef<[u8]>,
        function: impl FnMut(Option<&[u8]>) -> Option<Vec<u8>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let mut edit = Function { function, new: None };
        self.edit(key, &mut edit)?;
        Ok(edit.new)
    }
}
