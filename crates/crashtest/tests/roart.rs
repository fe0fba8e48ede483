//! ROART survives every crash that is looked at.

mod common;

use common::{Full, subject};
use wollemi_crashtest::map::OfIndex;
use wollemi_crashtest::{Explorer, Report, Settings, history};

fn explore(subject: OfIndex, settings: Settings, histories: u64, ops: usize) -> Report {
    let seed = settings.seed;
    let mut explorer = Explorer::new(subject, settings).expect("memory");
    for number in 0..histories {
        if let Err(failure) = explorer.explore(&history::of_map(seed + number, ops, 1)) {
            panic!("{failure}\n{}", explorer.report());
        }
    }
    explorer.into_report()
}

/// Whatever a crash leaves of it, what was acknowledged is there.
#[test]
fn what_was_acknowledged_is_there() {
    let report = explore(subject::<Full>("roart"), Settings::default(), 20, 60);
    println!("{report}");
    assert!(report.states > 1000, "{report}");
}
