//! Indexes built from sorted pairs survive every explored crash.

mod common;

use common::{claimed, whole_and_variants};
use crashkit::{Explorer, MemoryModel, Mode, Settings};
use wollemi_torture::builds::{Builds, history};

/// After any crash, each index that was being built exists as a whole or not at all, and no memory leaks.
#[test]
fn an_index_is_built_or_not() {
    for kind in whole_and_variants() {
        for mode in [Mode::Power, Mode::Word, Mode::Process] {
            let settings = Settings {
                model: MemoryModel::from(mode),
                // A build stores much, and its stores count only at its end: many crash points, few images at each.
                exhaustive: 4,
                samples: 2,
                ..Settings::default()
            };
            let subject = Builds(claimed(kind, mode));
            let mut explorer = Explorer::new(subject, settings).expect("memory");
            for seed in 0..2 {
                if let Err(failure) = explorer.explore(&history(seed, 3)) {
                    panic!("{kind}, {failure}\n{}", explorer.report());
                }
            }
            let report = explorer.into_report();
            println!("{kind}: {report}");
            assert!(report.states > 100, "{report}");
            assert!(
                report.coverage.steps.contains_key("bulk: publication"),
                "{report}"
            );
        }
    }
}

/// Each persist of a build is needed, or a table gives the reason why it stays.
#[test]
fn persists_of_builds_are_needed() {
    for kind in whole_and_variants() {
        let settings = Settings {
            exhaustive: 4,
            samples: 2,
            deep_share: 0,
            hunt_forgiven: false,
            hunted: |mutant| mutant.site.file().contains("bulk"),
            ..Settings::default()
        };
        let mut explorer = Explorer::new(Builds(kind), settings).expect("memory");
        let hunted = explorer.hunt((0..10).map(|seed| history(seed, 4)), 300, |_| true);
        let hunted = hunted.expect("no failure");
        let unexplained = hunted.iter().filter(|one| one.is_unexplained());
        let unexplained: Vec<String> = unexplained.map(ToString::to_string).collect();
        assert_eq!(unexplained, [""; 0], "{kind}");
    }
}
