//! The database of level `disk` under crashes, failing calls and damage: bounded runs of what `wollemi-lab torture
//! --index disk` does.

use std::time::Duration;
use wollemi_torture::bounds::Bounds;
use wollemi_torture::disk::{damage, each_call, torture};

/// Returns the variable `SEED`, or 1.
fn seed() -> u64 {
    std::env::var("SEED").map_or(1, |seed| seed.parse().expect("a number"))
}

fn bounds(histories: u64) -> Bounds {
    let seed = seed();
    Bounds {
        seed,
        histories,
        budget: Duration::MAX,
        ..Bounds::default()
    }
}

/// After every crash of every history the database holds everything acknowledged, and nothing that was not written.
#[test]
fn crashes_leave_what_was_acknowledged() {
    let report = torture(&bounds(16)).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{report}\n{:?}", report.reached);
    assert!(
        report.states > 4_000 && report.again > 10 && report.faults > 10 && report.together > 0,
        "{report}"
    );
    for what in [
        "full checkpoints",
        "deltas",
        "maps made",
        "maps dropped",
        "logs failed",
    ] {
        assert!(report.reached.get(what).is_some_and(|&times| times > 0), "{what}");
    }
}

/// Whichever call of the disk fails, and however, the errors of the operations are those that it explains, and a crash
/// afterwards leaves what was acknowledged.
#[test]
fn each_call_fails_once() {
    let counts = each_call(seed(), 12).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{counts:?}");
    for operation in [
        "create",
        "open",
        "list",
        "rename",
        "remove",
        "stat",
        "read",
        "write",
        "allocate",
        "map",
        "fdatasync",
        "fsync of the directory",
    ] {
        assert!(
            counts.operations.contains_key(operation),
            "no {operation} has failed: {counts:?}"
        );
    }
}

/// A cleanly closed database that is then damaged fails to open, or has its whole content.
#[test]
fn damage_is_never_data() {
    let report = damage(1, 3_000).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{report:?}");
    assert!(report.refused > 500 && report.whole > 100, "{report:?}");
}
