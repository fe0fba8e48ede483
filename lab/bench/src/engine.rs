//! The engine that a workload runs against: one of our indexes, or a peer.
//!
//! Calls are indirect, as an embedded database with maps of several kinds makes them: one for each call of ours in
//! `run`, which knows that its engine is ours, and of a peer in `compare`; two of ours there (the engine's, then the
//! index's), so that what that costs is counted against ours. Values are eight bytes, given and taken as words.

use crate::Error;
use index::{Index, Value};
use std::ops::{Bound, ControlFlow};

/// How many keys one `multi_get` asks for.
pub const BATCH: usize = 32;

/// What a scan has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// The first key's value, if there was one.
    pub first: u64,
    /// How many keys.
    pub keys: usize,
    /// The sum of their values.
    pub sum: u64,
}

impl Scanned {
    /// The next key's value.
    #[inline]
    pub fn meet(&mut self, value: u64) {
        if self.keys == 0 {
            self.first = value;
        }
        self.keys += 1;
        self.sum = self.sum.wrapping_add(value);
    }
}

impl FromIterator<u64> for Scanned {
    #[inline]
    fn from_iter<I: IntoIterator<Item = u64>>(values: I) -> Scanned {
        let mut scanned = Scanned::default();
        values.into_iter().for_each(|value| scanned.meet(value));
        scanned
    }
}

/// An ordered map from bytes to words. The loops insert only keys that are absent, and update and remove only those
/// that are present: what an engine does otherwise is not measured, and engines differ in it.
pub trait Engine: Sync {
    /// Adds the key. If it is present: `false`, and ours keep the value, while a peer may have replaced it; a peer that
    /// writes without looking says `true` whatever was there.
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error>;
    /// The key's value.
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error>;
    /// The sum of the values of these keys, and how many of them were found.
    fn multi_get(&self, keys: &[&[u8]]) -> Result<(u64, usize), Error> {
        let mut found = (0u64, 0);
        for key in keys {
            if let Some(value) = self.get(key)? {
                found = (found.0.wrapping_add(value), found.1 + 1);
            }
        }
        Ok(found)
    }
    /// Changes the value of a key that is present. If it is absent: `false`, though a peer may have added it; a peer
    /// that writes without looking says `true`.
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error>;
    /// Removes the key; `false` if it is absent, but from a peer that does not look.
    fn remove(&self, key: &[u8]) -> Result<bool, Error>;
    /// Reads the values of the first `length` (at least one) keys from `from`.
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error>;
    /// Makes durable what is not, where an operation does not see to that itself.
    #[cfg(feature = "peers")]
    fn settle(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// An index as an engine. Each call pins the epoch by itself, as that of a caller with one request at a time does.
pub struct Ours<'i>(pub &'i dyn Index);

#[inline]
fn word(value: Value<'_>) -> u64 {
    match value {
        Value::Word(bytes) => u64::from_le_bytes(bytes),
        Value::Bytes(bytes) => bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}

impl Engine for Ours<'_> {
    #[inline]
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        Ok(self.0.insert(key, &value.to_le_bytes())?)
    }

    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        Ok(self.0.get(key, &heap::pin())?.map(word))
    }

    #[inline]
    fn multi_get(&self, keys: &[&[u8]]) -> Result<(u64, usize), Error> {
        let (mut sum, mut count) = (0u64, 0);
        self.0.multi_get(keys, &heap::pin(), &mut |_, value| {
            if let Some(value) = value {
                sum = sum.wrapping_add(word(value));
                count += 1;
            }
        })?;
        Ok((sum, count))
    }

    #[inline]
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        Ok(self.0.update(key, &value.to_le_bytes())?)
    }

    #[inline]
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.0.remove(key)?)
    }

    #[inline]
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        let mut scanned = Scanned::default();
        let (from, to) = (Bound::Included(from), Bound::Unbounded);
        let guard = heap::pin();
        self.0
            .scan(from, to, index::Direction::Forward, &guard, &mut |_, value| {
                scanned.meet(word(value));
                if scanned.keys == length {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })?;
        Ok(scanned)
    }
}
