//! Bugs of implementations of these designs, each seeded into a small structure, and found.
//!
//! The structure is one node, which may move: appended entries, a counter that makes them count, a volatile count that
//! the first lock after a restart rebuilds, and a prefix that must match a depth. Without a bug all of it is correct.

mod node;
#[path = "../common/seeded.rs"]
mod seeded;
mod subject;
mod tree;

use seeded::Expected;
use subject::op;
use tree::{Bug, Tree};

/// Maximum number of histories to find a bug.
const HISTORIES: u64 = 400;

/// The kit finds nothing in the structure without a bug.
#[test]
fn the_whole_one_passes() {
    seeded::is_whole(Tree(Bug::Nothing), HISTORIES, op);
}

/// The kit finds each bug, by its effect.
#[test]
fn each_is_found() {
    let lost = "instead of";
    let unmade = "an entry counts that was never written";
    let no_order = "no order of the operations explains";
    let dirty = "dirty read";
    for (bug, crashes, states, says) in [
        (Bug::RootNotPersisted, 1, 1000, "the root does not lead to a node"),
        (Bug::CountWithEntry, 1, 1000, unmade),
        (Bug::CountFirst, 1, 1000, unmade),
        (Bug::StaleCount, 1, 1000, lost),
        (Bug::CountOneLess, 1, 1000, lost),
        (Bug::HandsOutTwice, 1, 1000, lost),
        (
            Bug::TwoLeavesAssumed,
            1,
            1000,
            "the prefix is what two leaves share",
        ),
        (Bug::CheckBeforeLock, 0, 50_000, "is present twice"),
        // No holder of the one lock waits for a holder of the other.
        (Bug::UpdateUnderOtherLock, 0, 50_000, dirty),
        (Bug::TryLockMeansCrash, 0, 200_000, no_order),
        (Bug::OldNodeWritten, 0, 50_000, lost),
        (Bug::LockIsPersistent, 1, 1000, "the run hangs"),
        (Bug::DirtyRead, 0, 50_000, dirty),
        (Bug::SignedFingerprint, 0, 50_000, lost),
        (Bug::FingerprintAlone, 0, 1000, no_order),
        (
            Bug::StalePointer,
            1,
            1000,
            "the subject panics: index out of bounds",
        ),
        // The line of its header was not written back; the entries are durable.
        (Bug::HeaderNotWrittenBack, 1, 50_000, lost),
        // Metadata that was never rebuilt is garbage to the next insert.
        (Bug::StaleOnChange, 1, 50_000, "instead of"),
        (
            Bug::NewNodesRecovered,
            0,
            1000,
            "a new node is taken for one that a crash has left",
        ),
    ] {
        let expected = Expected {
            says,
            crashes,
            states,
        };
        seeded::is_found(Tree(bug), HISTORIES, op, expected);
    }
}
