//! Who wrote and who replaced each version of a history.

use super::cycle::Dependency;
use super::lives::{AddedTwice, Lives, Times};
use super::{ABSENT, Anomaly, AnomalyKind, Committed, Overwrite, Version, anomaly};
use std::collections::HashMap;
use std::fmt::Debug;
use std::hash::Hash;
use std::ops::RangeBounds;

/// The writers of a history's versions.
pub struct Versions<'h, K> {
    /// The operation that wrote a version.
    writers: HashMap<(&'h K, Version), usize>,
    /// The operation that replaced a version, and its write.
    replacers: HashMap<(&'h K, Version), (usize, &'h Overwrite<K>)>,
    /// The lives of each key that was ever written.
    pub lives: HashMap<&'h K, Lives>,
    /// The keys that were ever written, in order.
    keys: Vec<&'h K>,
}

impl<'h, K: Clone + Debug + Hash + Ord> Versions<'h, K> {
    pub fn of(history: &'h [Committed<K>]) -> Result<Versions<'h, K>, Anomaly> {
        let (mut writers, mut replacers) = (HashMap::new(), HashMap::new());
        let mut added: HashMap<&K, Vec<_>> = HashMap::new();
        let operations = history.iter().enumerate();
        let writes =
            operations.flat_map(|(number, done)| done.writes.iter().map(move |write| (number, write)));
        for (number, write) in writes {
            let Overwrite { key, replaced, new } = write;
            assert!(
                !write.is_removal() || *replaced != ABSENT,
                "{key:?} was removed while it was absent"
            );
            if !write.is_removal() {
                let other = writers.insert((key, *new), number);
                assert_eq!(other, None, "{key:?} was written as {new} twice");
            }
            if *replaced == ABSENT {
                added.entry(key).or_default().push((number, write));
            } else if let Some((other, _)) = replacers.insert((key, *replaced), (number, write)) {
                let what = format!("{key:?} as {replaced} was replaced twice");
                return Err(anomaly(AnomalyKind::LostUpdate, history, what, &[other, number]));
            }
        }
        let mut keys: Vec<&K> = writers.keys().map(|(key, _)| *key).collect();
        keys.sort_unstable();
        keys.dedup();
        let readers = readers(history);
        let mut lives = HashMap::new();
        for (key, added) in added {
            let replacer = |write: &Overwrite<K>| replacers.get(&(key, write.new)).copied();
            let readers = |write: &Overwrite<K>| readers.get(&(key, write.new)).copied();
            let of_key =
                Lives::of(history, &added, readers, replacer).map_err(|AddedTwice(operations)| {
                    let what = format!("{key:?} was added twice and not removed in between");
                    anomaly(AnomalyKind::LostUpdate, history, what, &operations)
                })?;
            lives.insert(key, of_key);
        }
        Ok(Versions {
            writers,
            replacers,
            lives,
            keys,
        })
    }

    /// Returns the operation that replaced a version, and its write.
    pub fn replacer(&self, key: &K, version: Version) -> Option<(usize, &'h Overwrite<K>)> {
        self.replacers.get(&(key, version)).copied()
    }

    /// Returns the operation that wrote a version which `number` has read or replaced; `None` for an absent key.
    pub fn writer(
        &self,
        number: usize,
        done: &Committed<K>,
        key: &K,
        version: Version,
    ) -> Result<Option<usize>, Anomaly> {
        let writer = self.writers.get(&(key, version)).copied();
        if writer.is_none() && version != ABSENT {
            return Err(Anomaly {
                kind: AnomalyKind::DirtyRead,
                operations: vec![number],
                text: format!(
                    "no operation has written {key:?} as {version}\n  operation {number}: {done:?}"
                ),
            });
        }
        Ok(writer)
    }

    /// Returns what an operation's range reads say of each key in the history, with the dependency of the operation
    /// that has replaced what was read.
    pub fn scanned(&self, done: &Committed<K>) -> impl Iterator<Item = (K, Version, Dependency)> {
        done.scans.iter().flat_map(|scan| {
            let found = scan.found.iter().cloned();
            let found = found.map(|(key, version)| (key, version, Dependency::ReadWrite));
            let seen: HashMap<&K, Version> =
                scan.found.iter().map(|(key, version)| (key, *version)).collect();
            let between = self.keys.iter().filter(|key| scan.bounds.contains(**key));
            let missed = between.filter(move |key| !seen.contains_key(**key));
            found.chain(missed.map(|key| (K::clone(key), ABSENT, Dependency::RangeReadWrite)))
        })
    }
}

/// Returns the times of the operations that have read each version.
fn readers<K: Hash + Eq>(history: &[Committed<K>]) -> HashMap<(&K, Version), Times> {
    let mut readers = HashMap::new();
    for done in history {
        let found = done.scans.iter().flat_map(|scan| &scan.found);
        for (key, version) in done.reads.iter().chain(found) {
            let times = Times::of(done);
            readers
                .entry((key, *version))
                .and_modify(|others: &mut Times| *others = others.with(times))
                .or_insert(times);
        }
    }
    readers
}
