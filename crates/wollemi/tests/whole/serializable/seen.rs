//! What a transaction has read and changed, and must see.

use super::keys::{Bounds, KEYS, Key, range_read};
use super::{Done, forms::Found};
use index::conformance::serializability::{ABSENT, Overwrite, Version};
use std::collections::BTreeMap;
use std::ops::RangeBounds;

/// The reads and changes of a running transaction.
#[derive(Default)]
pub struct Seen {
    done: Done,
    /// What it read of each key first.
    first: BTreeMap<Key, Version>,
    /// What it has changed, which it must see at once, whether or not it can commit.
    own: BTreeMap<Key, Version>,
    /// An answer that contradicts an earlier one: it must not commit.
    contradiction: Option<String>,
}

impl Seen {
    /// Returns the version that the transaction sees now, if it knows one.
    pub fn now(&self, key: Key) -> Option<Version> {
        self.own.get(&key).or_else(|| self.first.get(&key)).copied()
    }

    /// Notes a read of a key.
    pub fn read(&mut self, key: Key, version: Version) {
        match self.own.get(&key) {
            Some(own) => assert_eq!(version, *own, "its own change of {key:?} is not seen"),
            None => {
                self.first.entry(key).or_insert(version);
                self.done.reads.push((key, version));
            }
        }
    }

    /// Notes whether a key was present, whose version it knows if it was.
    pub fn found(&mut self, key: Key, present: bool) {
        match self.now(key) {
            Some(version) if present == (version != ABSENT) => {}
            Some(version) if self.own.contains_key(&key) => {
                panic!("its own change of {key:?} to {version} is not seen: {present}")
            }
            Some(version) => {
                self.contradiction = Some(format!("{key:?} was {version}, and then {present}"));
            }
            None => {
                assert!(!present, "the version of {key:?} is not known");
                self.read(key, ABSENT);
            }
        }
    }

    /// Notes a read of all of a range: what was found there, in any order.
    pub fn range(&mut self, map: usize, bounds: Bounds, found: &[Found]) {
        let mut keys: Vec<_> = found.iter().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        assert_eq!(keys.len(), found.len(), "a key was found twice: {found:?}");
        assert!(
            keys.iter().all(|key| bounds.contains(*key)),
            "{found:?} in {bounds:?}"
        );
        let mut read = Vec::new();
        for key in KEYS.into_iter().filter(|key| bounds.contains(*key)) {
            let version = found.iter().find(|(found, _)| *found == key);
            let (version, key) = (version.map_or(ABSENT, |(_, version)| *version), (map, key));
            if let Some(own) = self.own.get(&key) {
                assert_eq!(
                    version, *own,
                    "its own change of {key:?} is not seen in {bounds:?}"
                );
            }
            // What its own change hides it has read before.
            let version = match self.own.contains_key(&key) {
                true => self.first[&key],
                false => version,
            };
            self.first.entry(key).or_insert(version);
            if version != ABSENT {
                read.push((key, version));
            }
        }
        self.done.scans.push(range_read(map, bounds, read));
    }

    /// Notes a change of a key that it has read.
    pub fn write(&mut self, key: Key, new: Version) {
        assert!(self.first.contains_key(&key), "what {key:?} was is not known");
        self.own.insert(key, new);
    }

    /// Returns its reads and changes, if it commits now.
    pub fn done(&self) -> Done {
        let changed = self.own.iter().map(|(&key, &new)| {
            let replaced = self.first[&key];
            Overwrite { key, replaced, new }
        });
        let changes_something = |write: &Overwrite<Key>| write.replaced != write.new;
        Done {
            writes: changed.filter(changes_something).collect(),
            ..self.done.clone()
        }
    }

    /// Returns its reads alone.
    pub fn reads(self) -> Done {
        self.done
    }

    /// It has committed, so all that it read must have been true.
    pub fn assert_consistent(&self) {
        assert_eq!(self.contradiction, None);
    }
}
