//! Today's alternatives, as engines in the same loop as ours.
//!
//! Each persistent peer is set as close as possible to the promise of our level `process`: a completed operation
//! survives `kill -9`, by being in the page cache, without waiting for a disk. Every operation is a transaction of its
//! own. If a peer promises more or less than that, or writes without returning whether the key existed, which ours
//! does, its setting says so. Each can also be set to return from a write once it is on the medium.

mod disk;
pub mod kept;
mod memory;
#[cfg(feature = "rocksdb")]
mod rocksdb;
mod sqlite;
pub mod syncing;
pub mod transactional;

use crate::Error;
use crate::engine::Engine;
use crate::keys::KeyKind;
use memory::{BTree, Congee, Scc, Skip};
use std::path::Path;

/// An engine and its name.
pub type Named = (&'static str, Box<dyn Engine>);

/// What is to survive of that from which an operation has returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The end of the process: it is in the page cache.
    Kill,
    /// The loss of power: it has reached the medium.
    Power,
}

/// What a peer is set to for that, and what that promises.
pub fn setting(name: &str, promise: Promise) -> &'static str {
    match DURABLE.iter().find(|peer| peer.name == name) {
        Some(peer) if promise == Promise::Power => peer.synced,
        Some(peer) => peer.setting,
        None if name == SKIP => "volatile; inserts are blind, and do not return what was there",
        None if name == SCC => "volatile; updates are blind, and do not return what was there",
        None => "volatile",
    }
}

const SKIP: &str = "crossbeam-skiplist";
const SCC: &str = "scc-treeindex";

/// The peers in memory that take such keys.
pub fn in_memory(kind: KeyKind) -> Vec<Named> {
    if kind.is_word() {
        vec![
            ("congee", Box::new(Congee::new())),
            (SKIP, Box::new(Skip::<u64>::new())),
            ("BTreeMap+RwLock", Box::new(BTree::<u64>::new())),
            (SCC, Box::new(Scc::<u64>::new())),
        ]
    } else {
        vec![
            (SKIP, Box::new(Skip::<Box<[u8]>>::new())),
            ("BTreeMap+RwLock", Box::new(BTree::<Box<[u8]>>::new())),
            (SCC, Box::new(Scc::<Box<[u8]>>::new())),
        ]
    }
}

/// An engine, if it could be opened.
pub type Opened = Result<Box<dyn Engine>, Error>;

/// A peer that keeps its data.
pub struct Durable {
    /// Its name.
    pub name: &'static str,
    /// What it is set to in order to survive a kill, and what that promises.
    pub setting: &'static str,
    /// What it is set to in order to survive the loss of power.
    pub synced: &'static str,
    /// Whether it does survive a kill when it is set to that.
    pub survives_kill: bool,
    /// Opens it in a directory, or makes it there.
    pub open: fn(&Path, Promise) -> Opened,
}

/// The peers that keep their data.
pub const DURABLE: &[Durable] = &[
    disk::REDB,
    disk::FJALL,
    disk::LMDB,
    disk::SLED,
    #[cfg(feature = "rocksdb")]
    rocksdb::ROCKSDB,
];

/// All of them, each in a directory of its own in the one given.
pub fn durable(directory: &Path, promise: Promise) -> Result<Vec<Named>, Error> {
    let open = |peer: &Durable| {
        let own = directory.join(peer.name);
        std::fs::create_dir_all(&own).map_err(Error::Directory)?;
        Ok((peer.name, (peer.open)(&own, promise)?))
    };
    DURABLE.iter().map(open).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What every engine must do for the loops to be right.
    fn behaves(name: &str, engine: &dyn Engine) {
        let key = |i: u64| i.to_be_bytes();
        for i in (0..200u64).rev() {
            assert!(engine.insert(&key(i), i).unwrap(), "{name}");
        }
        assert_eq!(engine.get(&key(7)).unwrap(), Some(7), "{name}");
        assert_eq!(engine.get(&key(1000)).unwrap(), None, "{name}");
        assert!(engine.update(&key(7), 70).unwrap(), "{name}");
        assert_eq!(engine.get(&key(7)).unwrap(), Some(70), "{name}");
        for from in [10, 195] {
            let values = from..(from + 100).min(200);
            let scanned = engine.scan(&key(from), 100).unwrap();
            assert_eq!(scanned, values.collect(), "{name}");
        }
        assert_eq!(
            engine.multi_get(&[&key(1), &key(2), &key(1000)]).unwrap(),
            (3, 2),
            "{name}"
        );
        assert!(engine.remove(&key(7)).unwrap(), "{name}");
        assert_eq!(engine.get(&key(7)).unwrap(), None, "{name}");
    }

    /// Every peer in memory is a map.
    #[test]
    fn memory_peers_behave() {
        for kind in [KeyKind::U64, KeyKind::Str] {
            for (name, engine) in in_memory(kind) {
                behaves(name, &*engine);
            }
        }
    }

    /// Every peer that keeps its data is a map, and finds it again.
    #[test]
    fn durable_peers_behave_and_keep() {
        let promises = [Promise::Kill, Promise::Power];
        for (peer, promise) in DURABLE
            .iter()
            .flat_map(|peer| promises.map(|promise| (peer, promise)))
        {
            let directory = tempfile::tempdir().unwrap();
            let engine = (peer.open)(directory.path(), promise).unwrap();
            behaves(peer.name, &*engine);
            engine.settle().unwrap();
            drop(engine);
            let engine = (peer.open)(directory.path(), promise).unwrap();
            assert_eq!(engine.get(&8u64.to_be_bytes()).unwrap(), Some(8), "{}", peer.name);
        }
    }
}
