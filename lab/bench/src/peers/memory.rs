//! The peers in memory. None of them survives a crash.
//!
//! They store eight-byte keys as big-endian words, which have the same order, and other keys as boxed bytes. The
//! allocation of a box is part of the insert, since the peers own their keys.

use crate::Error;
use crate::engine::{Engine, Scanned};
use congee::{U64Congee, epoch};
use crossbeam_skiplist::SkipMap;
use scc::TreeIndex;
use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

/// A key as a peer stores it.
pub trait PeerKey: Clone + Ord + Send + Sync + Borrow<Self::Query> + 'static {
    /// The borrowed form used for lookups.
    type Query: Ord + ?Sized;
    /// Creates the stored key for these bytes.
    fn from_bytes(key: &[u8]) -> Self;
    /// Calls `then` with the borrowed form of these bytes.
    fn with_query<R>(key: &[u8], then: impl FnOnce(&Self::Query) -> R) -> R;
}

#[inline]
fn word(key: &[u8]) -> u64 {
    // Peers with word keys get only keys of eight bytes.
    key.try_into().map_or(0, u64::from_be_bytes)
}

impl PeerKey for u64 {
    type Query = u64;
    #[inline]
    fn from_bytes(key: &[u8]) -> u64 {
        word(key)
    }
    #[inline]
    fn with_query<R>(key: &[u8], then: impl FnOnce(&u64) -> R) -> R {
        then(&word(key))
    }
}

impl PeerKey for Box<[u8]> {
    type Query = [u8];
    #[inline]
    fn from_bytes(key: &[u8]) -> Box<[u8]> {
        key.into()
    }
    #[inline]
    fn with_query<R>(key: &[u8], then: impl FnOnce(&[u8]) -> R) -> R {
        then(key)
    }
}

/// `BTreeMap` behind a reader-writer lock.
pub struct BTree<K>(RwLock<BTreeMap<K, u64>>);

impl<K: PeerKey> BTree<K> {
    /// Creates an empty map.
    pub fn new() -> BTree<K> {
        BTree(RwLock::new(BTreeMap::new()))
    }
}

impl<K: PeerKey> Engine for BTree<K> {
    #[inline]
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Ok(map.insert(K::from_bytes(key), value).is_none())
    }
    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Ok(K::with_query(key, |key| map.get(key).copied()))
    }
    #[inline]
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Ok(K::with_query(key, |key| {
            map.get_mut(key).map(|place| *place = value).is_some()
        }))
    }
    #[inline]
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Ok(K::with_query(key, |key| map.remove(key).is_some()))
    }
    #[inline]
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Ok(K::with_query(from, |from| {
            let range = map.range::<K::Query, _>((Bound::Included(from), Bound::Unbounded));
            range.take(length).map(|(_, value)| *value).collect()
        }))
    }
}

/// crossbeam's skip list.
pub struct Skip<K>(SkipMap<K, AtomicU64>);

impl<K: PeerKey> Skip<K> {
    /// Creates an empty map.
    pub fn new() -> Skip<K> {
        Skip(SkipMap::new())
    }
}

impl<K: PeerKey> Engine for Skip<K> {
    #[inline]
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.0.insert(K::from_bytes(key), AtomicU64::new(value));
        Ok(true)
    }
    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        Ok(K::with_query(key, |key| {
            self.0.get(key).map(|entry| load(entry.value()))
        }))
    }
    /// Updates the value in place: if the map replaced the entry, other threads would not find the key meanwhile.
    #[inline]
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        let entry = K::with_query(key, |key| self.0.get(key));
        Ok(entry
            .map(|entry| entry.value().store(value, Ordering::Relaxed))
            .is_some())
    }
    #[inline]
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(K::with_query(key, |key| self.0.remove(key).is_some()))
    }
    #[inline]
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        Ok(K::with_query(from, |from| {
            let range = self
                .0
                .range::<K::Query, _>((Bound::Included(from), Bound::Unbounded));
            range.take(length).map(|entry| load(entry.value())).collect()
        }))
    }
}

#[inline]
fn load(value: &AtomicU64) -> u64 {
    value.load(Ordering::Relaxed)
}

/// scc's tree index, optimized for reads.
pub struct Scc<K>(TreeIndex<K, u64>);

impl<K: PeerKey> Scc<K> {
    /// Creates an empty map.
    pub fn new() -> Scc<K> {
        Scc(TreeIndex::new())
    }
}

impl<K: PeerKey> Engine for Scc<K> {
    #[inline]
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        Ok(self.0.insert_sync(K::from_bytes(key), value).is_ok())
    }
    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        Ok(K::with_query(key, |key| self.0.peek_with(key, |_, value| *value)))
    }
    #[inline]
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.0.upsert_sync(K::from_bytes(key), value);
        Ok(true)
    }
    #[inline]
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(K::with_query(key, |key| self.0.remove_sync(key)))
    }
    #[inline]
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        let guard = scc::Guard::new();
        let range = self.0.range(K::from_bytes(from).., &guard);
        Ok(range.take(length).map(|(_, value)| *value).collect())
    }
}

/// congee: a concurrent adaptive radix tree for keys of eight bytes and values of 63 bits.
pub struct Congee(U64Congee<usize>);

impl Congee {
    /// Creates an empty map.
    pub fn new() -> Congee {
        Congee(U64Congee::new())
    }
}

impl Engine for Congee {
    #[inline]
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        let old = self.0.insert(word(key), value as usize, &epoch::pin());
        Ok(matches!(old, Ok(None)))
    }
    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        Ok(self.0.get(word(key), &epoch::pin()).map(|value| value as u64))
    }
    #[inline]
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        let old = self.0.insert(word(key), value as usize, &epoch::pin());
        Ok(matches!(old, Ok(Some(_))))
    }
    #[inline]
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(self.0.remove(word(key), &epoch::pin()).is_some())
    }
    #[inline]
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        let mut entries = vec![([0u8; 8], 0usize); length];
        // The upper bound is exclusive.
        let count = self.0.range(word(from), u64::MAX, &mut entries, &epoch::pin());
        Ok(entries[..count].iter().map(|(_, value)| *value as u64).collect())
    }
}
