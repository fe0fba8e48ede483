//! The peers in memory. None of them survives a crash.
//!
//! They get eight-byte keys as big-endian words, which have the same order; other keys as boxed bytes, whose allocation
//! is part of the insert, as they must own their keys.

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

/// A key as a peer stores it, and what it is looked up by.
pub trait PeerKey: Clone + Ord + Send + Sync + Borrow<Self::Look> + 'static {
    /// What it is looked up by.
    type Look: Ord + ?Sized;
    /// The key for these bytes.
    fn own(key: &[u8]) -> Self;
    /// Calls `then` with what these bytes are looked up by.
    fn look<R>(key: &[u8], then: impl FnOnce(&Self::Look) -> R) -> R;
}

#[inline]
fn word(key: &[u8]) -> u64 {
    // Only keys of eight bytes are given to peers that take words.
    key.try_into().map_or(0, u64::from_be_bytes)
}

impl PeerKey for u64 {
    type Look = u64;
    #[inline]
    fn own(key: &[u8]) -> u64 {
        word(key)
    }
    #[inline]
    fn look<R>(key: &[u8], then: impl FnOnce(&u64) -> R) -> R {
        then(&word(key))
    }
}

impl PeerKey for Box<[u8]> {
    type Look = [u8];
    #[inline]
    fn own(key: &[u8]) -> Box<[u8]> {
        key.into()
    }
    #[inline]
    fn look<R>(key: &[u8], then: impl FnOnce(&[u8]) -> R) -> R {
        then(key)
    }
}

/// `BTreeMap` behind a reader-writer lock.
pub struct BTree<K>(RwLock<BTreeMap<K, u64>>);

impl<K: PeerKey> BTree<K> {
    /// An empty one.
    pub fn new() -> BTree<K> {
        BTree(RwLock::new(BTreeMap::new()))
    }
}

impl<K: PeerKey> Engine for BTree<K> {
    #[inline]
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Ok(map.insert(K::own(key), value).is_none())
    }
    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Ok(K::look(key, |key| map.get(key).copied()))
    }
    #[inline]
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Ok(K::look(key, |key| {
            map.get_mut(key).map(|place| *place = value).is_some()
        }))
    }
    #[inline]
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        let mut map = self.0.write().unwrap_or_else(PoisonError::into_inner);
        Ok(K::look(key, |key| map.remove(key).is_some()))
    }
    #[inline]
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        let map = self.0.read().unwrap_or_else(PoisonError::into_inner);
        Ok(K::look(from, |from| {
            let range = map.range::<K::Look, _>((Bound::Included(from), Bound::Unbounded));
            range.take(length).map(|(_, value)| *value).collect()
        }))
    }
}

/// crossbeam's skip list.
pub struct Skip<K>(SkipMap<K, AtomicU64>);

impl<K: PeerKey> Skip<K> {
    /// An empty one.
    pub fn new() -> Skip<K> {
        Skip(SkipMap::new())
    }
}

impl<K: PeerKey> Engine for Skip<K> {
    #[inline]
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.0.insert(K::own(key), AtomicU64::new(value));
        Ok(true)
    }
    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        Ok(K::look(key, |key| {
            self.0.get(key).map(|entry| load(entry.value()))
        }))
    }
    /// In its place: while the map replaces an entry, others do not find the key.
    #[inline]
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        let entry = K::look(key, |key| self.0.get(key));
        Ok(entry
            .map(|entry| entry.value().store(value, Ordering::Relaxed))
            .is_some())
    }
    #[inline]
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(K::look(key, |key| self.0.remove(key).is_some()))
    }
    #[inline]
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        Ok(K::look(from, |from| {
            let range = self
                .0
                .range::<K::Look, _>((Bound::Included(from), Bound::Unbounded));
            range.take(length).map(|entry| load(entry.value())).collect()
        }))
    }
}

#[inline]
fn load(value: &AtomicU64) -> u64 {
    value.load(Ordering::Relaxed)
}

/// scc's tree index, for reads most of all.
pub struct Scc<K>(TreeIndex<K, u64>);

impl<K: PeerKey> Scc<K> {
    /// An empty one.
    pub fn new() -> Scc<K> {
        Scc(TreeIndex::new())
    }
}

impl<K: PeerKey> Engine for Scc<K> {
    #[inline]
    fn insert(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        Ok(self.0.insert_sync(K::own(key), value).is_ok())
    }
    #[inline]
    fn get(&self, key: &[u8]) -> Result<Option<u64>, Error> {
        Ok(K::look(key, |key| self.0.peek_with(key, |_, value| *value)))
    }
    #[inline]
    fn update(&self, key: &[u8], value: u64) -> Result<bool, Error> {
        self.0.upsert_sync(K::own(key), value);
        Ok(true)
    }
    #[inline]
    fn remove(&self, key: &[u8]) -> Result<bool, Error> {
        Ok(K::look(key, |key| self.0.remove_sync(key)))
    }
    #[inline]
    fn scan(&self, from: &[u8], length: usize) -> Result<Scanned, Error> {
        let guard = scc::Guard::new();
        let range = self.0.range(K::own(from).., &guard);
        Ok(range.take(length).map(|(_, value)| *value).collect())
    }
}

/// congee: a concurrent adaptive radix tree for keys of eight bytes and values of 63 bits.
pub struct Congee(U64Congee<usize>);

impl Congee {
    /// An empty one.
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
        // Its ranges end before their upper bound.
        let count = self.0.range(word(from), u64::MAX, &mut entries, &epoch::pin());
        Ok(entries[..count].iter().map(|(_, value)| *value as u64).collect())
    }
}
