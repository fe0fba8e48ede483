//! ROART in the hands of several threads survives every crash that is looked at, and shows nothing that is not durable.

mod common;

use common::{Full, subject};
use wollemi_crashtest::{Explorer, Settings, history};

/// Whatever a crash leaves of it, what was acknowledged is there; nobody answers what a crash may take back.
#[test]
fn what_threads_were_told_is_there() {
    let settings = Settings::default();
    let mut explorer = Explorer::new(subject::<Full>("roart"), settings).expect("memory");
    for seed in 0..40 {
        let history = history::of_map(seed, 40, 2 + seed as u32 % 3);
        if let Err(failure) = explorer.explore(&history) {
            panic!("{failure}\n{}", explorer.report());
        }
    }
    let report = explorer.into_report();
    println!("{report}");
    assert!(report.states > 1000, "{report}");
}
