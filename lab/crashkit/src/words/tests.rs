//! The tests of a [`WordMap`], each one call of [`torture`].

use super::{OfWordMap, WordMap, operation};
use crate::torture::{Torture, torture};
use crate::{Failure, Random, Report, Settings};
use std::time::Duration;

/// Makes the tests of a type that implements [`WordMap`](crate::words::WordMap):
///
/// | test | property |
/// |---|---|
/// | `agrees_with_a_model` | hundreds of operations of one thread, before any crash, answer as a `BTreeMap` does |
/// | `survives_crashes` | after each crash of one thread and of its recovery, everything acknowledged is kept |
/// | `survives_races` | two and three threads answer in some order, and nothing that a crash could take back |
/// | `misses_each_persist` | without any one of its write-backs and fences, some image is wrong |
///
/// All of them also compare the heap's accounts with what is reachable.
///
/// ```text
/// wollemi_crashkit::word_map_tests! {
///     my_index: MyIndex<Crash>,
/// }
/// ```
#[macro_export]
macro_rules! word_map_tests {
    ($($name:ident: $map:ty),+ $(,)?) => {$(
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            #[test]
            fn agrees_with_a_model() {
                $crate::words::agrees_with_a_model::<$map>();
            }

            #[test]
            fn survives_crashes() {
                $crate::words::survives_crashes::<$map>();
            }

            #[test]
            fn survives_races() {
                $crate::words::survives_races::<$map>();
            }

            #[test]
            fn misses_each_persist() {
                $crate::words::misses_each_persist::<$map>();
            }
        }
    )+};
}

/// Upper bound on the time of a test. On any machine, the seeds bound it earlier.
const BUDGET: Duration = Duration::from_secs(3600);

fn of<T: WordMap>(keys: u64) -> Torture<OfWordMap<T>, impl Fn(&mut Random) -> super::Op> {
    crate::silence_findings();
    torture(OfWordMap::<T>::default(), operation(keys)).budget(BUDGET)
}

fn passes(run: Result<Report, Box<Failure>>) -> Report {
    match run {
        Ok(report) => report,
        Err(failure) => panic!("{failure}"),
    }
}

#[doc(hidden)]
pub fn agrees_with_a_model<T: WordMap>() {
    let torture = of::<T>(300)
        .seeds(1..=8)
        .prepared(600)
        .operations(4)
        .threads(1..=1);
    let report = passes(torture.run());
    assert!(report.histories > 0, "{report}");
}

#[doc(hidden)]
pub fn survives_crashes<T: WordMap>() {
    let report = passes(of::<T>(30).seeds(1..=20).operations(60).threads(1..=1).run());
    assert!(report.states > 1000 && report.again > 0, "{report}");
}

#[doc(hidden)]
pub fn survives_races<T: WordMap>() {
    let torture = of::<T>(16).seeds(1..=40).operations(40).threads(2..=3);
    let report = passes(torture.run());
    assert!(report.states > 1000, "{report}");
}

#[doc(hidden)]
pub fn misses_each_persist<T: WordMap>() {
    let torture = of::<T>(16).seeds(1..=20).operations(40).settings(Settings {
        deep_share: 0,
        ..Settings::default()
    });
    let hunted = match torture.hunt() {
        Ok(hunted) => hunted,
        Err(failure) => panic!("{failure}"),
    };
    assert!(hunted.iter().any(|one| one.is_killed()), "no mutant was killed");
    let unexplained: Vec<_> = hunted.iter().filter(|one| one.is_unexplained()).collect();
    let lines: Vec<_> = unexplained.iter().map(ToString::to_string).collect();
    assert!(
        lines.is_empty(),
        "no image or answer misses these persists (omit them, or give their reasons in `WordMap::forgiven`):\n{}",
        lines.join("\n")
    );
}
