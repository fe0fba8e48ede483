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
use pmem::{PWord, Pool, Purpose, persist_scope};
use subject::{Op, op};
use tree::{Bug, Tree};
use wollemi_crashtest::map::{LiveIndex, Map, OfIndex, Op as MapOp};
use wollemi_crashtest::{
    Crash, Explorer, Failure, History, Random, Report, Settings, Subject, Verdict, history, silence_findings,
};

/// Histories of one to three threads, in turn.
fn histories() -> impl Iterator<Item = History<Op>> {
    (0..400).map(|seed| {
        let mut random = Random(seed);
        History {
            seed,
            ops: (0..24).map(|_| op(&mut random)).collect(),
            prepared: 0,
            threads: 1 + seed as u32 % 3,
        }
    })
}

fn explore(bug: Bug) -> (Result<(), Box<Failure>>, Report) {
    silence_findings();
    let settings = Settings {
        memory: 2 << 20,
        steps: 100_000,
        again_share: 20,
        kill_share: 20,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(Tree(bug), settings).expect("memory");
    let found = histories().try_for_each(|history| explorer.explore(&history));
    (found, explorer.into_report())
}

/// Nothing is found in the structure without a bug.
#[test]
fn the_whole_one_passes() {
    let (found, report) = explore(Bug::Nothing);
    assert!(found.is_ok(), "{}", found.expect_err("checked"));
    assert!(report.states > 2000 && report.again > 50, "{report}");
}

/// Each bug is found within four hundred histories.
#[test]
fn each_is_found() {
    for bug in [
        Bug::RootNotPersisted,
        Bug::CountWithEntry,
        Bug::CountFirst,
        Bug::StaleCount,
        Bug::CountOneLess,
        Bug::HandsOutTwice,
        Bug::TwoLeavesAssumed,
        Bug::CheckBeforeLock,
        Bug::UpdateUnderOtherLock,
        Bug::TryLockMeansCrash,
        Bug::OldNodeWritten,
        Bug::LockIsPersistent,
        Bug::DirtyRead,
        Bug::SignedFingerprint,
        Bug::StalePointer,
    ] {
        let (found, report) = explore(bug);
        let failure = found.expect_err(&format!("{bug:?}: {report}"));
        println!("{bug:?}, after {} states: {}", report.states, failure.message);
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
