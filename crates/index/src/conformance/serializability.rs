//! Checks whether some serial order explains a recorded history of operations on many keys.
//!
//! The method is that of dependency graphs (A. Adya, *Weak Consistency*, 1999) with recoverable versions (K. Kingsbury
//! and P. Alvaro, *Elle*, VLDB 2020): each value that is written is unique, and each write records which value it has
//! replaced. So the order of a key's values is known, and with it the dependencies between operations. An operation
//! comes after another one that
//!
//! * wrote the value that it replaces (*write-write*) or reads (*write-read*);
//! * read the value that it replaces (*read-write*, an anti-dependency);
//! * had ended when it began (*real time*).
//!
//! If and only if the graph has no cycle, the history is strictly serializable: an order exists that explains all
//! observations and contradicts no clock. The check reports one cycle: one that shows the most basic [`AnomalyKind`] of
//! all, with as few operations as its search finds.
//!
//! For n reads and writes the check takes time in proportion to n log n, and to the square of the number of additions
//! of one key that overlap in time; a range read counts as a read of every key that was ever written. [`linearizable`] needs no unique values and no replaced ones, but checks single keys and
//! searches orders.
//!
//! ```
//! # extern crate wollemi_index as index;
//! use index::conformance::serializability::{ABSENT, AnomalyKind, Committed, check};
//!
//! let setup = Committed::between(0, 1).wrote("x", ABSENT, 1).wrote("y", ABSENT, 2);
//! // Two transactions at the same time: each reads both keys and writes one of them.
//! let one = Committed::between(2, 5).read("x", 1).read("y", 2).wrote("x", 1, 3);
//! let two = Committed::between(3, 4).read("x", 1).read("y", 2).wrote("y", 2, 4);
//!
//! assert!(check(&[setup.clone(), one.clone()]).is_ok());
//! let anomaly = check(&[setup, one, two]).unwrap_err();
//! assert_eq!(anomaly.kind, AnomalyKind::WriteSkew);
//! assert_eq!(anomaly.operations, [1, 2]);
//! ```
//!
//! A removal is a write of [`ABSENT`]. It leaves no value, so what was absent does not tell which removal came before.
//! The check infers that from the clock, since a key that was added between two operations is not absent between them:
//! if one has ended when the other begins, the order is known. A removal and an addition of a key that overlap in time
//! may have either order. Then the check may miss an anomaly, but it reports no false one. Since the clock orders the
//! additions and removals of a key, an anomaly of any kind may be one that the clock alone shows.
//!
//! ```
//! # extern crate wollemi_index as index;
//! use index::conformance::serializability::{ABSENT, AnomalyKind, Committed, check};
//!
//! let added = Committed::between(0, 1).wrote("x", ABSENT, 1);
//! let removed = Committed::between(2, 3).wrote("x", 1, ABSENT);
//! let stale = Committed::between(4, 5).read("x", 1);
//! let anomaly = check(&[added, removed, stale]).unwrap_err();
//! assert_eq!(anomaly.kind, AnomalyKind::RealTime);
//! ```
//!
//! Record committed operations only. A value of an operation that failed must then never be read.
//!
//! [`linearizable`]: super::linearizable

mod cycle;
mod lives;
#[cfg(test)]
mod tests;
mod versions;

use cycle::{Dependency, Graph};
use std::fmt::{self, Debug};
use std::hash::Hash;
use std::ops::{Bound, RangeBounds};
use versions::Versions;

/// Identifies a value of a key: no two writes of the key have the same.
pub type Version = u64;

/// The version of a key that is absent: not written yet, or removed.
pub const ABSENT: Version = 0;

/// A committed operation on several keys: a transaction, a batch, the reads of a snapshot, or a single write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Committed<K> {
    /// When it was called, on a clock that all threads share.
    pub began: u64,
    /// When it returned. Another operation that began later came after it.
    pub ended: u64,
    /// The keys that it read, with the versions that it saw.
    pub reads: Vec<(K, Version)>,
    /// The ranges that it read.
    pub scans: Vec<RangeRead<K>>,
    /// The keys that it wrote.
    pub writes: Vec<Overwrite<K>>,
}

/// A read of all keys between two bounds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeRead<K> {
    /// The lower and the upper bound.
    pub bounds: (Bound<K>, Bound<K>),
    /// The keys found. All others between the bounds were [`ABSENT`].
    pub found: Vec<(K, Version)>,
}

/// A write of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overwrite<K> {
    /// The key.
    pub key: K,
    /// The version that it replaced.
    pub replaced: Version,
    /// The version that it wrote; [`ABSENT`] if it removed the key.
    pub new: Version,
}

impl<K> Overwrite<K> {
    fn is_removal(&self) -> bool {
        self.new == ABSENT
    }
}

impl<K> Committed<K> {
    /// Returns an operation that has read and written nothing yet.
    pub fn between(began: u64, ended: u64) -> Committed<K> {
        Committed {
            began,
            ended,
            reads: Vec::new(),
            scans: Vec::new(),
            writes: Vec::new(),
        }
    }

    /// Adds a read of one key.
    pub fn read(mut self, key: K, version: Version) -> Committed<K> {
        self.reads.push((key, version));
        self
    }

    /// Adds a read of a range.
    pub fn scanned(
        mut self,
        keys: impl RangeBounds<K>,
        found: impl IntoIterator<Item = (K, Version)>,
    ) -> Committed<K>
    where
        K: Clone,
    {
        self.scans.push(RangeRead {
            bounds: (keys.start_bound().cloned(), keys.end_bound().cloned()),
            found: found.into_iter().collect(),
        });
        self
    }

    /// Adds a write; a `new` version of [`ABSENT`] is a removal.
    pub fn wrote(mut self, key: K, replaced: Version, new: Version) -> Committed<K> {
        self.writes.push(Overwrite { key, replaced, new });
        self
    }
}

/// What a history shows that no serial order does. Names in parentheses are Adya's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnomalyKind {
    /// Two writes replaced the same version, so one of them is lost.
    LostUpdate,
    /// A version was read or replaced that no committed operation has written (G1a).
    DirtyRead,
    /// A version was read that its own writer has replaced (G1b).
    IntermediateRead,
    /// Operations overwrote each other's values in a circle (G0).
    WriteCycle,
    /// Operations read or overwrote each other's values in a circle (G1c).
    CircularInformation,
    /// An operation saw some of another's effects and missed others: one anti-dependency in the circle (G-single).
    ReadSkew,
    /// Operations did not see each other's writes: two anti-dependencies in a row (G2-item).
    WriteSkew,
    /// Readers saw two writes in different orders: anti-dependencies that are not neighbours (a long fork).
    LongFork,
    /// A range read missed a key that another operation of the circle has added (G2).
    Phantom,
    /// All orders that explain the values contradict the clock. The history may be serializable, but is not strictly.
    RealTime,
}

impl fmt::Display for AnomalyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AnomalyKind::LostUpdate => "lost update",
            AnomalyKind::DirtyRead => "dirty read (G1a)",
            AnomalyKind::IntermediateRead => "intermediate read (G1b)",
            AnomalyKind::WriteCycle => "write cycle (G0)",
            AnomalyKind::CircularInformation => "circular information flow (G1c)",
            AnomalyKind::ReadSkew => "read skew (G-single)",
            AnomalyKind::WriteSkew => "write skew (G2-item)",
            AnomalyKind::LongFork => "long fork (G2-item)",
            AnomalyKind::Phantom => "phantom (G2)",
            AnomalyKind::RealTime => "real-time violation",
        })
    }
}

/// Why a history is not strictly serializable. Displayed, it describes each operation that takes part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Anomaly {
    /// Its kind.
    pub kind: AnomalyKind,
    /// The positions in the history of the operations that take part; in a cycle each comes before the next, and the
    /// last before the first.
    pub operations: Vec<usize>,
    text: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind, self.text)
    }
}

impl std::error::Error for Anomaly {}

/// Checks that a history, in any order, is strictly serializable.
///
/// # Errors
///
/// The anomaly that it shows.
///
/// # Panics
///
/// If the record is wrong: a key was written with the same version twice, or removed while it was absent.
pub fn check<K: Clone + Debug + Hash + Ord>(history: &[Committed<K>]) -> Result<(), Anomaly> {
    let versions = Versions::of(history)?;
    let mut graph = Graph::new(history.iter().map(|done| (done.began, done.ended)));
    versions.lives.values().for_each(|lives| lives.order(&mut graph));
    for (number, done) in history.iter().enumerate() {
        for write in &done.writes {
            if let Some(writer) = versions.writer(number, done, &write.key, write.replaced)? {
                graph.add(writer, number, Dependency::WriteWrite);
            }
        }
        let points = done.reads.iter().cloned();
        let points = points.map(|(key, version)| (key, version, Dependency::ReadWrite));
        for (key, version, anti) in points.chain(versions.scanned(done)) {
            match versions.writer(number, done, &key, version)? {
                Some(writer) => {
                    let replacer = versions.replacer(&key, version).map(|(replacer, _)| replacer);
                    if writer != number && replacer == Some(writer) {
                        let what = format!("{key:?} as {version}, which its writer has replaced, was read");
                        let operations = [writer, number];
                        return Err(anomaly(AnomalyKind::IntermediateRead, history, what, &operations));
                    }
                    graph.add(writer, number, Dependency::WriteRead);
                    if let Some(replacer) = replacer {
                        graph.add(number, replacer, anti);
                    }
                }
                None => {
                    if let Some(lives) = versions.lives.get(&key) {
                        lives.absent(&mut graph, (number, done), anti);
                    }
                }
            }
        }
    }
    match graph.anomaly() {
        None => Ok(()),
        Some((kind, operations)) => {
            let what = "each of these comes before the next, and the last before the first".to_owned();
            Err(anomaly(kind, history, what, &operations))
        }
    }
}

fn anomaly<K: Debug>(
    kind: AnomalyKind,
    history: &[Committed<K>],
    what: String,
    operations: &[usize],
) -> Anomaly {
    let each = operations
        .iter()
        .map(|&number| format!("\n  operation {number}: {:?}", history[number]));
    Anomaly {
        kind,
        operations: operations.to_vec(),
        text: what + &each.collect::<String>(),
    }
}
