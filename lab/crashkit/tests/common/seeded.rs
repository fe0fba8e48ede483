//! Looks for bugs that are seeded one at a time into a small structure.

use wollemi_crashkit::{Explorer, Failure, History, Random, Report, Settings, Subject, silence_findings};

/// Explores this many histories of one to three threads, in turn, until one fails.
fn explore<S: Subject>(
    subject: S,
    histories: u64,
    op: fn(&mut Random) -> S::Op,
) -> (Result<(), Box<Failure>>, Report) {
    silence_findings();
    let settings = Settings {
        memory: 2 << 20,
        steps: 100_000,
        again_share: 20,
        kill_share: 20,
        // The tests state what finds each of these bugs; aimed preemptions might find it in another way.
        aimed: 0,
        ..Settings::default()
    };
    let mut explorer = Explorer::new(subject, settings).expect("memory");
    let mut histories = (0..histories).map(|seed| {
        let mut random = Random(seed);
        History {
            seed,
            ops: (0..24).map(|_| op(&mut random)).collect(),
            threads: 1 + seed as u32 % 3,
            ..History::default()
        }
    });
    let found = histories.try_for_each(|history| explorer.explore(&history));
    (found, explorer.into_report())
}

/// Asserts that the kit finds nothing in the structure without a bug.
pub fn is_whole<S: Subject>(subject: S, histories: u64, op: fn(&mut Random) -> S::Op) {
    let (found, report) = explore(subject, histories, op);
    assert!(found.is_ok(), "{}", found.expect_err("checked"));
    assert!(report.states > 2000 && report.again > 50, "{report}");
}

/// How a seeded bug must be found.
pub struct Expected {
    /// A part of the failure's message.
    pub says: &'static str,
    /// After at least this many crashes; 0: none is needed.
    pub crashes: u32,
    /// Before this many states were judged.
    pub states: u64,
}

/// Asserts that the kit finds the bug as expected, within this many histories.
pub fn is_found<S: Subject>(
    subject: S,
    histories: u64,
    op: fn(&mut Random) -> S::Op,
    Expected {
        says,
        crashes,
        states,
    }: Expected,
) {
    let name = subject.name();
    let (found, report) = explore(subject, histories, op);
    let failure = found.expect_err(&format!("{name}: {report}"));
    println!("{name}, after {} states: {failure}", report.states);
    assert!(failure.message.contains(says), "{name}: {failure}");
    assert!(failure.crashes >= crashes, "{name}: {failure}");
    assert!(report.states < states, "{name}: {report}");
}
