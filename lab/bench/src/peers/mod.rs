//! Today's alternatives, as engines in the same loop as ours.
//!
//! Each persistent peer is configured as close as possible to the promise of our level `process`: a completed operation
//! is in the page cache and survives `kill -9`, without waiting for a disk. Every operation is a separate transaction.
//! If a peer promises more or less, or does not return whether a key existed, as ours does, its setting says so. Each
//! can also be configured to return from a write once it is on the medium.

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

/// The failure that a completed operation survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// The end of the process: the write is in the page cache.
    Kill,
    /// Power loss: the write has reached the medium.
    Power,
}

/// Returns a peer's setting for this promise, and what it guarantees.
pub fn setting(name: &str, promise: Promise) -> &'static str {
    match DURABLE.iter().find(|peer| peer.name == name) {
        Some(peer) if promise == Promise::Power => peer.synced,
        Some(peer) => peer.setting,
        None if name == SKIP => "volatile; inserts are blind and do not return the old value",
        None if name == SCC => "volatile; updates are blind and do not return the old value",
        None => "volatile",
    }
}

const SKIP: &str = "crossbeam-skiplist";
const SCC: &str = "scc-treeindex";

/// Creates the in-memory peers that support keys of this kind.
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

/// The result of opening an engine.
pub type Opened = Result<Box<dyn Engine>, Error>;

/// A persistent peer.
pub struct Durable {
    /// Its name.
    pub name: &'static str,
    /// Its setting for surviving a kill, and what it guarantees.
    pub setting: &'static str,
    /// Its setting for surviving power loss.
    pub synced: &'static str,
    /// Whether it does survive a kill with that setting.
    pub survives_kill: bool,
    /// Opens it in a directory, creating it if it is missing.
    pub open: fn(&Path, Promise) -> Opened,
}

/// The persistent peers.
pub const DURABLE: &[Durable] = &[
    disk::REDB,
    disk::FJALL,
    disk::LMDB,
    disk::SLED,
    #[cfg(feature = "rocksdb")]
    rocksdb::ROCKSDB,
];

/// Opens all persistent peers, each in its own directory below `directory`.
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

    /// Checks the behaviour that the loops expect of every engine.
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

    /// Every in-memory peer behaves as a map.
    #[test]
    fn memory_peers_behave() {
        for kind in [KeyKind::U64, KeyKind::Str] {
            for (name, engine) in in_memory(kind) {
                behaves(name, &*engine);
            }
        }
    }

    /// Every persistent peer behaves as a map, and has its data after it is reopened.
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
