//! The engine that a workload runs against: one of our indexes, or a peer.
//!
//! Calls are indirect, as in an embedded database with several kinds of maps. An operation makes one indirect call on
//! our index in `run`, which knows that its engine is ours, and on a peer in `compare`; there it makes two on our index
//! (the engine's, then the index's), so the extra cost counts against ours. Values are eight bytes, passed as words.

use crate::Error;
use index::{Index, Value};
use std::ops::{Bound, ControlFlow};

/// The number of keys in a `multi_get`.
pub const BATCH: usize = 32;

/// The result of a scan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// The first key's value; 0 if the scan read no key.
    pub first: u64,
    /// The number of keys.
    pub keys: usize,
    /// The sum of their values.
    pub sum: u64,
}

impl Scanned {
    /// Adds the next key's value.
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

/// An ordered map from bytes to words. The loops insert only absent keys, and update and remove only present ones:
/// engines differ in the other cases, which are not measured.
pub trait Engine: Sync {
    /// Inserts the key. If it is present, returns `false`: our indexes keep the value, a peer may replace it. A peer
    /// that writes blindly always returns `true`.
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error>;
    /// Returns the key's value.
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error>;
    /// Returns the sum of the values of these keys, and how many of the keys were found.
    fn multi_get(&self, keys: &[&[u8]]) -> Result<(u64, usize), Error> {
        let mut found = (0u64, 0);
        for key in keys {
            if let Some(value) = self.get(key)? {
                found = (found.0.wrapping_add(value), found.1 + 1);
            }
        }
        Ok(found)
    }
    /// Replaces the value of a present key. If it is absent, returns `false`, though a peer may insert it. A peer that
    /// writes blindly always returns `true`.
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error>;
    /// Removes the key. Returns `false` if it is absent; a peer that writes blindly always returns `true`.
    fn remove(&self, key: &[u8]) -> Result<bool, Error>;
    /// Reads the values of the first `length` (at least one) keys from `from`.
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error>;
    /// Makes all writes durable, in engines whose operations do not do so themselves.
    #[cfg(feature = "peers")]
    fn settle(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// An index as an engine. Each call pins the epoch separately, as for a caller with one request at a time.
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
