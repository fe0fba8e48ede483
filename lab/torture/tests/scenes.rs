//! Every index survives scans beside writers, operations during recovery, and full pools.

mod common;

use common::{explore, modifications, whole};
use crashkit::{History, Report, Settings};
use wollemi::indexes::IndexKind;
use wollemi_torture::history;
use wollemi_torture::map::Op;

/// Returns the first `count` histories of several threads that `is_one` accepts.
fn histories(count: usize, is_one: impl Fn(&History<Op>) -> bool) -> impl Iterator<Item = History<Op>> {
    let all = (0..).map(|seed| history::of_map(seed, 40, 2 + seed as u32 % 3));
    all.filter(is_one).take(count)
}

fn of_kind(kind: IndexKind, count: usize, is_one: impl Fn(&History<Op>) -> bool) -> Report {
    let settings = Settings {
        kill_share: 30,
        again_share: 50,
        deep_share: 40,
        ..Settings::default()
    };
    explore(kind, settings, histories(count, is_one))
}

/// A scan beside writers visits only entries that were present, in order, and every key that was present throughout.
#[test]
fn scans_beside_writers_are_right() {
    let is_scan = |op: &Op| matches!(op, Op::Scan(_));
    for kind in whole() {
        let report = of_kind(kind, 8, |history| {
            history.ops.iter().filter(|op| is_scan(op)).count() >= 10
        });
        assert!(report.coverage.operations["scan"] > 80, "{report}");
    }
}

/// Objects written while recovery traces stay, and removed ones are freed exactly once.
#[test]
fn recovery_beside_writers_frees_what_is_dead() {
    for kind in whole() {
        let report = of_kind(kind, 8, |history| history.reopened);
        assert!(report.states > 100, "{report}");
        let missing = modifications::missing(&["recovery: retired while it traced"], &report.coverage);
        assert!(missing.is_empty(), "{kind}: {missing:?}");
    }
}

/// A write that finds the pool full changes nothing, and removals make room again.
#[test]
fn full_pools_lose_nothing() {
    for kind in whole() {
        let report = of_kind(kind, 6, |history| history.room < u64::MAX);
        assert!(report.states > 100, "{report}");
        let missing = modifications::missing(&["full: refused"], &report.coverage);
        assert!(missing.is_empty(), "{kind}: {missing:?}");
    }
}
