//! The log of level `disk` under crashes, failing calls and damage: bounded runs of what `wollemi-lab torture --index
//! log` does.

use std::time::Duration;
use wollemi_torture::bounds::Bounds;
use wollemi_torture::log::{damage, torture};
use wollemi_torture::syncs::hunt;

/// After every crash of every history the log holds exactly a prefix of the appended records, which includes all
/// acknowledged ones.
#[test]
fn crashes_leave_a_prefix() {
    let bounds = Bounds {
        histories: 60,
        budget: Duration::MAX,
        ..Bounds::default()
    };
    let report = torture(&bounds).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{report}");
    assert!(
        report.states > 10_000 && report.again > 10 && report.faults > 10,
        "{report}"
    );
}

/// Each sync is needed: the omission of any is detected.
#[test]
fn each_sync_is_missed() {
    // History 95 removes a log whose end an earlier crash has left, which shows the sync of the removed spares.
    let bounds = Bounds {
        seed: 81,
        histories: 40,
        budget: Duration::MAX,
        ..Bounds::default()
    };
    let fates = hunt(&bounds, torture, |_| ()).unwrap_or_else(|failure| panic!("{failure}"));
    for fate in &fates {
        println!("{}: {:?}", fate.site, fate.found);
    }
    assert!(fates.len() >= 7, "{fates:?}");
    let survivors: Vec<_> = fates.iter().filter(|fate| fate.found.is_none()).collect();
    assert!(survivors.is_empty(), "{survivors:?}");
}

/// A cleanly closed log that is then damaged fails to open, or has all its records.
#[test]
fn damage_is_never_data() {
    let report = damage(1, 20_000).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{report:?}");
    assert!(report.refused > 1_000 && report.whole > 1_000, "{report:?}");
}
