//! What implementations of these designs got wrong, each seeded in a small structure, and found.
//!
//! The structure is one node, or another after it has moved: entries that are appended, a counter that makes them count,
//! a volatile count that is rebuilt at the first lock after a restart, a prefix that goes with a depth. Without a bug all
//! of it is right. What the heap got wrong is seeded beside an index of the list.

#[path = "../common/mod.rs"]
mod common;
mod subject;
mod tree;

use common::IndexKind;
use common::seeded::{self, Expected};
use pmem::{PWord, Pool, Purpose, persist_scope};
use subject::op;
use tree::{Bug, Tree};
use wollemi_crashtest::map::{LiveIndex, Map, OfIndex, Op as MapOp};
use wollemi_crashtest::{Crash, Explorer, Random, Settings, Subject, Verdict, history};

/// Histories that a bug may take to be found.
const HISTORIES: u64 = 400;

/// Nothing is found in the structure without a bug.
#[test]
fn the_whole_one_passes() {
    seeded::is_whole(Tree(Bug::Nothing), HISTORIES, op);
}

/// Each bug is found, by what it does.
#[test]
fn each_is_found() {
    let lost = "instead of";
    let unmade = "an entry counts that was never made";
    let no_order = "no order of operations lets";
    let dirty = "dirty read";
    for (bug, crashes, states, says) in [
        (
            Bug::RootNotPersisted,
            1,
            1000,
            "the root leads to what is no node",
        ),
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
        (Bug::CheckBeforeLock, 0, 50_000, "is there twice"),
        // Nobody who has the one lock waits for who has the other.
        (Bug::UpdateUnderOtherLock, 0, 50_000, dirty),
        (Bug::TryLockMeansCrash, 0, 200_000, no_order),
        (Bug::OldNodeWritten, 0, 50_000, lost),
        (Bug::LockIsPersistent, 1, 1000, "it hangs"),
        (Bug::DirtyRead, 0, 50_000, dirty),
        (Bug::SignedFingerprint, 0, 50_000, lost),
        (Bug::StalePointer, 1, 1000, "it panics: index out of bounds"),
    ] {
        let expected = Expected {
            says,
            crashes,
            states,
        };
        seeded::is_found(Tree(bug), HISTORIES, op, expected);
    }
}

/// An index that leaves an object behind with each update.
struct Leaking(OfIndex);

impl Subject for Leaking {
    type Op = MapOp;
    type Answer = <OfIndex as Subject>::Answer;
    type State = Map;
    type Live = LiveIndex;

    fn name(&self) -> String {
        "leaking".into()
    }

    fn create(&self, pool: Pool<Crash>) -> Result<LiveIndex, String> {
        self.0.create(pool)
    }

    fn open(&self, pool: Pool<Crash>) -> Result<Option<LiveIndex>, String> {
        let live = self.0.open(pool)?;
        live.iter().for_each(leak);
        Ok(live)
    }

    fn apply(&self, live: &LiveIndex, op: &MapOp) -> Result<Self::Answer, String> {
        self.0.apply(live, op)
    }

    fn specify(&self, state: &mut Map, op: &MapOp) -> Self::Answer {
        self.0.specify(state, op)
    }

    fn judge(&self, live: &LiveIndex, verdict: Verdict<'_, Self>) -> Result<usize, String> {
        let Verdict {
            allowed,
            in_flight,
            depth,
            random,
        } = verdict;
        self.0.judge(
            live,
            Verdict {
                allowed,
                in_flight,
                depth,
                random,
            },
        )
    }

    fn follow_up(&self, state: &Map, in_flight: &[&MapOp], random: &mut Random) -> Vec<MapOp> {
        self.0.follow_up(state, in_flight, random)
    }
}

fn leak(live: &LiveIndex) {
    let _link = persist_scope(live.heap.media(), Purpose::Node, |batch| {
        let draft = live.heap.draft(PWord::new(1), 0, &batch).expect("room");
        let flushed = draft.flush(&batch);
        flushed.persisted(&batch.fence()).into_link(pmem::Tag::default())
    });
}

/// An object that is in use and that nothing leads to is found by the accounts after recovery.
#[test]
fn leaks_are_found() {
    let leaking = Leaking(common::subject(IndexKind::Roart));
    let mut explorer = Explorer::new(leaking, Settings::default()).expect("memory");
    let failure = explorer
        .explore(&history::of_map(1, 10, 1))
        .expect_err("it leaks");
    assert!(failure.message.contains("the heap's accounts"), "{failure}");
}
